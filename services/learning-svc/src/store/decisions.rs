//! The port of the use cases that decide: one unit of work that locks, reads and writes, and the reads that reviewers and
//! auditors need.
//!
//! Everything that crosses it is parsed: an implementation answers [`StoreError::Corrupt`] rather than hand out a value
//! that the rules do not know. It must know nothing of requests, and of SQL neither.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestId, ContestState, EventId, FeedbackId, Kind,
    Namespace, OperationId, Policy, Reporter, ResourceKey, ResourceValue, Revision, Status,
    contest::VoterKey, decide::Cause,
};
use emend_runtime::store::StoreError;
use jiff::Timestamp;

type Result<T> = std::result::Result<T, StoreError>;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The authenticated client.
    pub caller: Caller,
    /// On whose behalf, as the caller asserts; may be empty.
    pub on_behalf_of: String,
}

impl Actor {
    /// A client for itself.
    pub fn caller(caller: Caller) -> Self {
        Self {
            caller,
            on_behalf_of: String::new(),
        }
    }
}

/// What a policy is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyKey {
    /// The search application.
    pub namespace: Namespace,
    /// The kind.
    pub kind: Kind,
}

impl PolicyKey {
    /// Of the policy that decides upon a resource key.
    pub fn of(key: &ResourceKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            kind: key.kind,
        }
    }
}

/// A policy as stored; the default, never changed, where none was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// The policy.
    pub policy: Policy,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
}

/// A contest whose row is locked for this unit of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedContest {
    /// Its key, equal to the one that was asked for.
    pub key: ResourceKey,
    /// A person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version by which it was last evaluated.
    pub policy_version: i64,
    /// Whether anything in it waits.
    pub pending: bool,
    /// The database's time when it was locked.
    pub locked_at: Timestamp,
}

/// A contest with all that is decided upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContest {
    /// Its row.
    pub row: LockedContest,
    /// What is decided upon. `full` is yet to be filled in.
    pub state: ContestState,
    /// What is kept of its candidates beside what is decided upon.
    pub kept: HashMap<CandidateId, KeptCandidate>,
    /// When its resource was committed, in microseconds since 1970; 0 where there is none.
    pub committed_at: i64,
}

/// What is kept of a candidate beside what is decided upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCandidate {
    /// Who last changed its status.
    pub decided_by: Actor,
    /// When it was first proposed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How many transitions it has had.
    pub transitions: i64,
    /// Grows with each change.
    pub version: i64,
}

/// A candidate as reviewers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateRecord {
    /// The candidate.
    pub candidate: Candidate,
    /// The key of its contest.
    pub key: ResourceKey,
    /// A person set what applies in its contest.
    pub contest_pinned: bool,
    /// What else is kept of it.
    pub kept: KeptCandidate,
}

/// What is known of some events and feedbacks.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The encoded outcomes of events that were applied.
    pub outcomes: HashMap<EventId, Bytes>,
    /// Feedbacks with a retraction mark.
    pub retracted: Vec<FeedbackId>,
    /// Feedbacks with a redaction mark.
    pub redacted: Vec<FeedbackId>,
    /// Feedbacks that have a ballot.
    pub ballots: HashMap<FeedbackId, KnownBallot>,
}

/// A ballot that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBallot {
    /// The contest in which it was cast.
    pub key: ResourceKey,
    /// The ballot.
    pub ballot: Ballot,
    /// It no longer counts.
    pub retracted: bool,
}

/// A ballot to be stored.
#[derive(Debug, Clone)]
pub struct NewBallot {
    /// The contest in which it is cast.
    pub contest: ContestId,
    /// The ballot.
    pub ballot: Ballot,
    /// It does not count: its retraction came first.
    pub retracted: bool,
    /// What the system chose; may be empty.
    pub system_choice: String,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
}

/// The personal parts of a ballot, apart from what counts.
#[derive(Debug, Clone)]
pub struct BallotDetails {
    /// Whose.
    pub feedback: FeedbackId,
    /// Who said so.
    pub reporter: Reporter,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// Why; may be empty.
    pub reason: String,
    /// For the reviewer.
    pub context: BTreeMap<String, String>,
}

/// A retraction or redaction, kept for feedback that arrives late.
#[derive(Debug, Clone)]
pub struct Mark {
    /// Of which feedback.
    pub feedback: FeedbackId,
    /// By which event.
    pub event: EventId,
    /// The client that asked for it.
    pub caller: Caller,
    /// When feedback-svc stored it.
    pub at: Timestamp,
}

