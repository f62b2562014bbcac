//! Decides what is learned: `decide(state, event, policy, now) -> Decision`, pure.
//!
//! A contest may have many ballots, so `decide` takes it by value and gives it back: nothing is copied, and the tally
//! is maintained from one event to the next.
//!
//! Votes follow one rule: a candidate is promoted, superseding the applied value, when its net confirmations (its
//! supporters minus those of its strongest rival, the applied value included) reach the threshold. A tie changes
//! nothing. Votes never replace what a person set and never restore what a person removed.
//!
//! A window decides without candidates: its value is a function of the outputs that were rated, each with what its live
//! ratings come to. There may be many of both, so the state holds only some:
//!
//! * Outputs: those that the events ahead are about, and the newest others of each class, as many as are shown.
//! * The newest live ratings of each such output and class: as many as an example is made of
//!   ([`voices`](crate::ratings::voices)), and one more for each event about the output.
//! * The ratings that the events ahead are about. For each of their voters and outputs also the newest ratings that are not
//!   excluded: one more than these events exclude.
//!
//! `event` lists what can happen to a contest, and there is a module for each way to decide. None must know where the state
//! came from or how a decision is stored.

mod decidable;
mod decision;
mod evaluation;
mod event;
mod people;
mod review;
mod ruling;
mod second;
#[cfg(test)]
mod tests;
mod undo;
mod votes;
mod window;

use jiff::Timestamp;

use self::evaluation::{Evaluation, ReportedCandidate};
pub use self::{
    decidable::Decidable,
    decision::{Cause, Decision, Refusal, Refused, ResourceChange, Transition},
    event::{Event, Exclusion},
    undo::{CandidateBefore, ChangedCandidate, UndoableDecision},
};
use crate::{contest::ContestState, kinds::Rule, policy::Policy, resource::ResourceValue};

/// Decides what follows from `event`. Pure: equal arguments give equal decisions.
pub fn decide(
    state: ContestState,
    event: &Event,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Box<Refused>> {
    let rule = &state.key.kind.rules().rule;
    decide_by(rule, state, event, policy, now)
}

/// Decides by that rule, whatever the kind of the contest is.
pub(crate) fn decide_by(
    rule: &Rule,
    state: ContestState,
    event: &Event,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Box<Refused>> {
    if matches!(rule, Rule::Votes { .. })
        && let Some(value) = event.proposed()
        && !has_an_id_of_its_own(value, event, &state)
    {
        let refusal = Refusal::SameId;
        return Err(Box::new(Refused { state, refusal }));
    }
    // Insert a new ballot before the first count, so that recording counts only once. Rulings are not counted.
    let cast = match (event, rule) {
        (Event::Recorded { ballot, .. }, Rule::Votes { .. }) => Some(ballot),
        _ => None,
    };
    let was_pinned = state.pinned;
    let before = event.reviewed().map(|_| state.candidates.clone());
    let mut evaluation = Evaluation::new(state, cast, policy, now);
    let applied = match rule {
        Rule::Votes { .. } => apply_event(&mut evaluation, event),
        Rule::Ruling(rules) => ruling::apply_event(&mut evaluation, rules, event),
        Rule::Window(rules) => window::apply_event(&mut evaluation, rules, event),
        Rule::Review(rules) => review::apply_event(&mut evaluation, *rules, event),
    };
    match applied {
        Ok(()) => {
            let mut decision = evaluation.finish(rule);
            if decision.counts(event, was_pinned) {
                decision.after.decisions += 1;
            }
            if let (Some(candidate), Some(before)) = (event.reviewed(), before) {
                let undoable = UndoableDecision::of(&decision, candidate, &before, was_pinned);
                decision.undoable = Some(undoable);
            }
            Ok(decision)
        }
        Err(refusal) => Err(Box::new(Refused {
            state: evaluation.state,
            refusal,
        })),
    }
}

/// Whether no other value of the contest has the id of this one, which is a hash.
fn has_an_id_of_its_own(value: &ResourceValue, event: &Event, state: &ContestState) -> bool {
    let id = match event {
        // The same, and derived already.
        Event::Recorded { ballot, .. } => ballot.candidate,
        _ => value.candidate_id(state.id()),
    };
    state.candidate(id).is_none_or(|known| known.value.is_same(value))
}

/// All refusals happen before anything changes.
fn apply_event(evaluation: &mut Evaluation<'_>, event: &Event) -> Result<(), Refusal> {
    match event {
        Event::Recorded {
            ballot,
            value,
            origin,
            personal_data,
            ..
        } => votes::record(evaluation, ballot, value, *origin, *personal_data),
        Event::Retracted { ballot, .. } => votes::retract(evaluation, ballot),
        Event::Mined { value } => votes::mine(evaluation, value),
        Event::Rated { .. } | Event::RatingExcluded { .. } => return Err(Refusal::WrongKind),
        Event::PolicyChanged => votes::reevaluate(evaluation),
        Event::Approve {
            candidate,
            edited,
            reason,
            is_second,
        } => {
            let edited = edited.as_ref();
            people::approve(evaluation, *candidate, edited, reason.as_deref(), *is_second)?;
        }
        Event::Reject { candidate, reason } => people::reject(evaluation, *candidate, reason)?,
        Event::Undo { decision } => undo::where_votes_decide(evaluation, decision)?,
        Event::Put {
            value,
            origin,
            reason,
        } => people::put(evaluation, value, *origin, reason.as_deref())?,
        Event::Delete { reason } => people::delete(evaluation, reason.as_deref())?,
        Event::Revert { restore, reason, .. } => people::revert(evaluation, restore.as_ref(), reason)?,
        Event::Erase => people::erase(evaluation),
        Event::TargetArrived | Event::TargetGone => {}
        Event::Proposed { .. } | Event::MakeCurrent { .. } => return Err(Refusal::NotByReview),
    }
    Ok(())
}
