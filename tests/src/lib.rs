//! Emend as its users meet it: whole services on real sockets and real databases, spoken to through the wire contract.
//!
//! The tests are in `tests/system` and, where things break, `tests/fire`; here is what they stand on, and the auditors that
//! judge what came of it. Only [`harness::start`] knows how the services are started within a test's process, and only
//! [`harness::stored`] looks into their databases.

pub mod audit;
pub mod faults;
pub mod harness;
pub mod load;
