//! What happens to a contest.

use super::UndoableDecision;
use crate::{
    ballots::Ballot,
    candidate::Origin,
    ids::{CandidateId, FeedbackId, Revision},
    ratings::Rated,
    resource::ResourceValue,
    roles::Roles,
};

/// Something that happens to a contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A correction proposes a value. Its ballot names the candidate given by [`ResourceValue::candidate_id`].
    Recorded {
        /// The vote it casts.
        ballot: Ballot,
        /// The proposed value.
        value: ResourceValue,
        /// The origin to record if this creates a candidate.
        origin: Origin,
        /// Personal data was found in a GLOBAL key or value.
        personal_data: bool,
        /// The sender's roles.
        sender: Roles,
        /// The roles of who retracted it, where that arrived first. A retracted vote is not recorded at all.
        retracted_by: Option<Roles>,
    },
    /// A correction that counted is retracted.
    Retracted {
        /// The ballot it had cast.
        ballot: Ballot,
        /// The roles of who retracts it.
        sender: Roles,
    },
    /// A rating arrives, for a kind that is decided by a window of ratings.
    Rated {
        /// The rating.
        rating: Box<Rated>,
        /// What arrived before it and excludes it.
        excluded: Option<Exclusion>,
    },
    /// A rating no longer counts.
    RatingExcluded {
        /// Its feedback.
        feedback: FeedbackId,
        /// Why.
        by: Exclusion,
    },
    /// The policy changed.
    PolicyChanged,
    /// A person applies a candidate, as proposed or edited.
    Approve {
        /// The candidate.
        candidate: CandidateId,
        /// The value to apply instead.
        edited: Option<ResourceValue>,
        /// Why.
        reason: Option<String>,
        /// Another reviewer approved the same value before: where it takes two, this approval decides.
        is_second: bool,
    },
    /// A person rejects a candidate.
    Reject {
        /// The candidate.
        candidate: CandidateId,
        /// Why.
        reason: String,
    },
    /// The last approval or rejection is undone.
    Undo {
        /// What that decision changed.
        decision: Box<UndoableDecision>,
    },
    /// A person sets the value.
    Put {
        /// The value.
        value: ResourceValue,
        /// By hand or by import.
        origin: Origin,
        /// Why.
        reason: Option<String>,
    },
    /// A person deletes the value.
    Delete {
        /// Why.
        reason: Option<String>,
    },
    /// A revision is reverted: the value before it is restored.
    Revert {
        /// The revision.
        revision: Revision,
        /// The value before it.
        restore: Option<ResourceValue>,
        /// Why.
        reason: String,
    },
    /// A generator proposes a value for what is current; only where the kind is decided by review.
    Proposed {
        /// The proposal's own bytes: the same ones are the same proposal.
        proposal: Vec<u8>,
        /// The proposed value.
        value: ResourceValue,
    },
    /// A value is proposed that follows from what users did and nobody said; only where votes decide.
    Mined {
        /// The proposed value.
        value: ResourceValue,
    },
    /// A person makes a version current that was approved before; only where the kind is decided by review.
    MakeCurrent {
        /// The version's number.
        version: u32,
        /// What that version says; where the contest has the version itself, its own value applies.
        value: ResourceValue,
        /// Why.
        reason: Option<String>,
    },
    /// What the key names is known now.
    TargetArrived,
    /// What the key names was deleted. What was said of it waits, as if it had never been known.
    TargetGone,
    /// The user whose own contest this is has been erased: the value goes, and with it everything proposed.
    Erase,
}

impl Event {
    /// Whether a person decides something by it.
    pub fn is_by_person(&self) -> bool {
        match self {
            Self::Recorded { .. }
            | Self::Retracted { .. }
            | Self::Rated { .. }
            | Self::RatingExcluded { .. }
            | Self::Proposed { .. }
            | Self::Mined { .. }
            | Self::PolicyChanged
            | Self::TargetArrived
            | Self::TargetGone
            | Self::Erase => false,
            Self::Approve { .. }
            | Self::Reject { .. }
            | Self::Undo { .. }
            | Self::Put { .. }
            | Self::Delete { .. }
            | Self::MakeCurrent { .. }
            | Self::Revert { .. } => true,
        }
    }

    /// The candidate that a person approves or rejects by it.
    pub(super) fn reviewed(&self) -> Option<CandidateId> {
        match self {
            Self::Approve { candidate, .. } | Self::Reject { candidate, .. } => Some(*candidate),
            _ => None,
        }
    }

    /// The value that it proposes, where votes decide.
    pub(super) fn proposed(&self) -> Option<&ResourceValue> {
        match self {
            Self::Recorded { value, .. } | Self::Mined { value } | Self::Put { value, .. } => Some(value),
            Self::Approve { edited, .. } => edited.as_ref(),
            Self::Revert { restore, .. } => restore.as_ref(),
            _ => None,
        }
    }
}

/// Why a rating never counts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exclusion {
    /// It was retracted.
    Retraction,
    /// Its texts were erased.
    Redaction,
}
