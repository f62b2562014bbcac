//! Brings events from the outbox to learning-svc, at least once each.
//!
//! Events come in two ways: handed over in memory by whoever stored them here, and claimed from the outbox when a lease or
//! a back-off has expired, on whichever replica. [`hand_over`] bounds the first way; [`worker`] takes, sends and settles;
//! [`verdict`] says what a refusal means; [`ingest`] is the way over gRPC. The order of events does not matter to
//! learning-svc, so nothing here preserves it.

pub(crate) mod dispatch;
pub(crate) mod hand_over;
pub(crate) mod ingest;
pub(crate) mod verdict;
pub(crate) mod worker;

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use async_trait::async_trait;
use emend_proto::learning::v1::{Event, EventResult};

/// The way to learning-svc.
#[async_trait]
pub(crate) trait Delivery: Send + Sync + Debug + 'static {
    /// Sends a batch of 1 to 256 events and waits for its results: one per event, in order. Several batches may be under
    /// way at once.
    async fn deliver(&self, events: Vec<Event>) -> Result<Vec<EventResult>, DeliveryError>;
}

/// Why there are no results for a batch. Whether learning-svc has applied it is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// learning-svc can't be reached, or does not answer now. Says nothing of the events.
    #[error("learning-svc is unavailable: {0}")]
    Unavailable(String),
    /// learning-svc refuses what was sent, but does not say which event.
    #[error("learning-svc refused a batch: code {code}: {message}")]
    Refused {
        /// A google.rpc.Code.
        code: i32,
        /// In words.
        message: String,
    },
}
