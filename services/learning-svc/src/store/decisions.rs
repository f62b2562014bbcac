//! The port of the deciding use cases: one unit of work that locks, reads and writes, and the reads that reviewers and
//! auditors need.
//!
//! Everything that crosses it is parsed: an implementation returns [`StoreError::Corrupt`] rather than a value the
//! rules do not know. It must know nothing of requests or of SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    Ballot, CandidateId, ContestId, EventId, FeedbackId, Kind, Namespace, OperationId, Policy, ResourceKey,
    Revision, Status,
};
use emend_store::{Connections, StoreError};
use jiff::Timestamp;

use super::erasures::Erasures;
pub use super::{records::*, writes::*};

type Result<T> = std::result::Result<T, StoreError>;

/// One unit of work: its writes are invisible to others before [`Tx::commit`], and discarded if it is dropped.
///
/// Locks are taken in this order: feedbacks, contests by id, the head. Callers that keep to it meet no deadlock.
#[async_trait]
pub trait Tx: Send {
    /// Makes other units of work on these feedbacks wait until this one ends.
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()>;

    /// What is known about these events and feedbacks.
    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen>;

    /// The policies in force.
    async fn policies(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>>;

    /// How many resources there are.
    async fn resource_counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>>;

    /// How many scopes, each a kind in a namespace, hold any resources.
    async fn scopes_in_use(&mut self) -> Result<u64>;

    /// Creates rows for contests that have none. `keys` must be in order of contest ids.
    async fn create_contests(&mut self, keys: &[&ResourceKey], now: Timestamp) -> Result<()>;

    /// Locks the rows of existing contests in order of their ids, and returns them in that order.
    async fn lock_contests(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>>;

    /// Reads everything a decision needs except the ballots.
    async fn load_contests(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>>;

    /// The newest counted ballots of each of these contests, at most `limit` of each; contests without any are left
    /// out.
    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>>;

    /// The contest of a candidate.
    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>>;

    /// The changes of a revision, in order; empty if there is no such revision.
    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>>;

    /// Writes what names no revision.
    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()>;

    /// Locks the head and advances it by `revisions`, which may be 0.
    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead>;

    /// Writes the rest. Returns the new number of resources for each key in `counts`.
    async fn save_decisions(&mut self, writes: &DecisionWrites) -> Result<HashMap<PolicyKey, u64>>;

    /// The policy in force, and when it was changed.
    async fn stored_policy(&mut self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// Stores a new version; a conflict if it is already stored.
    async fn save_policy(&mut self, policy: &PolicyWrite) -> Result<()>;

    /// Erased users; none in a store that knows no erasure.
    fn erasures(&mut self) -> Option<&mut dyn Erasures>;

    /// Makes everything durable and visible.
    async fn commit(self: Box<Self>) -> Result<()>;
}

/// Which candidates to list.
#[derive(Debug, Clone)]
pub struct CandidateFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only these; empty: all.
    pub kinds: Vec<Kind>,
    /// Only these; empty: all.
    pub statuses: Vec<Status>,
    /// Only contests with this normalised key.
    pub key: Option<String>,
}

/// A position in the list of candidates, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePosition {
    /// Creation time, in microseconds since 1970.
    pub created_at: i64,
    /// Breaks ties between candidates created at the same instant.
    pub id: CandidateId,
}

impl CandidatePosition {
    /// The position of a candidate.
    pub fn of(record: &CandidateRecord) -> Self {
        Self {
            created_at: record.kept.created_at.as_microsecond(),
            id: record.candidate.id,
        }
    }
}

/// Which revisions to list.
#[derive(Debug, Clone)]
pub struct RevisionFilter {
    /// The search application; only its changes are shown.
    pub namespace: Namespace,
    /// Only revisions that changed this kind.
    pub kind: Option<Kind>,
    /// Only revisions that changed this normalised key.
    pub key: Option<String>,
    /// Only revisions of this operation.
    pub operation: Option<OperationId>,
}

/// What use cases need of a database.
#[async_trait]
pub trait DecisionStore: Send + Sync {
    /// Begins a unit of work that may write.
    async fn begin(&self) -> Result<Box<dyn Tx>>;

    /// One candidate.
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>>;

    /// Candidates after `after`, newest first, at most `limit`.
    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>>;

    /// The other candidates of a candidate's contest, strongest first.
    async fn rivals(&self, of: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>>;

    /// The newest counted ballots of a contest, newest first.
    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>>;

    /// The reporters of feedbacks, where given and not erased.
    async fn reporters(&self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, String>>;

    /// The feedbacks that proposed a candidate, newest first.
    async fn feedback(&self, candidate: CandidateId, limit: u32) -> Result<Vec<FeedbackRecord>>;

    /// A candidate's transitions, oldest first.
    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>>;

    /// Revisions below `before`, newest first, at most `limit`; fewer if they have very many changes. The flag says
    /// that there may be more.
    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)>;

    /// The policy in force.
    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// How many pending contests were last evaluated by an older version than `version`.
    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64>;

    /// Pending contests last evaluated by an older version than the one in force: by id, after `after`, at most
    /// `limit`.
    async fn contests_to_reevaluate(&self, after: Option<ContestId>, limit: u32) -> Result<Vec<ResourceKey>>;

    /// How many candidates there are of each kind and status that has any.
    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>>;

    /// Everything the store holds, read whole in one consistent state.
    #[cfg(any(test, feature = "simulation"))]
    async fn contents(&self) -> Result<super::contents::Contents>;

    /// The current state of the connections to the database.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<()>;

    /// Closes all connections.
    async fn close(&self);
}
