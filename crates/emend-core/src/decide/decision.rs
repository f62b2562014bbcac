//! What follows from an event: a decision, or a refusal.

use super::{Event, UndoableDecision};
use crate::{
    candidate::{Reason, Status},
    contest::{ContestState, CurrentResource},
    ids::{CandidateId, Revision},
    outcome::Outcome,
    policy::MAX_SCOPES,
    resource::ResourceValue,
};

/// Why a resource changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Votes reached the threshold.
    Votes,
    /// A person approved or rejected a candidate.
    Review,
    /// An operator put or deleted the resource.
    Operator,
    /// A bulk import, as a person's decision.
    Import,
    /// A revision was reverted.
    Revert,
    /// A retraction left the value with fewer supporters than the threshold, or took a ruling back.
    Retraction,
    /// A changed policy was applied to pending candidates.
    Policy,
    /// The user whose own it was, or what a person had said, has been erased.
    Erasure,
    /// A correction of an entitled person or agent came into force.
    Ruling,
    /// A rating became an example, or took the place of one.
    Rating,
    /// A person's approval or rejection of a candidate was undone.
    Undo,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 11] = [
        Self::Votes,
        Self::Review,
        Self::Operator,
        Self::Import,
        Self::Revert,
        Self::Retraction,
        Self::Policy,
        Self::Erasure,
        Self::Ruling,
        Self::Rating,
        Self::Undo,
    ];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Votes => 1,
            Self::Review => 2,
            Self::Operator => 3,
            Self::Import => 4,
            Self::Revert => 5,
            Self::Retraction => 6,
            Self::Policy => 7,
            Self::Erasure => 8,
            Self::Ruling => 9,
            Self::Rating => 10,
            Self::Undo => 11,
        }
    }

    /// The cause with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.number() == number)
    }
}

/// Why an event was refused. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The contest has no such candidate.
    #[error("the contest has no such candidate")]
    UnknownCandidate,
    /// The candidate is already applied.
    #[error("the candidate is applied already")]
    AlreadyApplied,
    /// The candidate is already rejected.
    #[error("the candidate is rejected already")]
    AlreadyRejected,
    /// There is no resource to delete.
    #[error("there is no resource")]
    NoResource,
    /// The ruling was rejected, which is for good.
    #[error("the ruling was rejected, which is for good")]
    RejectedForGood,
    /// The ruling was taken back.
    #[error("the ruling was taken back")]
    TakenBack,
    /// What was proposed was made for another version than the one that is current.
    #[error("it was made for another version than the one that is current")]
    BaseChanged,
    /// Only what was approved before can be made current.
    #[error("it was never approved: approve it instead")]
    NotApproved,
    /// The kind is not decided by review.
    #[error("this kind is not decided by review")]
    NotByReview,
    /// The kind is not decided by votes.
    #[error("this kind is not decided by votes")]
    NotByVotes,
    /// The value says that nothing applies.
    #[error("a clear has no value: delete the resource instead")]
    NoValue,
    /// A window of ratings decides what applies, and nobody else.
    #[error("its value follows from ratings: retract or redact a rating instead")]
    Window,
    /// The value's kind is not the contest's.
    #[error("the value is of another kind than the key")]
    WrongKind,
    /// Another key, or another value of the contest, has the same id.
    #[error("this id already belongs to another candidate; change the value slightly and try again")]
    SameId,
    /// The contest has changed since the decision that is to be undone.
    #[error("the contest has changed since: only its last decision can be undone")]
    NotTheLastDecision,
    /// The namespace holds as many resources of the kind as the policy allows, or this would be one more than
    /// [`MAX_SCOPES`] kinds in namespaces that hold any.
    #[error(
        "the namespace has as many resources of this kind as its policy allows, or {MAX_SCOPES} pairs of namespace \
         and kind, the maximum, have resources already"
    )]
    Full,
}

/// An event that was refused, with the contest as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The contest, unchanged.
    pub state: ContestState,
    /// Why.
    pub refusal: Refusal,
}

/// A change of a candidate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The candidate.
    pub candidate: CandidateId,
    /// The previous status; `None` if the candidate was created.
    pub from: Option<Status>,
    /// The new status.
    pub to: Status,
    /// The reason for the new status.
    pub reason: Option<Reason>,
}

/// What happens to the contest's resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChange {
    /// It gets this value.
    Put {
        /// The candidate that is applied; none where a window of ratings decides.
        candidate: Option<CandidateId>,
        /// Its value.
        value: ResourceValue,
    },
    /// It is deleted.
    Delete {
        /// The candidate that was applied.
        candidate: Option<CandidateId>,
    },
}

impl ResourceChange {
    /// The candidate that is applied or whose value is deleted.
    pub fn candidate(&self) -> Option<CandidateId> {
        match self {
            Self::Put { candidate, .. } | Self::Delete { candidate } => *candidate,
        }
    }
}

/// The result of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The contest to store. If a revision is written, [`Decision::stamp`] adds it.
    pub after: ContestState,
    /// Status changes, in order.
    pub transitions: Vec<Transition>,
    /// What happens to the resource; `None`: it stays as it is, and no revision is written.
    pub resource: Option<ResourceChange>,
    /// Why.
    pub cause: Cause,
    /// The version of the policy used.
    pub policy_version: i64,
    /// What the reporter is told; only for recorded and retracted corrections.
    pub outcome: Option<Outcome>,
    /// The candidate that was proposed, applied or rejected; none for events that are about no single one.
    pub subject: Option<CandidateId>,
    /// What it takes to undo it; only of a person's approval or rejection.
    pub undoable: Option<UndoableDecision>,
}

impl Decision {
    /// Whether it counts as one of the contest's decisions, after which no earlier one can be undone: a person made it, or the
    /// resource, the pin or what is applied or rejected changed. That somebody proposes something else does not.
    pub(super) fn counts(&self, event: &Event, was_pinned: bool) -> bool {
        let decides = |status| matches!(status, Status::Applied | Status::Rejected);
        event.is_by_person()
            || matches!(event, Event::Erase)
            || self.resource.is_some()
            || self.after.pinned != was_pinned
            || self
                .transitions
                .iter()
                .any(|moved| decides(moved.to) || moved.from.is_some_and(decides))
    }

    /// Records the revision that was written in the state and the outcome.
    pub fn stamp(&mut self, revision: Revision) {
        let Some(change) = &self.resource else { return };
        let applied = self.after.applied().map(|applied| applied.id);
        self.after.resource = match change {
            ResourceChange::Delete { .. } => None,
            ResourceChange::Put { value, .. } => Some(CurrentResource {
                revision,
                value: value.clone(),
            }),
        };
        let subject = self.subject;
        if let Some(candidate) = applied.and_then(|id| self.after.candidate_mut(id)) {
            // A ruling that is in force again came into force by an earlier revision.
            let is_again = candidate.ruling.is_some() && candidate.applied_revision != Revision::default();
            if !is_again || subject == Some(candidate.id) {
                candidate.applied_revision = revision;
            }
        }
        // A ruling may change what another one that is in force comes to.
        if let Some(candidate) = subject.and_then(|id| self.after.candidate_mut(id))
            && candidate.is_effective()
        {
            candidate.applied_revision = revision;
        }
        if let Some(outcome) = &mut self.outcome {
            outcome.revision = revision;
        }
    }
}
