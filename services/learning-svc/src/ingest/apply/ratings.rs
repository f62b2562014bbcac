//! Ratings in a group of events.

use std::collections::HashMap;

use emend_base::Error;
use emend_core::{
    Caller, ContestId, Event, FeedbackId, Kind, Outcome, Proposal, Rated, RatedId, Rating, Reason,
    ResourceKey, decide::Exclusion, voter::VoterKey,
};
use emend_proto::common::v1 as pb;
use jiff::Timestamp;
use learning_store::{
    UnitOfWork,
    ingest::Seen,
    outputs::{KnownRating, OfVoter},
};

use super::group::{Group, attribution, of_effects, outcome_of};
use crate::{
    decisions::{answers::no_effect, numbering::RevisionChoice, open::RatingsAhead},
    failure::Failure,
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
};

/// The ratings that these events may be about, as they are stored. Votes ask for none, nor does what is done with them:
/// a feedback that has ballots is no rating.
pub(super) async fn known(
    tx: &mut dyn UnitOfWork,
    events: &[IngestEvent],
    seen: &Seen,
) -> Result<HashMap<FeedbackId, KnownRating>, Failure> {
    let may_be_rating = |event: &&IngestEvent| match &event.change {
        FeedbackChange::Recorded(_) => recorded(event).is_some(),
        FeedbackChange::Retracted { .. } | FeedbackChange::Redacted { .. } => {
            !seen.ballots.contains_key(&event.feedback)
        }
        FeedbackChange::ReporterErased { .. }
        | FeedbackChange::Mined { .. }
        | FeedbackChange::Unanswered { .. } => false,
    };
    let mut feedback: Vec<FeedbackId> = events
        .iter()
        .filter(may_be_rating)
        .map(|event| event.feedback)
        .collect();
    feedback.sort_unstable();
    feedback.dedup();
    if feedback.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(tx.ratings().known(&feedback).await?)
}

/// What the events are about, of ratings as they are stored.
pub(super) fn ahead(events: &[IngestEvent], known: &HashMap<FeedbackId, KnownRating>) -> RatingsAhead {
    let mut ahead = RatingsAhead::default();
    // Of each voter and output, how many ratings the events exclude.
    let mut excluded: HashMap<(ContestId, VoterKey, RatedId), u32> = HashMap::new();
    for event in events {
        let (contest, voter, rated, leaving) =
            if let (Some((key, rating)), FeedbackChange::Recorded(recorded)) =
                (recorded(event), &event.change)
            {
                let voter = recorded.voter(&event.namespace).key;
                (key.contest_id(), voter, rating.rated_id(), 0)
            } else if let Some(KnownRating { key, rated }) = known.get(&event.feedback) {
                (key.contest_id(), rated.voter, rated.rated, 1)
            } else {
                continue;
            };
        *excluded.entry((contest, voter, rated)).or_default() += leaving;
        *ahead.outputs.entry((contest, rated)).or_default() += 1;
    }
    ahead.voters = excluded
        .into_iter()
        .map(|((contest, voter, rated), leaving)| OfVoter {
            contest,
            voter,
            rated,
            limit: leaving + 1,
        })
        .collect();
    ahead.known = known
        .values()
        .map(|known| (known.key.contest_id(), known.rated.clone()))
        .collect();
    ahead
}

/// The contest and the rating that an event records, if it records one.
fn recorded(event: &IngestEvent) -> Option<(&ResourceKey, &Rating)> {
    let FeedbackChange::Recorded(recorded) = &event.change else {
        return None;
    };
    recorded
        .effects
        .iter()
        .find_map(|effect| Some((&effect.key, effect.rating.as_deref()?)))
}

impl Group {
    pub(super) fn record_rating(
        &mut self,
        event: &IngestEvent,
        recorded: &Recorded,
        effect: &Proposal,
        choice: RevisionChoice,
    ) -> Result<Outcome, Failure> {
        let key = &effect.key;
        let rating = effect
            .rating
            .as_ref()
            .ok_or_else(|| Error::internal(format!("feedback {} is no rating", event.feedback)))?;
        let excluded = if self.retracted.contains_key(&event.feedback) {
            Some(Exclusion::Retraction)
        } else if recorded.erased.is_some() || self.redacted.contains(&event.feedback) {
            Some(Exclusion::Redaction)
        } else {
            None
        };
        let rated = Rated {
            feedback: event.feedback,
            accept_order: event.accept_order,
            voter: recorded.voter(&event.namespace).key,
            rated: rating.rated_id(),
            class: rating.class,
            prompt_version: rating.prompt_version.clone(),
            received_at: recorded.received_at,
            excluded: excluded.is_some(),
            live: false,
            texts: rating.shown_texts(),
        };
        let happened = Event::Rated {
            rating: Box::new(rated.clone()),
            excluded,
        };
        let attribution = attribution(event, &recorded.caller, recorded.received_at);
        let made = self
            .unit
            .decide(key.contest_id(), &happened, &attribution, choice);
        let outcome = outcome_of(made, event)?;
        let known = KnownRating {
            key: key.clone(),
            rated,
        };
        self.ratings.insert(event.feedback, known);
        Ok(outcome)
    }

    /// Makes a known rating count no longer.
    pub(super) fn exclude_rating(
        &mut self,
        event: &IngestEvent,
        caller: &Caller,
        at: Timestamp,
        by: Exclusion,
    ) -> Result<pb::Outcome, Failure> {
        let (reason, message) = match by {
            Exclusion::Retraction => (Reason::Retracted, "Taken back: it does not count."),
            Exclusion::Redaction => (
                Reason::Redacted,
                "Its texts are erased; it did not count any more.",
            ),
        };
        let Some(known) = self
            .ratings
            .get_mut(&event.feedback)
            .filter(|known| !known.rated.excluded)
        else {
            return Ok(pb::Outcome {
                kind: Kind::FewShotSet.number(),
                ..no_effect(None, reason.name(), message, self.now)
            });
        };
        known.rated.excluded = true;
        let contest = known.key.contest_id();
        let happened = Event::RatingExcluded {
            feedback: event.feedback,
            by,
        };
        let attribution = attribution(event, caller, at);
        let made = self
            .unit
            .decide(contest, &happened, &attribution, RevisionChoice::Own);
        of_effects(vec![outcome_of(made, event)?], event)
    }
}
