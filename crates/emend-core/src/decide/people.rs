//! What people do where votes decide: approve, reject, put, delete, revert. A value set by a person pins its contest; a value removed by a
//! person does not come back by votes.

use super::{Cause, Evaluation, Refusal, second, votes};
use crate::{
    candidate::{Hold, Origin, Reason, Status},
    ids::CandidateId,
    resource::ResourceValue,
};

/// Applies a candidate, or its edited form as a separate candidate, and pins the contest.
pub(super) fn approve(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    edited: Option<&ResourceValue>,
    reason: Option<&str>,
    is_second: bool,
) -> Result<(), Refusal> {
    let original = evaluation.state.candidate(id).ok_or(Refusal::UnknownCandidate)?;
    let edited = edited.filter(|edited| **edited != original.value);
    if original.status == Status::Applied && edited.is_none() {
        return Err(Refusal::AlreadyApplied);
    }
    let confirmed_edit = original.edited_from.filter(|_| original.awaits_second());
    check_kind(evaluation, edited)?;
    check_room(evaluation)?;
    if evaluation.needs_second(is_second) {
        return second::where_votes_decide(evaluation, id, edited, reason);
    }
    evaluation.cause = Cause::Review;
    let applied = match edited {
        None => id,
        Some(edited) => {
            let (new, was_made) = evaluation.candidate_for(edited, Origin::Review, Status::Pending);
            set_value(evaluation, new, edited);
            if was_made && let Some(candidate) = evaluation.state.candidate_mut(new) {
                candidate.edited_from = Some(id);
            }
            if new != id {
                evaluation.move_to(id, Status::Superseded, None);
            }
            new
        }
    };
    if let Some(edited_from) = confirmed_edit
        && second::waits(evaluation, edited_from)
    {
        evaluation.move_to(edited_from, Status::Superseded, None);
    }
    settle(evaluation, applied, reason);
    Ok(())
}

/// Rejects a candidate. If its value was applied it is removed, and another candidate with enough votes may replace it.
pub(super) fn reject(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: &str) -> Result<(), Refusal> {
    let status = evaluation
        .state
        .candidate(id)
        .ok_or(Refusal::UnknownCandidate)?
        .status;
    if status == Status::Rejected {
        return Err(Refusal::AlreadyRejected);
    }
    evaluation.cause = Cause::Review;
    evaluation.subject = Some(id);
    note(evaluation, id, Some(reason));
    evaluation.move_to(id, Status::Rejected, None);
    if status == Status::Applied {
        evaluation.state.pinned = false;
    }
    votes::evaluate(evaluation);
    Ok(())
}

/// Sets the value and pins the contest.
pub(super) fn put(
    evaluation: &mut Evaluation<'_>,
    value: &ResourceValue,
    origin: Origin,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    check_kind(evaluation, Some(value))?;
    check_room(evaluation)?;
    evaluation.cause = if origin == Origin::Import {
        Cause::Import
    } else {
        Cause::Operator
    };
    let (id, _) = evaluation.candidate_for(value, origin, Status::Pending);
    set_value(evaluation, id, value);
    settle(evaluation, id, reason);
    Ok(())
}

/// Deletes the value. Votes do not restore the same value; another may still be learned.
pub(super) fn delete(evaluation: &mut Evaluation<'_>, reason: Option<&str>) -> Result<(), Refusal> {
    if evaluation.state.resource.is_none() {
        return Err(Refusal::NoResource);
    }
    evaluation.cause = Cause::Operator;
    if let Some(id) = evaluation.state.applied().map(|applied| applied.id) {
        note(evaluation, id, reason);
        evaluation.hold(id, Some(Hold::Deleted));
        evaluation.move_to(id, Status::Withdrawn, Some(Reason::Deleted));
    }
    evaluation.state.pinned = false;
    Ok(())
}

