//! What is read of a database, parsed: values that the rules know.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestId, ContestState, EventId, FeedbackId, Kind,
    Namespace, Policy, ResourceKey, ResourceValue, Revision, contest::VoterKey, decide::Cause,
};
use jiff::Timestamp;

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
    /// What is decided upon. `full` and the ballots are yet to be filled in.
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
