//! SQL written once for both databases.
//!
//! A [`Statement`] is a text with its arguments, whichever database executes it. [`Pools`] are the connections to one database,
//! and a [`Conn`] is one of them: a statement runs on it, and its rows come back as what derives [`sqlx::FromRow`]. A
//! [`Transaction`] is a connection whose statements take effect together.
//!
//! What the databases say differently stands side by side, in a `match` on [`Pools`] or a [`Dialect`]; but that rows are locked,
//! which [`Statement`] knows.

mod argument;
mod conn;
mod pools;
mod statement;

pub use self::{
    argument::Argument,
    conn::{Conn, Row, Transaction, Undecoded},
    pools::Pools,
    statement::{Separated, Statement},
};

/// The SQL that a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// One writer at a time, readers that never wait.
    Sqlite,
    /// Any number of writers, which lock rows.
    Postgres,
}
