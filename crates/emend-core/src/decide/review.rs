//! What people do: approve, reject, put, delete, revert. A value set by a person pins its contest; a value removed by a
//! person does not come back by votes.

use super::{Bench, Cause, Refusal, votes};
use crate::{
    contest::{Hold, Origin, Status},
    ids::CandidateId,
    outcome::Reason,
    resource::ResourceValue,
};

/// Applies a candidate, or its edited form as a separate candidate, and pins the contest.
pub(super) fn approve(
    bench: &mut Bench<'_>,
    id: CandidateId,
    edited: Option<&ResourceValue>,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    let original = bench.state.candidate(id).ok_or(Refusal::UnknownCandidate)?;
    let edited = edited.filter(|edited| **edited != original.value);
    if original.status == Status::Applied && edited.is_none() {
        return Err(Refusal::AlreadyApplied);
    }
    check_kind(bench, edited)?;
    check_room(bench)?;
    bench.cause = Cause::Review;
    let applied = match edited {
        None => id,
        Some(edited) => {
            let (new, was_made) = bench.candidate_for(edited, Origin::Review, Status::Pending);
            set_value(bench, new, edited);
            if was_made && let Some(candidate) = bench.state.candidate_mut(new) {
                candidate.edited_from = Some(id);
            }
            if new != id {
                bench.move_to(id, Status::Superseded, None);
            }
            new
        }
    };
    settle(bench, applied, reason);
    Ok(())
}

/// Rejects a candidate. If its value was applied it is removed, and another candidate with enough votes may replace it.
pub(super) fn reject(bench: &mut Bench<'_>, id: CandidateId, reason: &str) -> Result<(), Refusal> {
    let status = bench.state.candidate(id).ok_or(Refusal::UnknownCandidate)?.status;
    if status == Status::Rejected {
        return Err(Refusal::AlreadyRejected);
    }
    bench.cause = Cause::Review;
    note(bench, id, Some(reason));
    bench.move_to(id, Status::Rejected, None);
    if status == Status::Applied {
        bench.state.pinned = false;
    }
    votes::evaluate(bench);
    Ok(())
}

/// Sets the value and pins the contest.
pub(super) fn put(
    bench: &mut Bench<'_>,
    value: &ResourceValue,
    origin: Origin,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    check_kind(bench, Some(value))?;
    check_room(bench)?;
    bench.cause = if origin == Origin::Import {
        Cause::Import
    } else {
        Cause::Operator
    };
    let (id, _) = bench.candidate_for(value, origin, Status::Pending);
    set_value(bench, id, value);
    settle(bench, id, reason);
    Ok(())
}

/// Deletes the value. Votes do not restore the same value; another may still be learned.
pub(super) fn delete(bench: &mut Bench<'_>, reason: Option<&str>) -> Result<(), Refusal> {
    if bench.state.resource.is_none() {
        return Err(Refusal::NoResource);
    }
    bench.cause = Cause::Operator;
    if let Some(id) = bench.state.applied().map(|applied| applied.id) {
        note(bench, id, reason);
        bench.hold(id, Some(Hold::Deleted));
        bench.move_to(id, Status::Withdrawn, Some(Reason::Deleted));
    }
    bench.state.pinned = false;
    Ok(())
}

/// Restores the value before the revision and pins the contest. The reverted value waits for a person, whatever arrives
/// late.
pub(super) fn revert(
    bench: &mut Bench<'_>,
    restore: Option<&ResourceValue>,
    reason: &str,
) -> Result<(), Refusal> {
    check_kind(bench, restore)?;
    if restore.is_some() {
        check_room(bench)?;
    }
    bench.cause = Cause::Revert;
    let restored_id = restore.map(|value| value.candidate_id(bench.state.id()));
    if let Some(reverted) = bench.state.applied().map(|applied| applied.id)
        && Some(reverted) != restored_id
    {
        note(bench, reverted, Some(reason));
        bench.hold(reverted, Some(Hold::Reverted));
        bench.move_to(reverted, Status::AwaitingReview, Some(Reason::Reverted));
    }
    match restore {
        None => bench.state.pinned = true,
        Some(value) => {
            let (id, _) = bench.candidate_for(value, Origin::Operator, Status::Pending);
            set_value(bench, id, value);
            settle(bench, id, Some(reason));
        }
    }
    Ok(())
}

/// Removes the value, because the user whose own it is has been erased.
pub(super) fn erase(bench: &mut Bench<'_>) {
    bench.cause = Cause::Erasure;
    if let Some(id) = bench.state.applied().map(|applied| applied.id) {
        bench.move_to(id, Status::Withdrawn, Some(Reason::Erased));
    }
    bench.state.pinned = false;
}

/// A person's decision: applies the candidate, lifts any hold on it, and pins the contest.
fn settle(bench: &mut Bench<'_>, id: CandidateId, reason: Option<&str>) {
    note(bench, id, reason);
    bench.hold(id, None);
    bench.apply(id, false);
    bench.state.pinned = true;
}

fn note(bench: &mut Bench<'_>, id: CandidateId, reason: Option<&str>) {
    if let Some(candidate) = bench.state.candidate_mut(id) {
        candidate.decision_reason = reason.map(str::to_owned);
    }
}

/// A person's wording replaces that of the first reporter.
fn set_value(bench: &mut Bench<'_>, id: CandidateId, value: &ResourceValue) {
    if let Some(candidate) = bench.state.candidate_mut(id) {
        candidate.value = value.clone();
    }
}

fn check_kind(bench: &Bench<'_>, value: Option<&ResourceValue>) -> Result<(), Refusal> {
    let kind = bench.state.key.kind;
    match value {
        Some(value) if value.learned.kind() != kind => Err(Refusal::WrongKind),
        _ => Ok(()),
    }
}

fn check_room(bench: &Bench<'_>) -> Result<(), Refusal> {
    if bench.state.full && bench.state.resource.is_none() {
        Err(Refusal::Full)
    } else {
        Ok(())
    }
}
