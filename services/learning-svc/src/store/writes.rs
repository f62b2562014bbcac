//! What a unit of work writes, in the rules' terms.

use std::collections::BTreeMap;

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestId, EventId, FeedbackId, OperationId, Policy,
    Reporter, ResourceKey, Revision, Status, decide::Cause,
};
use jiff::Timestamp;

use super::records::{Actor, KeptCandidate, PolicyKey, Trigger};

/// A ballot to store.
#[derive(Debug, Clone)]
pub struct NewBallot {
    /// The contest it is cast in.
    pub contest: ContestId,
    /// The ballot.
    pub ballot: Ballot,
    /// Whether its retraction came first, so that it does not count.
    pub retracted: bool,
    /// What the system chose; may be empty.
    pub system_choice: String,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
}

/// The personal parts of a ballot, kept apart from what counts.
#[derive(Debug, Clone)]
pub struct BallotDetails {
    /// The feedback they belong to.
    pub feedback: FeedbackId,
    /// The reporter.
    pub reporter: Reporter,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// The reason given; may be empty.
    pub reason: String,
    /// Context for the reviewer.
    pub context: BTreeMap<String, String>,
}

/// A retraction or redaction, kept for feedback that arrives late.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The feedback.
    pub feedback: FeedbackId,
    /// The event that made the mark.
    pub event: EventId,
    /// The client that asked for it.
    pub caller: Caller,
    /// When feedback-svc stored it.
    pub at: Timestamp,
}

/// What is written before the head is locked: everything that names no revision.
#[derive(Debug, Clone, Default)]
pub struct VoteWrites {
    /// Inserted.
    pub ballots: Vec<NewBallot>,
    /// Inserted.
    pub details: Vec<BallotDetails>,
    /// Ballots to mark as no longer counted.
    pub retracted: Vec<FeedbackId>,
    /// Details to erase.
    pub erased: Vec<FeedbackId>,
    /// Inserted where there is none yet.
    pub retraction_marks: Vec<Mark>,
    /// Inserted where there is none yet.
    pub redaction_marks: Vec<Mark>,
    /// Changed contests.
    pub contests: Vec<ContestWrite>,
}

/// A contest's row to write.
#[derive(Debug, Clone)]
pub struct ContestWrite {
    /// Its key.
    pub key: ResourceKey,
    /// Whether a person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version that evaluated it.
    pub policy_version: i64,
    /// Whether anything in it is pending.
    pub pending: bool,
}

/// What is written under the head's lock.
#[derive(Debug, Clone, Default)]
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

/// A candidate to write.
#[derive(Debug, Clone)]
pub struct CandidateWrite {
    /// The key of its contest.
    pub key: ResourceKey,
    /// The candidate.
    pub candidate: Candidate,
    /// What else is stored of it.
    pub kept: KeptCandidate,
}

/// A change of a candidate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionWrite {
    /// The candidate.
    pub candidate: CandidateId,
    /// Its place among the candidate's transitions, from 0.
    pub sequence: i64,
    /// The status before; none: it was created.
    pub from: Option<Status>,
    /// The status after.
    pub to: Status,
    /// The cause.
    pub cause: Cause,
    /// In words or as a reason's name; may be empty.
    pub reason: String,
    /// Who did it.
    pub actor: Actor,
    /// When, by the service's clock.
    pub at: Timestamp,
    /// The revision it belongs to; 0 if no resource changed.
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
    /// The cause.
    pub cause: Cause,
    /// Who did it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
}

/// What a revision did to one resource.
#[derive(Debug, Clone)]
pub struct ChangeWrite {
    /// The revision.
    pub revision: Revision,
    /// Its position in the revision, from 0.
    pub ordinal: i32,
    /// The resource.
    pub key: ResourceKey,
    /// The encoded value; none: it was deleted.
    pub value: Option<Bytes>,
    /// The encoded value before; none: there was nothing.
    pub before: Option<Bytes>,
    /// The candidate applied or removed.
    pub candidate: Option<CandidateId>,
    /// The feedback that caused it.
    pub trigger: Option<Trigger>,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
}

/// A resource to write.
#[derive(Debug, Clone)]
pub struct ResourceWrite {
    /// The resource.
    pub key: ResourceKey,
    /// The revision that gave it this value.
    pub revision: Revision,
    /// The encoded value; none: it is deleted.
    pub value: Option<Bytes>,
}

/// An applied event.
#[derive(Debug, Clone)]
pub struct InboxWrite {
    /// The event.
    pub event: EventId,
    /// Its feedback.
    pub feedback: FeedbackId,
    /// When it was applied, by the service's clock.
    pub at: Timestamp,
    /// The encoded `emend.common.v1.Outcome` that was answered.
    pub outcome: Bytes,
}

/// A policy to store as the newest version.
#[derive(Debug, Clone)]
pub struct PolicyWrite {
    /// The namespace and kind it applies to.
    pub key: PolicyKey,
    /// The policy; its version is one above the newest.
    pub policy: Policy,
    /// Who changed it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// When it was changed, by the service's clock.
    pub updated_at: Timestamp,
}
