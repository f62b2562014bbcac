//! Emend as its users meet it: whole services on real sockets and real databases, exercised through the wire contract.
//!
//! The tests are in `tests/system` and, for failures and faults, `tests/fire`. This crate holds what they stand on, and
//! the auditors that judge the outcome. Only [`harness::start`] knows how the services are started inside a test's
//! process, and only [`harness::stored`] reads their databases.

pub mod audit;
pub mod faults;
pub mod harness;
pub mod load;
