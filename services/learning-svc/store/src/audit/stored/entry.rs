//! Everything stored about one feedback.

use emend_core::{AcceptOrder, Ballot, ContestId, EventId, FeedbackId, RatingClass, voter::VoterKey};
use emend_proto::common::v1::{Outcome, OutcomeState};

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
}