/// Restores the value before the revision and pins the contest. The reverted value waits for a person, whatever arrives
/// late. One that only a person set, and that nobody else proposes, is withdrawn: it waits once somebody votes for it. Where a
/// reviewer had edited it, what was proposed waits again in its place.
pub(super) fn revert(
    evaluation: &mut Evaluation<'_>,
    restore: Option<&ResourceValue>,
    reason: &str,
) -> Result<(), Refusal> {
    check_kind(evaluation, restore)?;
    if restore.is_some() {
        check_room(evaluation)?;
    }
    evaluation.cause = Cause::Revert;
    let restored_id = restore.map(|value| value.candidate_id(evaluation.state.id()));
    if let Some(reverted) = evaluation.state.applied().map(|applied| applied.id)
        && Some(reverted) != restored_id
    {
        note(evaluation, reverted, Some(reason));
        evaluation.hold(reverted, Some(Hold::Reverted));
        let status = if is_proposed(evaluation, reverted) {
            Status::AwaitingReview
        } else {
            Status::Withdrawn
        };
        evaluation.move_to(reverted, status, Some(Reason::Reverted));
        let candidate = evaluation.state.candidate(reverted);
        let edited_from = candidate.and_then(|candidate| candidate.edited_from);
        if let Some(original) = edited_from.filter(|id| Some(*id) != restored_id)
            && evaluation
                .state
                .candidate(original)
                .map(|original| original.status)
                == Some(Status::Superseded)
            && is_proposed(evaluation, original)
        {
            evaluation.hold(original, Some(Hold::Reverted));
            evaluation.move_to(original, Status::AwaitingReview, Some(Reason::Reverted));
        }
    }
    match restore {
        None => evaluation.state.pinned = true,
        Some(value) => {
            let (id, _) = evaluation.candidate_for(value, Origin::Operator, Status::Pending);
            set_value(evaluation, id, value);
            settle(evaluation, id, Some(reason));
        }
    }
    Ok(())
}

/// Whether somebody else than the person who set it proposes it.
fn is_proposed(evaluation: &Evaluation<'_>, id: CandidateId) -> bool {
    let candidate = evaluation.state.candidate(id);
    let was_mined = candidate.is_some_and(|candidate| candidate.origin == Origin::Mined);
    was_mined || evaluation.tally.of(id).voters > 0
}

/// Removes the value, because the user whose own it is has been erased.
pub(super) fn erase(evaluation: &mut Evaluation<'_>) {
    evaluation.cause = Cause::Erasure;
    if let Some(id) = evaluation.state.applied().map(|applied| applied.id) {
        evaluation.move_to(id, Status::Withdrawn, Some(Reason::Erased));
    }
    evaluation.state.pinned = false;
}

/// A person's decision: applies the candidate, lifts any hold on it, and pins the contest.
fn settle(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: Option<&str>) {
    note(evaluation, id, reason);
    evaluation.hold(id, None);
    evaluation.apply(id, false);
    evaluation.subject = Some(id);
    evaluation.state.pinned = true;
}

pub(super) fn note(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: Option<&str>) {
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.decision_reason = reason.map(str::to_owned);
    }
}

/// A person's wording replaces that of the first reporter.
pub(super) fn set_value(evaluation: &mut Evaluation<'_>, id: CandidateId, value: &ResourceValue) {
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.value = value.clone();
    }
}

pub(super) fn check_kind(evaluation: &Evaluation<'_>, value: Option<&ResourceValue>) -> Result<(), Refusal> {
    let kind = evaluation.state.key.kind;
    match value {
        Some(value) if value.learned.kind() != kind => Err(Refusal::WrongKind),
        _ => Ok(()),
    }
}

pub(super) fn check_room(evaluation: &Evaluation<'_>) -> Result<(), Refusal> {
    if evaluation.state.full && evaluation.state.resource.is_none() {
        Err(Refusal::Full)
    } else {
        Ok(())
    }
}
