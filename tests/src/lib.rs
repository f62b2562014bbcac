//! Emend as its users meet it: whole services on real sockets and real databases, spoken to through the wire contract.
//!
//! The tests are in `tests/system`; here is what they stand on. Only [`harness::start`] knows how the services are
//! started, and only [`harness::stored`] looks into their databases. After whatever was done to them, [`audit`] says whether
//! all promises were kept.

pub mod audit;
pub mod harness;
