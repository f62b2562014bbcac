//! Ingestion: events from feedback-svc, delivered at least once, with exactly-once effect.
//!
//! [`grpc`] takes batches, [`queue`] forms groups of events from all senders, and each group is applied in one
//! transaction ([`apply`]).

pub mod apply;
pub mod grpc;
pub mod queue;
pub mod store;
mod trace;
