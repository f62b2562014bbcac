//! Contests: everything proposed for one resource key, decided by votes and by people.
//!
//! [`open`] locks contests and decides on them in memory, one event after another, before they are written in one go;
//! every change of what nodes answer goes through it. [`review`] is what people decide on candidates, [`candidates`]
//! what they read of them; [`reevaluation`] follows changed policies; [`ballot_cache`] keeps the ballots of contests
//! with many votes from one transaction to the next. [`grpc`] is the review queue's service.

pub mod ballot_cache;
pub mod candidates;
pub mod grpc;
pub mod metrics;
pub mod open;
pub mod reevaluation;
pub mod review;
pub mod store;
