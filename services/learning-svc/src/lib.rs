//! Emend's learning service: takes what reporters say, decides what may be learned of it, and streams what was learned.
//!
//! * [`store`]: what is kept, behind one port, on SQLite or PostgreSQL.
//! * [`app`]: the use cases; each is one transaction, from its first read to its commit.
//! * [`stream`]: what subscribers and readers see of the log.
//! * [`grpc`]: requests in, one use case, responses out.

pub mod app;
pub mod config;
pub mod grpc;
pub mod store;
pub mod stream;