/// What is written before the head is locked: all that does not name a revision.
#[derive(Debug, Default)]
pub struct VoteWrites {
    /// Inserted.
    pub ballots: Vec<NewBallot>,
    /// Inserted.
    pub details: Vec<BallotDetails>,
    /// Ballots that no longer count.
    pub retracted: Vec<FeedbackId>,
    /// Details that are erased.
    pub erased: Vec<FeedbackId>,
    /// Inserted where there is none yet.
    pub retraction_marks: Vec<Mark>,
    /// Inserted where there is none yet.
    pub redaction_marks: Vec<Mark>,
    /// Contests as they are now.
    pub contests: Vec<ContestWrite>,
}

/// A contest's row as it is to be.
#[derive(Debug, Clone)]
pub struct ContestWrite {
    /// Its key.
    pub key: ResourceKey,
    /// A person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version by which it was evaluated.
    pub policy_version: i64,
    /// Whether anything in it waits.
    pub pending: bool,
}

/// What is written under the head's lock.
#[derive(Debug, Default)]
pub struct DecisionWrites {
    /// Inserted or replaced.
    pub candidates: Vec<CandidateWrite>,
    /// Inserted.
    pub transitions: Vec<TransitionWrite>,
    /// Inserted, all committed at [`DecisionWrites::committed_at`].
    pub revisions: Vec<RevisionWrite>,
    /// Inserted.
    pub changes: Vec<ChangeWrite>,
    /// Inserted, replaced or deleted.
    pub resources: Vec<ResourceWrite>,
    /// By how much the number of resources changes.
    pub counts: BTreeMap<PolicyKey, i64>,
    /// Inserted.
    pub inbox: Vec<InboxWrite>,
    /// The database's time under the head's lock, in microseconds since 1970.
    pub committed_at: i64,
}

/// A candidate as it is to be.
#[derive(Debug, Clone)]
pub struct CandidateWrite {
    /// The key of its contest.
    pub key: ResourceKey,
    /// The candidate.
    pub candidate: Candidate,
    /// What else is kept of it.
    pub kept: KeptCandidate,
}

/// A change of a candidate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionWrite {
    /// Whose.
    pub candidate: CandidateId,
    /// Its place among the candidate's transitions, from 0.
    pub sequence: i64,
    /// Before; none where it was created.
    pub from: Option<Status>,
    /// After.
    pub to: Status,
    /// Why.
    pub cause: Cause,
    /// In words or as a reason's name; may be empty.
    pub reason: String,
    /// Who.
    pub actor: Actor,
    /// When, by the service's clock.
    pub at: Timestamp,
    /// The revision it belongs to; 0 where no resource changed.
    pub revision: Revision,
    /// The version of the policy that decided.
    pub policy_version: i64,
}

/// One decision's place in the log.
#[derive(Debug, Clone)]
pub struct RevisionWrite {
    /// Its position.
    pub revision: Revision,
    /// The import or bulk action it belongs to.
    pub operation: Option<OperationId>,
    /// Why.
    pub cause: Cause,
    /// Who.
    pub actor: Actor,
    /// In words; may be empty.
    pub reason: String,
}

/// The feedback whose arrival decided something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Which.
    pub feedback: FeedbackId,
    /// When it was received.
    pub received_at: Timestamp,
    /// Its W3C trace context; may be empty.
    pub traceparent: String,
}

/// What a revision did to one resource.
#[derive(Debug, Clone)]
pub struct ChangeWrite {
    /// The revision.
    pub revision: Revision,
    /// Its place in the revision, from 0.
    pub ordinal: i32,
    /// Which resource.
    pub key: ResourceKey,
    /// The encoded value; none: it was deleted.
    pub value: Option<Bytes>,
    /// The encoded value before; none: there was nothing.
    pub before: Option<Bytes>,
    /// The candidate that was applied or taken away.
    pub candidate: Option<CandidateId>,
    /// The feedback that caused it.
    pub trigger: Option<Trigger>,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
}

/// A resource as it is to be.
#[derive(Debug, Clone)]
pub struct ResourceWrite {
    /// Which.
    pub key: ResourceKey,
    /// The revision that gave it this value.
    pub revision: Revision,
    /// The encoded value; none: it is deleted.
    pub value: Option<Bytes>,
}

/// An event that was applied.
#[derive(Debug, Clone)]
pub struct InboxWrite {
    /// Which.
    pub event: EventId,
    /// Of which feedback.
    pub feedback: FeedbackId,
    /// When, by the service's clock.
    pub at: Timestamp,
    /// The encoded `emend.common.v1.Outcome` that was answered.
    pub outcome: Bytes,
}

