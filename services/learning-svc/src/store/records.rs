//! What is read from a database, parsed into values the rules know.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestState, EventId, FeedbackId, Kind, Namespace,
    Policy, ResourceKey, ResourceValue, Revision, decide::Cause,
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
    /// A client acting for itself.
    pub fn caller(caller: Caller) -> Self {
        Self {
            caller,
            on_behalf_of: String::new(),
        }
    }
}

/// The namespace and kind a policy applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyKey {
    /// The search application.
    pub namespace: Namespace,
    /// The kind.
    pub kind: Kind,
}

impl PolicyKey {
    /// The key of the policy that applies to a resource key.
    pub fn of(key: &ResourceKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            kind: key.kind,
        }
    }
}

/// A policy as stored; if never changed, the default.
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
    /// Its key, equal to the one asked for.
    pub key: ResourceKey,
    /// Whether a person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version that last evaluated it.
    pub policy_version: i64,
    /// Whether anything in it is pending.
    pub pending: bool,
    /// The database's time when it was locked.
    pub locked_at: Timestamp,
}

/// A contest with everything a decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContest {
    /// Its row.
    pub row: LockedContest,
    /// The state to decide on. `full` and the ballots are yet to be filled in.
    pub state: ContestState,
    /// What is stored of its candidates beyond that state.
    pub kept: HashMap<CandidateId, KeptCandidate>,
    /// When its resource was committed, in microseconds since 1970; 0 if there is none.
    pub committed_at: i64,
}

/// What is stored of a candidate beyond the decided state.
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
    /// Whether a person set what applies in its contest.
    pub contest_pinned: bool,
    /// What else is stored of it.
    pub kept: KeptCandidate,
}

/// What is known about some events and feedbacks.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The encoded outcomes of applied events.
    pub outcomes: HashMap<EventId, Bytes>,
    /// Feedbacks with a retraction mark.
    pub retracted: Vec<FeedbackId>,
    /// Feedbacks with a redaction mark.
    pub redacted: Vec<FeedbackId>,
    /// Feedbacks that have a ballot.
    pub ballots: HashMap<FeedbackId, KnownBallot>,
}

/// A stored ballot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBallot {
    /// The contest it was cast in.
    pub key: ResourceKey,
    /// The ballot.
    pub ballot: Ballot,
    /// Whether it was retracted and no longer counts.
    pub retracted: bool,
}

/// The feedback whose arrival decided something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The feedback's id.
    pub feedback: FeedbackId,
    /// When it was received.
    pub received_at: Timestamp,
    /// Its W3C trace context; may be empty.
    pub traceparent: String,
}

/// The head, locked until the unit of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedHead {
    /// The newest revision, including those of this unit of work.
    pub revision: Revision,
    /// The database's time in microseconds since 1970.
    pub now: i64,
}

/// A change of a revision as written, for reverting it.
#[derive(Debug, Clone)]
pub struct WrittenChange {
    /// The resource.
    pub key: ResourceKey,
    /// The value before.
    pub before: Option<ResourceValue>,
    /// The newest revision that changed the resource.
    pub newest: Revision,
    /// Whether the resource was deleted because its user was erased.
    pub by_erasure: bool,
}

/// A feedback that proposed a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackRecord {
    /// The feedback's id.
    pub feedback: FeedbackId,
    /// What the system had chosen; may be empty.
    pub system_choice: String,
    /// The reason given; empty if there was none or it was erased.
    pub reason: String,
    /// Context for the reviewer; empty if there was none or it was erased.
    pub context: BTreeMap<String, String>,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// When it was received.
    pub received_at: Timestamp,
    /// Whether it was retracted and no longer counts.
    pub retracted: bool,
}

/// A revision as auditors see it.
#[derive(Debug, Clone)]
pub struct RevisionRecord {
    /// Its position.
    pub revision: Revision,
    /// The import or bulk action it belongs to; may be empty.
    pub operation: String,
    /// The cause.
    pub cause: Cause,
    /// Who did it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// When it was committed, by the database's clock.
    pub committed_at: Timestamp,
    /// Its changes in the namespace.
    pub changes: Vec<ChangeRecord>,
}

/// What a revision did to one resource, as auditors see it.
#[derive(Debug, Clone)]
pub struct ChangeRecord {
    /// The resource.
    pub key: ResourceKey,
    /// The value before.
    pub before: Option<ResourceValue>,
    /// The value after; none: it was deleted.
    pub after: Option<ResourceValue>,
    /// The candidate applied or removed; may be empty.
    pub candidate: String,
    /// The feedback that caused it; may be empty.
    pub feedback: String,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
}
