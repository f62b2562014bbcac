//! What reviewers see of each other: who has a candidate open, and what changes in the queue. Everything in it is dropped soon
//! after.

#[cfg(test)]
mod changes_contract;
pub(crate) mod changes_sql;
#[cfg(test)]
mod comments_contract;
pub(crate) mod comments_sql;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod days_contract;
pub(crate) mod days_sql;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{CandidateId, Kind, Namespace, ResourceKey, Revision, Status};
use emend_store::{CorruptRow, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::actor::Actor;

type Result<T> = std::result::Result<T, StoreError>;

/// For how long a candidate stays open that nobody opens again, by the database's clock.
pub const LEASED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// Days of which figures are kept at most, before today.
pub const MAX_DAYS: u32 = 90;
/// For how long changes are kept for those who watch.
pub const CHANGES_KEPT: SignedDuration = SignedDuration::from_mins(5);
/// Comments on one candidate at most.
pub const MAX_COMMENTS: u32 = 200;
/// Leases at most.
pub const MAX_LEASES: u32 = 5_000;

/// Somebody has a candidate open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who.
    pub actor: Actor,
    /// Until when, by the database's clock.
    pub expires_at: Timestamp,
}

/// What a reviewer wrote about a candidate for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewComment {
    /// Who.
    pub actor: Actor,
    /// What.
    pub comment: String,
    /// Whether it asks for a second opinion, and of whom; empty: of anybody else.
    pub asked: Option<String>,
    /// Whether it asks, and nobody has answered.
    pub open: bool,
    /// When, by the database's clock.
    pub written_at: Timestamp,
}

/// The first of two approvals of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstApproval {
    /// Who approved it.
    pub actor: Actor,
    /// Why, in words, or the name of the status's reason.
    pub reason: String,
    /// When, by the service's clock.
    pub at: Timestamp,
}

/// A place in what changes: in the order of commits, so that nothing is ever committed before a place that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// The transaction; 0 where there is only one at a time.
    pub transaction: i64,
    /// The change.
    pub change: i64,
}

/// A candidate's status changed, who has it open, or what reviewers wrote about it; or it was approved by the first of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueChange {
    /// The candidate.
    pub candidate: CandidateId,
    /// The key of its contest.
    pub key: ResourceKey,
    /// Its status after the change.
    pub status: Status,
    /// Its status before; none: it was created.
    pub previous: Option<Status>,
    /// Who changed the status or approved it; none where only the lease or the comments changed.
    pub decided_by: Option<Actor>,
    /// Who has it open, when this is read.
    pub lease: Option<Lease>,
    /// The revision that the change belongs to; 0 if no resource changed.
    pub revision: Revision,
}

/// The UTC day of a time, in days since 1970-01-01.
pub fn day(at: Timestamp) -> i64 {
    at.as_second().div_euclid(24 * 60 * 60)
}

/// What happened on one UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayFigures {
    /// Corrections received.
    pub received: u64,
    /// Candidates applied.
    pub applied: u64,
    /// Candidates rejected.
    pub rejected: u64,
    /// Candidates withdrawn.
    pub withdrawn: u64,
}

/// What happened to one kind in a namespace on one UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    /// The search application.
    pub namespace: Namespace,
    /// The day, in days since 1970-01-01.
    pub day: i64,
    /// The kind.
    pub kind: Kind,
    /// What happened.
    pub figures: DayFigures,
}

/// A change as read; none of a candidate that was erased since.
pub type ReadChange = (
    QueuePosition,
    std::result::Result<Option<QueueChange>, CorruptRow>,
);

/// The review queue, as its reviewers see it.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Opens a candidate for somebody, for [`LEASED_FOR`] from now, or goes on to have it open, unless somebody else has. Returns the
    /// lease in force, whoever has it; none: [`MAX_LEASES`] are in force already.
    async fn acquire_lease(&self, candidate: CandidateId, actor: &Actor) -> Result<Option<Lease>>;

    /// Closes a candidate that this actor has open.
    async fn release_lease(&self, candidate: CandidateId, actor: &Actor) -> Result<()>;

    /// The leases in force on these candidates.
    async fn leases(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, Lease>>;

    /// Keeps what an actor writes about a candidate, and ends the questions that it answers: those that others asked the actor, or
    /// nobody in particular. `asked`: it asks for a second opinion itself. None: there are [`MAX_COMMENTS`] already.
    async fn comment(
        &self,
        candidate: CandidateId,
        actor: &Actor,
        comment: &str,
        asked: Option<&str>,
    ) -> Result<Option<ReviewComment>>;

    /// What was written about a candidate, the oldest first.
    async fn comments(&self, candidate: CandidateId) -> Result<Vec<ReviewComment>>;

    /// The newest question about each of these candidates that nobody has answered.
    async fn open_questions(&self, candidates: &[CandidateId])
    -> Result<HashMap<CandidateId, ReviewComment>>;

    /// Who was the last to approve each of these candidates as the first of two.
    async fn first_approvals(
        &self,
        candidates: &[CandidateId],
    ) -> Result<HashMap<CandidateId, FirstApproval>>;

    /// Ends the questions about candidates that were decided too long ago for that to be undone. Returns how many.
    async fn close_questions(&self) -> Result<u64>;

    /// The place after everything that can't be committed any more.
    async fn queue_position(&self) -> Result<QueuePosition>;

    /// What was committed after `after`, in order, at most `limit`. One that can't be read keeps no other from being returned.
    async fn queue_changes(&self, after: QueuePosition, limit: u32) -> Result<Vec<ReadChange>>;

    /// What happened in a namespace since a day, by day and kind.
    async fn queue_days(&self, namespace: &Namespace, day: i64) -> Result<Vec<QueueCount>>;

    /// Adds what was noted to the figures of its days, so that reading them stays cheap, and drops days older than [`MAX_DAYS`].
    /// Returns how many notes were added; there may be more.
    async fn fold_queue_counts(&self) -> Result<u64>;

    /// Drops changes that have been kept for [`CHANGES_KEPT`] and stand before a place, which all who watch have read up to: a
    /// transaction may have lasted longer than that, and held back what others wrote meanwhile. Returns how many.
    async fn forget_queue_changes(&self, before: QueuePosition) -> Result<u64>;
}