/// The head, locked until the unit of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedHead {
    /// The newest revision, those of this unit of work included.
    pub revision: Revision,
    /// The database's time in microseconds since 1970.
    pub now: i64,
}

/// A revision as it was written, for taking it back.
#[derive(Debug, Clone)]
pub struct WrittenChange {
    /// Which resource.
    pub key: ResourceKey,
    /// What was there before.
    pub before: Option<ResourceValue>,
    /// The newest revision that changed the resource.
    pub newest: Revision,
}

/// A policy to be stored as the newest version.
#[derive(Debug, Clone)]
pub struct PolicyWrite {
    /// What it is for.
    pub key: PolicyKey,
    /// The policy, its version one above the newest.
    pub policy: Policy,
    /// Who.
    pub actor: Actor,
    /// Why; may be empty.
    pub reason: String,
    /// When, by the service's clock.
    pub updated_at: Timestamp,
}

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

    /// Reads all that is decided upon, with the newest `ballots` ballots of each contest.
    async fn load_contests(&mut self, rows: Vec<LockedContest>, ballots: u32) -> Result<Vec<StoredContest>>;

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

/// A feedback that proposed a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackRecord {
    /// Which.
    pub feedback: FeedbackId,
    /// What the system had chosen; may be empty.
    pub system_choice: String,
    /// Why; empty where none was given or it was erased.
    pub reason: String,
    /// For the reviewer; empty where none was given or it was erased.
    pub context: BTreeMap<String, String>,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// When it was received.
    pub received_at: Timestamp,
    /// It no longer counts.
    pub retracted: bool,
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

/// A revision as auditors see it.
#[derive(Debug, Clone)]
pub struct RevisionRecord {
    /// Its position.
    pub revision: Revision,
    /// The import or bulk action it belongs to; may be empty.
    pub operation: String,
    /// Why.
    pub cause: Cause,
    /// Who.
    pub actor: Actor,
    /// In words; may be empty.
    pub reason: String,
    /// When, by the database's clock.
    pub committed_at: Timestamp,
    /// What it changed in the namespace.
    pub changes: Vec<ChangeRecord>,
}

/// What a revision did to one resource, as auditors see it.
#[derive(Debug, Clone)]
pub struct ChangeRecord {
    /// Which resource.
    pub key: ResourceKey,
    /// Before.
    pub before: Option<ResourceValue>,
    /// After; none: it was deleted.
    pub after: Option<ResourceValue>,
    /// The candidate that was applied or taken away; may be empty.
    pub candidate: String,
    /// The feedback that caused it; may be empty.
    pub feedback: String,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
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

    /// Some contests that wait and were last evaluated by an older version than the one in force.
    async fn contests_to_reevaluate(&self, limit: u32) -> Result<Vec<ResourceKey>>;

    /// Everything that is applied to the log or counted, for audits: read in one consistent state.
    async fn audit(&self) -> Result<AuditRecords>;

    /// Whether the database answers.
    async fn ping(&self) -> Result<()>;

    /// Closes all connections.
    async fn close(&self);
}

/// What an audit compares.
#[derive(Debug, Clone, Default)]
pub struct AuditRecords {
    /// The newest revision.
    pub head: Revision,
    /// All revisions' numbers, in order.
    pub revisions: Vec<Revision>,
    /// All changes, in the order of the log: the key's contest, its revision, its encoded value.
    pub changes: Vec<(ContestId, Revision, Option<Vec<u8>>)>,
    /// All resources: contest, revision, encoded value.
    pub resources: Vec<(ContestId, Revision, Vec<u8>)>,
    /// All candidates: contest, candidate, occurrences, reporters.
    pub candidates: Vec<(ContestId, CandidateId, i64, i64)>,
    /// All ballots that count.
    pub ballots: Vec<AuditedBallot>,
    /// How many resources the counters say there are.
    pub counted: HashMap<PolicyKey, u64>,
    /// How many resources there are.
    pub present: HashMap<PolicyKey, u64>,
}

/// A ballot that counts, as an audit sees it.
#[derive(Debug, Clone, Copy)]
pub struct AuditedBallot {
    /// Where it was cast.
    pub contest: ContestId,
    /// What it supports.
    pub candidate: CandidateId,
    /// Who cast it.
    pub voter: VoterKey,
    /// Decides which of a voter's ballots is newest.
    pub accept_order: AcceptOrder,
    /// The voter counts by itself.
    pub identified: bool,
}
