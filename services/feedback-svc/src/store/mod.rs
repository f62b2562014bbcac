//! The storage port, shaped by the use cases; its two implementations, and a third in memory for tests; the contract
//! suite that holds them to the same behaviour.
//!
//! All times are the database's: leases, back-off, retention and accept orders depend on one clock however many
//! replicas there are. The port must know nothing of gRPC or of how events are delivered.

pub(crate) mod audit;
mod chunks;
#[cfg(test)]
mod contract;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod memory;
mod postgres;
pub(crate) mod rows;
mod sqlite;

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{EventId, FeedbackId, Namespace};
pub(crate) use emend_store::{Connections, StoreError};

use crate::domain::{
    Accepted, DeadLetter, DeadLetterQuery, EncodedOutcome, Feedback, FeedbackQuery, Lease, LeaseToken,
    NewFeedback, NewRetraction, Refusal,
};
use crate::{erasure::store::ErasureStore, settings::store::SettingsStore};

pub(crate) use postgres::PostgresStore;
#[cfg(feature = "fuzzing")]
pub(crate) use rows::fuzzing;
pub(crate) use sqlite::SqliteStore;

/// No lease or back-off is this long. An entry due later than that was written before the clock went back, and counts
/// as due now: otherwise it would wait for as long as the clock went back.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Stores feedback and the outbox of its events.
#[async_trait]
pub(crate) trait Store: Send + Sync + Debug + 'static {
    /// Stores a whole group with its events in one transaction, or fails as a whole and stores nothing of it. Otherwise
    /// returns a result per item, in order; an error there concerns that item alone, and the others are stored. With a
    /// lease, the events are leased from the start; without one, they are due at once. If a request id repeats within
    /// the group, the first item counts.
    async fn insert(
        &self,
        group: &[NewFeedback],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError>;

    /// Makes sure that accept orders given from now on are not behind the database's clock. To be called periodically:
    /// some stores make sure of it only then.
    async fn raise_accept_order(&self) -> Result<(), StoreError>;

    /// One feedback, if it is in that namespace.
    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>, StoreError>;

    /// Feedback of a namespace, newest first.
    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>, StoreError>;

    /// Retracts a feedback, with its event leased or due at once. Only the first retraction counts.
    async fn retract(
        &self,
        retraction: &NewRetraction,
        lease: Option<Lease>,
    ) -> Result<Retracted, StoreError>;

    /// Leases up to `limit` pending events that are due, in accept order. Two callers never get the same one.
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>, StoreError>;

    /// Those of these events that are pending and leased under these tokens. A stored event may be gone: a database
    /// that fails over to a standby loses what was not yet replicated.
    async fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Result<Vec<EventId>, StoreError>;

    /// Records the results of deliveries, all in one transaction. A success always counts; any other result counts only
    /// while the token is still that of the lease.
    async fn settle(&self, settlements: &[Settlement]) -> Result<(), StoreError>;

    /// Dead letters, oldest first.
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Vec<DeadLetter>, StoreError>;

    /// Makes the dead letters among these events due now, as if they had never been attempted; if a search application
    /// is given, only its own. Returns how many.
    async fn redrive(&self, events: &[EventId], of: Option<&Namespace>) -> Result<u64, StoreError>;

    /// The backlog of undelivered events, for monitoring.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// Deletes up to `limit` request ids older than `retention`; returns how many.
    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64, StoreError>;

    /// Erasing personal parts; none in a store that knows no erasure.
    fn erasures(&self) -> Option<&dyn ErasureStore> {
        None
    }

    /// Settings; none in a store that keeps none.
    fn settings(&self) -> Option<&dyn SettingsStore> {
        None
    }

    /// The current state of the database connections.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Closes all connections.
    async fn close(&self);
}

/// The backlog of undelivered events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Events awaiting delivery, including those in flight.
    pub(crate) pending: u64,
    /// How long the oldest of them has waited; zero if there is none, or the clock went back.
    pub(crate) oldest_age: Duration,
    /// Dead letters.
    pub(crate) dead_letters: u64,
}

/// The result of one item of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is stored.
    Stored(Accepted),
    /// The same request was stored before, as this feedback.
    Replayed(FeedbackId),
    /// The request id belongs to another request.
    RequestIdReused,
}

/// The result of a retraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retracted {
    /// Stored, with its event.
    Now(Accepted),
    /// It was retracted before.
    Before,
    /// There is no such feedback in that namespace.
    NotFound,
}

/// An outbox entry that was leased to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// The event.
    pub(crate) event_id: EventId,
    /// What completes the event.
    pub(crate) accepted: Accepted,
    /// How often its delivery failed so far.
    pub(crate) attempts: u32,
    /// The encoded event, still without `accepted`.
    pub(crate) payload: Bytes,
}

/// The result of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// learning-svc evaluated it.
    Delivered {
        /// The event.
        event_id: EventId,
        /// The answer.
        outcome: EncodedOutcome,
    },
    /// It failed, and is worth a retry after a while.
    Failed {
        /// The event.
        event_id: EventId,
        /// The token of its lease.
        token: LeaseToken,
        /// When it is due again, from now.
        retry_in: Duration,
        /// Why.
        refusal: Refusal,
    },
    /// It was not attempted; another worker may claim it at once.
    Released {
        /// The event.
        event_id: EventId,
        /// The token of its lease.
        token: LeaseToken,
    },
    /// It was refused for good.
    Dead {
        /// The event.
        event_id: EventId,
        /// The token of its lease.
        token: LeaseToken,
        /// Why.
        refusal: Refusal,
    },
}
