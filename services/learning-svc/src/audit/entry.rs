//! What was taken of one feedback, and whether its parts agree.
//!
//! It must know nothing of where it was read from.

use emend_core::{Ballot, ContestId, EventId, FeedbackId};
use emend_proto::common::v1::{Outcome, OutcomeState};
use emend_runtime::audit::Findings;

use super::{BALLOT_DETAILS, BALLOT_RETRACTED, EFFECT_INBOX, INBOX_EFFECT};

/// An event that was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedEvent {
    /// Which.
    pub id: EventId,
    /// What it was told.
    pub outcome: Outcome,
}

/// A ballot as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastBallot {
    /// Where it was cast.
    pub contest: ContestId,
    /// The ballot.
    pub ballot: Ballot,
    /// It does not count.
    pub retracted: bool,
    /// What the system had chosen; may be empty.
    pub system_choice: String,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
}

/// All that was taken of one feedback.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which feedback.
    pub feedback: FeedbackId,
    /// Its events that were applied.
    pub events: Vec<AppliedEvent>,
    /// The ballot that it cast.
    pub ballot: Option<CastBallot>,
    /// The event by which it was taken back.
    pub retraction: Option<EventId>,
    /// The event by which its personal parts were erased.
    pub redaction: Option<EventId>,
    /// Its personal parts are there.
    pub details: bool,
}

impl Entry {
    /// An event of it was refused for good, as too large or too many: it left nothing.
    pub fn was_refused(&self) -> bool {
        self.events
            .iter()
            .any(|event| event.outcome.state() == OutcomeState::Refused)
    }

    /// Whether its parts agree.
    pub fn check(&self, findings: &mut Findings) {
        let id = format!("feedback {}", self.feedback);
        if let Some(ballot) = &self.ballot {
            if ballot.retracted != self.retraction.is_some() {
                let message = if ballot.retracted {
                    "its ballot does not count, but no retraction is marked"
                } else {
                    "it is marked as retracted, but its ballot counts"
                };
                findings.add(BALLOT_RETRACTED, &id, message);
            }
            if self.details == self.redaction.is_some() {
                let message = if self.details {
                    "its personal parts were to be erased, but are there"
                } else {
                    "its personal parts are not there, and nobody had them erased"
                };
                findings.add(BALLOT_DETAILS, &id, message);
            }
        } else if self.details {
            findings.add(BALLOT_DETAILS, &id, "personal parts are there without a ballot");
        }
        let applied =
            |mark: Option<EventId>| mark.is_none_or(|mark| self.events.iter().any(|event| event.id == mark));
        let marks = usize::from(self.retraction.is_some()) + usize::from(self.redaction.is_some());
        if !applied(self.retraction) || !applied(self.redaction) {
            findings.add(EFFECT_INBOX, &id, "the event of a mark is not in the inbox");
        } else if self.ballot.is_some() && self.events.len() <= marks {
            findings.add(EFFECT_INBOX, &id, "the event of its ballot is not in the inbox");
        }
        if !self.events.is_empty() && self.ballot.is_none() && marks == 0 && !self.was_refused() {
            findings.add(INBOX_EFFECT, &id, "an event of it was applied and left nothing");
        }
    }
}
