//! The one port to what is stored, shaped by the use cases; its two implementations, a third in memory for tests; the
//! suite that holds them alike.
//!
//! All times are the database's: leases, back-off, retention and accept orders hang on one clock however many replicas
//! there are. The port must know nothing of gRPC or of how events travel.

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
pub(crate) use emend_runtime::store::{Connections, StoreError};

use crate::domain::{
    Accepted, DeadLetter, DeadLetterQuery, EncodedOutcome, Feedback, FeedbackQuery, Lease, LeaseToken,
    NewFeedback, NewRetraction, Refusal,
};

pub(crate) use postgres::PostgresStore;
#[cfg(feature = "fuzzing")]
pub(crate) use rows::fuzzing;
pub(crate) use sqlite::SqliteStore;

/// No lease and no back-off is this long. What is due later than that was written under a clock that has gone back since,
/// and is due now: else it would wait for as long as the clock went back.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What is stored of feedback and of its way to learning-svc.
#[async_trait]
pub(crate) trait Store: Send + Sync + Debug + 'static {
    /// Stores all of a group with their events in one transaction, or nothing of it: then it fails as a whole. Else an
    /// answer for each, in order; one that fails concerns its item alone, and the others are stored. With a lease the
    /// events are leased from the start; without one they are due at once. Of equal request ids within the group the first
    /// counts.
    async fn insert(
        &self,
        group: &[NewFeedback],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError>;

    /// Sees to it that accept orders given from now on are not behind the database's clock. To be called from time to
    /// time: some stores see to it only then.
    async fn raise_accept_order(&self) -> Result<(), StoreError>;

    /// One feedback, if it is in that namespace.
    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>, StoreError>;

    /// Feedback of a namespace, newest first.
    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>, StoreError>;

    /// Takes a feedback back, with its event leased or due at once. Only the first retraction counts.
    async fn retract(
        &self,
        retraction: &NewRetraction,
        lease: Option<Lease>,
    ) -> Result<Retracted, StoreError>;

    /// Leases up to `limit` pending events that are due, in accept order. Two callers never get the same one.
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>, StoreError>;

    /// Those of these events that are pending and leased under these tokens. What was stored may be gone: a database that
    /// fails over to a standby loses what that had not yet.
    async fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Result<Vec<EventId>, StoreError>;

    /// Notes what became of deliveries, all in one transaction. That an event was delivered counts always; that it was
    /// not counts only where the token is still that of its lease.
    async fn settle(&self, settlements: &[Settlement]) -> Result<(), StoreError>;

    /// Dead letters, oldest first.
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Vec<DeadLetter>, StoreError>;

    /// Makes those of these events that are dead letters due now, as if they had never been tried; where a search application
    /// is given, only its own. Answers with how many.
    async fn redrive(&self, events: &[EventId], of: Option<&Namespace>) -> Result<u64, StoreError>;

    /// What has not been delivered, for who watches over it.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// Forgets up to `limit` request ids older than `retention`; answers with how many.
    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64, StoreError>;

    /// The connections to the database, as they are now.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Closes all connections.
    async fn close(&self);
}

/// What has not been delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Events that wait for their delivery, those under way included.
    pub(crate) pending: u64,
    /// How long the oldest of them has waited; zero where there is none, or the clock went back.
    pub(crate) oldest_age: Duration,
    /// Dead letters.
    pub(crate) dead_letters: u64,
}

/// What became of one item of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is stored.
    Stored(Accepted),
    /// The same request was stored before, as this feedback.
    Replayed(FeedbackId),
    /// The request id belongs to another request.
    RequestIdReused,
}

/// What became of a retraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retracted {
    /// Noted, with its event.
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
    /// What completes it.
    pub(crate) accepted: Accepted,
    /// How often its delivery failed so far.
    pub(crate) attempts: u32,
    /// The encoded event, still without `accepted`.
    pub(crate) payload: Bytes,
}

/// What became of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// learning-svc took it and answered.
    Delivered {
        /// The event.
        event_id: EventId,
        /// The answer.
        outcome: EncodedOutcome,
    },
    /// It is worth another try, after a while.
    Failed {
        /// The event.
        event_id: EventId,
        /// Whose lease it was.
        token: LeaseToken,
        /// When it is due again, from now.
        retry_in: Duration,
        /// Why.
        refusal: Refusal,
    },
    /// It was not tried: somebody else may do so at once.
    Released {
        /// The event.
        event_id: EventId,
        /// Whose lease it was.
        token: LeaseToken,
    },
    /// It was refused for good.
    Dead {
        /// The event.
        event_id: EventId,
        /// Whose lease it was.
        token: LeaseToken,
        /// Why.
        refusal: Refusal,
    },
}
