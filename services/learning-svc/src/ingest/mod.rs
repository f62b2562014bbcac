//! Ingestion: events from feedback-svc, delivered at least once, with exactly-once effect.
//!
//! [`grpc`] takes batches of [`event`]s, [`queue`] forms groups of them from all senders, and each group is applied in one
//! transaction ([`apply`]).

pub mod apply;
pub mod event;
pub mod grpc;
pub mod queue;
pub mod store;
mod trace;
