//! Contests: everything proposed for one resource key, decided by votes and by people.
//!
//! [`candidates`] is what people read of what was proposed; [`reevaluation`] follows changed policies. [`grpc`] is the review
//! queue's service.

pub mod candidates;
pub mod grpc;
pub mod metrics;
pub mod reevaluation;
pub mod store;
