//! SQL written once for both databases.
//!
//! A [`Statement`] is a text with its arguments, whichever database executes it. [`Pools`] are the connections to one database,
//! and a [`Conn`] is one of them: a statement runs on it, and its rows come back as what derives [`sqlx::FromRow`]. A
//! [`Transaction`] is a connection whose statements take effect together.
//!
//! What the databases say differently stands side by side: in a `match` on a [`Conn`], [`Pools`] or [`Dialect`], and the few
//! expressions of which there are many uses in [`Dialect`].

mod argument;
mod conn;
mod pools;
mod statement;

pub use self::{
    argument::Argument,
    conn::{Conn, Row, Transaction},
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

impl Dialect {
    /// Ends a SELECT whose rows are locked. On SQLite there is nothing to do: the one writer has the whole file.
    pub const fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE",
        }
    }

    /// Ends a SELECT whose rows are locked against changes.
    pub const fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR SHARE",
        }
    }
}
