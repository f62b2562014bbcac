//! The port of the outbox: claims, results of deliveries, dead letters.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{EventId, Namespace};
use emend_store::StoreError;

use crate::records::{
    feedback::Accepted,
    outbox::{DeadLetter, DeadLetterQuery, EncodedOutcome, Lease, LeaseHolder, LeaseToken, Refusal},
};

/// No lease or back-off is this long. An entry due later than that was written before the clock went back, and counts
/// as due now: otherwise it would wait for as long as the clock went back.
pub const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Keeps events until they are delivered.
#[async_trait]
pub trait OutboxStore: Send + Sync + Debug + 'static {
    /// Leases up to `limit` pending events that are due, in accept order. Two callers never get the same one.
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>, StoreError>;

    /// Releases the leases of replicas that are gone; returns how many. To be called from time to time by the replica
    /// that leases as `holder`: by that the others know that it is not gone. Where only one process at a time has the
    /// database, there is nobody else.
    async fn release_abandoned(&self, holder: LeaseHolder) -> Result<u64, StoreError>;

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
    async fn redrive(&self, events: &[EventId], namespace: Option<&Namespace>) -> Result<u64, StoreError>;

    /// The backlog of undelivered events, for monitoring.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}

/// The backlog of undelivered events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Events awaiting delivery, including those in flight.
    pub pending: u64,
    /// How long the oldest of them has waited; zero if there is none, or the clock went back.
    pub oldest_age: Duration,
    /// Dead letters.
    pub dead_letters: u64,
}

/// An outbox entry that was leased to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The event.
    pub event_id: EventId,
    /// What completes the event.
    pub accepted: Accepted,
    /// How often its delivery failed so far.
    pub attempts: u32,
    /// The encoded event, still without `accepted`.
    pub payload: Bytes,
}

/// The result of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
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
