//! Delivers events from the outbox to learning-svc, each at least once.
//!
//! Events come in two ways: handed over in memory by the code that stored them on this replica, or claimed from the
//! outbox by any replica when a lease or a back-off has expired. [`delivery_queue`] bounds the first way; [`worker`] takes,
//! sends and settles batches; [`verdict`] decides what a refusal means; [`ingest`] is the gRPC transport. The order of
//! events does not matter to learning-svc, so nothing here preserves it.

pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod dead_letters;
pub(crate) mod delivery_queue;
pub(crate) mod dispatch;
pub(crate) mod grpc;
pub(crate) mod ingest;
pub(crate) mod verdict;
pub(crate) mod waiters;
pub(crate) mod worker;

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use async_trait::async_trait;
use emend_core::InstallationId;
use emend_proto::learning::v1::{Event, EventResult, FeedbackStandings, GetStandingsRequest};
use tokio::time::Instant;

/// The transport to learning-svc.
#[async_trait]
pub(crate) trait Delivery: Send + Sync + Debug + 'static {
    /// Sends a batch of 1 to 256 events, meant for the installation `to` if one is known, and waits for its results.
    /// Several batches may be in flight at once.
    async fn deliver(
        &self,
        events: Vec<Event>,
        to: Option<InstallationId>,
    ) -> Result<Delivered, DeliveryError>;

    /// Asks what has become of feedbacks; an answer after `until` is of no use.
    async fn standings(
        &self,
        request: GetStandingsRequest,
        until: Instant,
    ) -> Result<Vec<FeedbackStandings>, DeliveryError>;
}

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivered {
    /// One per event, in order.
    pub(crate) results: Vec<EventResult>,
    /// The installation that answered, if it says.
    pub(crate) by: Option<InstallationId>,
}

/// Why there are no results for a batch. It is unknown whether learning-svc has applied it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// learning-svc can't be reached, or does not answer now. Says nothing about the events.
    #[error("learning-svc is unavailable: {0}")]
    Unavailable(String),
    /// The database does not say which installation the batch is meant for. Says nothing about the events.
    #[error("it is not known to which installation to deliver: {0}")]
    Database(String),
    /// Another installation answers than the one that the batch is meant for. Says nothing about the events.
    #[error("another installation of learning-svc answers")]
    OtherInstallation(Option<InstallationId>),
    /// learning-svc refuses the batch, but does not say which event is at fault.
    #[error("learning-svc refused a batch: code {code}: {message}")]
    Refused {
        /// A google.rpc.Code.
        code: i32,
        /// In words.
        message: String,
    },
}
