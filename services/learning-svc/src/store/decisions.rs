//! The port of the use cases that decide: one unit of work that locks, reads and writes, and the reads that reviewers and
//! auditors need.
//!
//! Everything that crosses it is parsed: an implementation answers [`StoreError::Corrupt`] rather than hand out a value
//! that the rules do not know. It must know nothing of requests, and of SQL neither.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    Ballot, CandidateId, ContestId, EventId, FeedbackId, Kind, Namespace, OperationId, Policy, ResourceKey,
    Revision, Status,
};
use emend_runtime::store::{Connections, StoreError};
use jiff::Timestamp;

pub use super::{records::*, writes::*};

type Result<T> = std::result::Result<T, StoreError>;

/// One unit of work: what it wrote is seen by nobody before [`Tx::commit`], and by nobody ever if it is dropped.
///
/// Locks are taken in this order: feedbacks, contests by id, the head. Whoever keeps to it meets no deadlock.
#[async_trait]
pub trait Tx: Send {
    /// Keeps others who handle one of these feedbacks waiting until this unit of work ends.
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()>;

    /// What is known of these events and feedbacks.
    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen>;

    /// The policies in force.
    async fn policies(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>>;

    /// How many resources there are.
    async fn resource_counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>>;

    /// Makes rows for contests that have none. `keys` are in the order of their contest ids.
    async fn create_contests(&mut self, keys: &[&ResourceKey], now: Timestamp) -> Result<()>;

    /// Locks the rows of contests that were created, in the order of their ids, in which they also come back.
    async fn lock_contests(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>>;

    /// Reads all that is decided upon but the ballots.
    async fn load_contests(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>>;

    /// The newest ballots that count of each of some contests, at most `limit` of each; nothing of those that have none.
    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>>;

    /// The contest of a candidate.
    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>>;

    /// What a revision changed, in its order; empty where there is no such revision.
    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>>;

    /// Writes what names no revision.
    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()>;

    /// Locks the head and moves it on by `revisions`, which may be 0.
    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead>;

    /// Writes the rest. Answers how many resources there are now of what `counts` names.
    async fn save_decisions(&mut self, writes: &DecisionWrites) -> Result<HashMap<PolicyKey, u64>>;

    /// The policy in force, with when it was changed.
    async fn stored_policy(&mut self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// Stores a new version. A conflict where somebody else stored it first.
    async fn save_policy(&mut self, policy: &PolicyWrite) -> Result<()>;

    /// Makes all of it durable and visible.
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
    /// Only contests of this normalised key.
    pub key: Option<String>,
}

/// A place in the list of candidates, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePosition {
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Tells candidates of one instant apart.
    pub id: CandidateId,
}

impl CandidatePosition {
    /// Where a candidate is in the list.
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

/// What use cases ask of a database.
#[async_trait]
pub trait DecisionStore: Send + Sync {
    /// Begins a unit of work that may write.
    async fn begin(&self) -> Result<Box<dyn Tx>>;

    /// One candidate.
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>>;

    /// Candidates, newest first, behind `after`, at most `limit`.
    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>>;

    /// The other candidates of a candidate's contest, strongest first.
    async fn rivals(&self, of: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>>;

    /// The newest ballots of a contest that count, newest first.
    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>>;

    /// The reporters of feedbacks, where they were given and not erased.
    async fn reporters(&self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, String>>;

    /// What proposed a candidate, newest first.
    async fn feedback(&self, candidate: CandidateId, limit: u32) -> Result<Vec<FeedbackRecord>>;

    /// A candidate's transitions, oldest first.
    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>>;

    /// Revisions below `before`, newest first, at most `limit`; fewer where they change very much. The flag says that there
    /// may be more.
    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)>;

    /// The policy in force.
    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// How many contests that wait were last evaluated by an older version than `version`.
    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64>;

    /// Contests that wait and were last evaluated by an older version than the one in force: by id, behind `after`, at most
    /// `limit`.
    async fn contests_to_reevaluate(&self, after: Option<ContestId>, limit: u32) -> Result<Vec<ResourceKey>>;

    /// How many candidates there are of each kind and status that has any.
    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>>;

    /// Everything that is applied to the log or counted, for audits: read in one consistent state.
    async fn audit(&self) -> Result<AuditRecords>;

    /// The connections to the database, as they are now.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<()>;

    /// Closes all connections.
    async fn close(&self);
}
