//! What ratings do: the newest live ones of each class are the value.
//!
//! Of the ratings by one voter of one output the newest that is not excluded is live. The value is a function of the live
//! ratings and the policy alone, so the order in which ratings, retractions and redactions arrive does not matter. While the
//! policy is frozen ratings change nothing, and what is excluded is taken out of what is shown; nothing takes its place.

use std::cmp::Reverse;

use super::{Cause, Evaluation, Event, Exclusion, Refusal, ResourceChange};
use crate::{
    ids::FeedbackId,
    kinds::WindowRules,
    outcome::{Outcome, OutcomeState, Reason},
    outputs::{Rated, RatingClass},
    policy::RiskLevel,
    resource::ResourceValue,
};

/// What is shown after an event.
pub(super) struct Shown {
    pub(super) value: Option<ResourceValue>,
    /// The rating that the event is about.
    reported: Option<Reported>,
}

struct Reported {
    feedback: FeedbackId,
    /// What excludes it.
    excluded: Option<Exclusion>,
    /// Whether it would be shown, were it not for what `waits` says.
    is_due: bool,
    /// Why what is due is not shown.
    waits: Option<Reason>,
}

/// All refusals happen before anything changes.
pub(super) fn happen(
    evaluation: &mut Evaluation<'_>,
    rules: &WindowRules,
    event: &Event,
) -> Result<(), Refusal> {
    evaluation.risk = RiskLevel::Low;
    evaluation.threshold = 0;
    let about = match event {
        Event::Rated { rating, excluded } => {
            record(evaluation, rating, *excluded);
            evaluation.cause = Cause::Rating;
            Some((rating.feedback, *excluded))
        }
        Event::RatingExcluded { feedback, by } => {
            exclude(evaluation, *feedback);
            evaluation.cause = match by {
                Exclusion::Retraction => Cause::Retraction,
                Exclusion::Redaction => Cause::Erasure,
            };
            Some((*feedback, Some(*by)))
        }
        Event::PolicyChanged | Event::TargetArrived => {
            evaluation.cause = Cause::Policy;
            None
        }
        Event::Recorded { .. }
        | Event::Retracted { .. }
        | Event::Proposed { .. }
        | Event::Mined { .. }
        | Event::MakeCurrent { .. }
        | Event::Approve { .. }
        | Event::Reject { .. }
        | Event::Put { .. }
        | Event::Delete { .. }
        | Event::Revert { .. }
        | Event::Erase => return Err(Refusal::Window),
    };
    evaluation.window = Some(show(evaluation, rules, about));
    Ok(())
}

fn record(evaluation: &mut Evaluation<'_>, rating: &Rated, excluded: Option<Exclusion>) {
    let state = &mut evaluation.state;
    state.highest_accept_order = state.highest_accept_order.max(rating.accept_order);
    state.ratings.push(Rated {
        excluded: excluded.is_some(),
        live: false,
        ..rating.clone()
    });
    settle(evaluation, rating.feedback);
}

fn exclude(evaluation: &mut Evaluation<'_>, feedback: FeedbackId) {
    let mut ratings = evaluation.state.ratings.iter_mut();
    if let Some(rating) = ratings.find(|rating| rating.feedback == feedback) {
        rating.excluded = true;
    }
    settle(evaluation, feedback);
}

/// Of the ratings of that output by that voter the newest that is not excluded is live, and no other.
fn settle(evaluation: &mut Evaluation<'_>, feedback: FeedbackId) {
    let ratings = &mut evaluation.state.ratings;
    let Some(of) = ratings.iter().find(|rating| rating.feedback == feedback) else {
        return;
    };
    let of = (of.voter, of.rated);
    let mut same: Vec<&mut Rated> = ratings
        .iter_mut()
        .filter(|rating| (rating.voter, rating.rated) == of)
        .collect();
    same.sort_unstable_by_key(|rating| (rating.excluded, Reverse(rating.place())));
    for (index, rating) in same.into_iter().enumerate() {
        rating.live = index == 0 && !rating.excluded;
    }
}

fn show(
    evaluation: &Evaluation<'_>,
    rules: &WindowRules,
    about: Option<(FeedbackId, Option<Exclusion>)>,
) -> Shown {
    let state = &evaluation.state;
    let live: Vec<&Rated> = state.ratings.iter().filter(|rating| rating.live).collect();
    let due = (rules.value)(&live, evaluation.policy);
    let current = state.resource.as_ref();
    let waits = if evaluation.policy.frozen {
        Some(Reason::Frozen)
    } else if state.full && current.is_none() {
        Some(Reason::ResourceLimit)
    } else {
        None
    };
    let reported = about.map(|(feedback, excluded)| Reported {
        feedback,
        excluded,
        is_due: due.as_ref().is_some_and(|due| (rules.shows)(due, feedback)),
        waits,
    });
    let learned = match (waits, about) {
        (None, _) => due,
        // What is excluded is not shown a moment longer.
        (Some(_), Some((feedback, Some(_)))) => {
            current.and_then(|current| (rules.without)(&current.value.learned, feedback))
        }
        (Some(_), _) => current.map(|current| current.value.learned.clone()),
    };
    Shown {
        value: learned.map(ResourceValue::of),
        reported,
    }
}

/// What the sender of the rating is told.
pub(super) fn outcome(
    evaluation: &Evaluation<'_>,
    rules: &WindowRules,
    change: Option<&ResourceChange>,
) -> Option<Outcome> {
    let Shown { value, reported } = evaluation.window.as_ref()?;
    let Reported {
        feedback,
        excluded,
        is_due,
        waits,
    } = reported.as_ref()?;
    let rating = evaluation
        .state
        .ratings
        .iter()
        .find(|rating| rating.feedback == *feedback)?;
    let shows =
        |value: Option<&ResourceValue>| value.is_some_and(|value| (rules.shows)(&value.learned, *feedback));
    let before = evaluation.state.resource.as_ref().map(|current| &current.value);
    let is_shown = shows(value.as_ref());
    let (state, reason) = match excluded {
        Some(by) => {
            let reason = match by {
                Exclusion::Retraction => Reason::Retracted,
                Exclusion::Redaction => Reason::Redacted,
            };
            let state = if shows(before) {
                OutcomeState::Withdrawn
            } else {
                OutcomeState::NoEffect
            };
            (state, Some(reason))
        }
        None if is_shown => (OutcomeState::Applied, None),
        None if *is_due && waits.is_some() => (OutcomeState::Pending, *waits),
        None if rating.class == RatingClass::Neutral => (OutcomeState::NoEffect, Some(Reason::Neutral)),
        None if !rating.live => (OutcomeState::NoEffect, Some(Reason::Replaced)),
        None => (OutcomeState::NoEffect, Some(Reason::NotInWindow)),
    };
    let nothing = || ResourceValue::of((rules.nothing)());
    Some(Outcome::of_rating(
        state,
        reason,
        (
            evaluation.state.key.key.as_str(),
            &value.clone().unwrap_or_else(nothing),
        ),
        is_shown && change.is_some(),
        evaluation.now,
    ))
}
