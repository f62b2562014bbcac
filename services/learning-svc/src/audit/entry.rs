//! Everything stored about one feedback, and whether its parts agree.

use emend_core::{AcceptOrder, Ballot, ContestId, EventId, FeedbackId, RatingClass, voter::VoterKey};
use emend_proto::common::v1::{Outcome, OutcomeState};
use emend_store::audit::Findings;

use super::{BALLOT_DETAILS, BALLOT_RETRACTED, EFFECT_INBOX, INBOX_EFFECT, RATING_EXCLUDED};
use crate::resources::import::vote_id_of;

/// An applied event.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedEvent {
    /// The event's id.
    pub id: EventId,
    /// The outcome it was told.
    pub outcome: Outcome,
}

/// A ballot as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastBallot {
    /// The contest it was cast in.
    pub contest: ContestId,
    /// The ballot.
    pub ballot: Ballot,
    /// Whether it was retracted and does not count.
    pub retracted: bool,
    /// What the system had chosen; may be empty.
    pub system_choice: String,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
}

/// A rating as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastRating {
    /// The contest it is in.
    pub contest: ContestId,
    /// Its place among all ratings.
    pub accept_order: AcceptOrder,
    /// Who rated.
    pub voter: VoterKey,
    /// What it counts as.
    pub class: RatingClass,
    /// Whether it never counts again.
    pub excluded: bool,
}

/// Everything stored about one feedback.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The feedback's id.
    pub feedback: FeedbackId,
    /// Its applied events.
    pub events: Vec<AppliedEvent>,
    /// The ballots it cast, one for each effect that was not refused.
    pub ballots: Vec<CastBallot>,
    /// The rating that it is, if it is one.
    pub rating: Option<CastRating>,
    /// The event that retracted it.
    pub retraction: Option<EventId>,
    /// The event that erased its personal parts.
    pub redaction: Option<EventId>,
    /// Whether its personal parts are present.
    pub details: bool,
}

impl Entry {
    /// How many effects of its events were refused for good, for size or a limit: those left nothing.
    pub fn refused(&self) -> usize {
        let outcomes = self
            .events
            .iter()
            .flat_map(|event| match &*event.outcome.effects {
                [] => std::slice::from_ref(&event.outcome),
                effects => effects,
            });
        outcomes
            .filter(|outcome| outcome.state() == OutcomeState::Refused)
            .count()
    }

    /// Whether it is a vote cast by an import: its id says so, and no event brought it. feedback-svc does not know it.
    pub fn is_imported(&self) -> bool {
        self.events.is_empty()
            && matches!(&*self.ballots, [ballot] if {
                let cast = &ballot.ballot;
                self.feedback == vote_id_of(&cast.caller, ballot.contest, cast.candidate)
            })
    }

    /// Checks that its parts agree.
    pub fn check(&self, findings: &mut Findings) {
        let id = format!("feedback {}", self.feedback);
        for ballot in &self.ballots {
            if ballot.retracted != self.retraction.is_some() {
                let message = if ballot.retracted {
                    "its ballot does not count, but it is not marked as retracted"
                } else {
                    "it is marked as retracted, but its ballot counts"
                };
                findings.add(BALLOT_RETRACTED, &id, message);
            }
        }
        if !self.ballots.is_empty() {
            if self.details == self.redaction.is_some() {
                let message = if self.details {
                    "its personal parts were to be erased, but still exist"
                } else {
                    "its personal parts are missing, but were never erased"
                };
                findings.add(BALLOT_DETAILS, &id, message);
            }
        } else if self.details {
            findings.add(BALLOT_DETAILS, &id, "it has personal parts, but no ballot");
        }
        let is_excluded = self.rating.as_ref().is_none_or(|rating| rating.excluded);
        if !is_excluded && (self.retraction.is_some() || self.redaction.is_some()) {
            findings.add(
                RATING_EXCLUDED,
                &id,
                "it is marked as retracted or redacted, but its rating counts",
            );
        }
        let applied =
            |mark: Option<EventId>| mark.is_none_or(|mark| self.events.iter().any(|event| event.id == mark));
        let marks = usize::from(self.retraction.is_some()) + usize::from(self.redaction.is_some());
        if !applied(self.retraction) || !applied(self.redaction) {
            findings.add(
                EFFECT_INBOX,
                &id,
                "the event of its retraction or redaction is not in the inbox",
            );
        } else if !self.ballots.is_empty() && self.events.len() <= marks && !self.is_imported() {
            findings.add(EFFECT_INBOX, &id, "the event of its ballot is not in the inbox");
        } else if self.rating.is_some() && self.events.len() <= marks {
            findings.add(EFFECT_INBOX, &id, "the event of its rating is not in the inbox");
        }
        let has_effect = !self.ballots.is_empty() || self.rating.is_some();
        if !self.events.is_empty() && !has_effect && marks == 0 && self.refused() == 0 {
            findings.add(
                INBOX_EFFECT,
                &id,
                "one of its events was applied, but had no effect",
            );
        }
    }
}
