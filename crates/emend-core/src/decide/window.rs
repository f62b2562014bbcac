//! What ratings do: the newest outputs of each class are the value.
//!
//! Of the ratings by one voter of one output the newest that is not excluded is live. What more of an output's live ratings
//! say, good or bad, is its class; the newest of those that say so gives its place. The value is a function of the live
//! ratings and the policy alone, so the order in which ratings, retractions and redactions arrive does not matter. While the
//! policy is frozen ratings change nothing. Where one that is excluded may have been heard in an example, that is taken out
//! of what is shown, and nothing takes its place: made anew, it would show what came meanwhile.

use std::cmp::Reverse;

use super::{Cause, Evaluation, Event, Exclusion, Refusal, ResourceChange};
use crate::{
    candidate::Reason,
    contest::ContestState,
    ids::FeedbackId,
    kinds::WindowRules,
    outcome::{Outcome, OutcomeState},
    ratings::{OutputTally, Rated, RatingClass},
    resource::ResourceValue,
    roles::RiskLevel,
};

/// What is shown after an event.
pub(super) struct WindowValue {
    pub(super) value: Option<ResourceValue>,
    /// The rating that the event is about.
    reported: Option<Reported>,
}

struct Reported {
    rating: Rated,
    /// What excludes it.
    excluded: Option<Exclusion>,
    /// Whether its output is one of its class.
    is_of_its_class: bool,
    /// Whether its output would stand among those of its class, were it not for what `waits` says.
    is_due: bool,
    /// Why what is due is not shown.
    waits: Option<Reason>,
}

/// All refusals happen before anything changes.
pub(super) fn apply_event(
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
        Event::PolicyChanged | Event::TargetArrived | Event::TargetGone => {
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
        | Event::Undo { .. }
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

/// Of the ratings of that output by that voter the newest that is not excluded is live, and no other. The output's tally
/// follows.
fn settle(evaluation: &mut Evaluation<'_>, feedback: FeedbackId) {
    let ContestState { ratings, outputs, .. } = &mut evaluation.state;
    let Some(rating) = ratings.iter().find(|rating| rating.feedback == feedback) else {
        return;
    };
    let (voter, rated) = (rating.voter, rating.rated);
    let at = outputs.iter().position(|output| output.rated == rated);
    let mut tally = at.map_or(OutputTally::new(rated), |at| outputs.remove(at));
    let mut same: Vec<&mut Rated> = ratings
        .iter_mut()
        .filter(|rating| (rating.voter, rating.rated) == (voter, rated))
        .collect();
    same.sort_unstable_by_key(|rating| (rating.excluded, Reverse(rating.place())));
    for (index, rating) in same.into_iter().enumerate() {
        let live = index == 0 && !rating.excluded;
        if rating.live != live {
            rating.live = live;
            tally.count(rating.class, live);
        }
    }
    tally.find_place(ratings.iter());
    outputs.push(tally);
}

fn show(
    evaluation: &Evaluation<'_>,
    rules: &WindowRules,
    about: Option<(FeedbackId, Option<Exclusion>)>,
) -> WindowValue {
    let state = &evaluation.state;
    let due = evaluation
        .policy
        .window_value(rules, &state.outputs, &state.ratings);
    let current = state.resource.as_ref();
    let waits = if evaluation.policy.frozen {
        Some(Reason::Frozen)
    } else if state.full && current.is_none() {
        Some(Reason::ResourceLimit)
    } else {
        None
    };
    let reported = about.and_then(|(feedback, excluded)| {
        let rating = state.ratings.iter().find(|rating| rating.feedback == feedback)?;
        let output = state.outputs.iter().find(|output| output.rated == rating.rated);
        Some(Reported {
            rating: rating.clone(),
            excluded,
            is_of_its_class: output.and_then(OutputTally::class) == Some(rating.class),
            is_due: due
                .as_ref()
                .is_some_and(|due| (rules.shows)(due, rating.rated, rating.class)),
            waits,
        })
    });
    let learned = match (waits, &reported) {
        (None, _) => due,
        // What is excluded is not shown a moment longer. What was excluded before it arrived never was.
        (
            Some(_),
            Some(Reported {
                rating,
                excluded: Some(_),
                ..
            }),
        ) if evaluation.cause != Cause::Rating => {
            current.and_then(|current| (rules.without)(&current.value.learned, rating.rated, rating.class))
        }
        (Some(_), _) => current.map(|current| current.value.learned.clone()),
    };
    WindowValue {
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
    let WindowValue { value, reported } = evaluation.window.as_ref()?;
    let Reported {
        rating,
        excluded,
        is_of_its_class,
        is_due,
        waits,
    } = reported.as_ref()?;
    let shows = |value: Option<&ResourceValue>| {
        value.is_some_and(|value| (rules.shows)(&value.learned, rating.rated, rating.class))
    };
    let before = evaluation.state.resource.as_ref().map(|current| &current.value);
    let is_shown = shows(value.as_ref());
    let (state, reason) = match excluded {
        Some(by) => {
            let reason = match by {
                Exclusion::Retraction => Reason::Retracted,
                Exclusion::Redaction => Reason::Redacted,
            };
            let state = if shows(before) && !is_shown {
                OutcomeState::Withdrawn
            } else {
                OutcomeState::NoEffect
            };
            (state, Some(reason))
        }
        None if rating.class == RatingClass::Neutral => (OutcomeState::NoEffect, Some(Reason::Neutral)),
        None if !rating.live => (OutcomeState::NoEffect, Some(Reason::Replaced)),
        None if is_shown => (OutcomeState::Applied, None),
        None if *is_due && waits.is_some() => (OutcomeState::Pending, *waits),
        None if !is_of_its_class => (OutcomeState::NoEffect, Some(Reason::Outvoted)),
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
        state == OutcomeState::Applied && change.is_some(),
        evaluation.now,
    ))
}
