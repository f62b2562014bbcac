//! What the rule "review" does: proposals come from generators, corrections and people, and only a person applies one.
//!
//! Every proposal is a version with a number of its own, which is never used again, and is made for the version that was
//! current then: once another one is current, it can no longer be approved. What was decided about a proposal is decided
//! for good. Risk does not matter here. Where several contests count their versions together, the state's last number is
//! that of all of them.

use super::{Cause, Evaluation, Event, Refusal, people, second, undo};
use crate::{
    candidate::{Origin, Proposed, Reason, Status, Verdict},
    ids::CandidateId,
    kinds::ReviewRules,
    resource::{ResourceValue, proposal_of},
};

/// All refusals happen before anything changes.
pub(super) fn apply_event(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    event: &Event,
) -> Result<(), Refusal> {
    evaluation.threshold = 0;
    match event {
        Event::Recorded {
            ballot,
            value,
            origin,
            retracted_by,
            ..
        } => {
            let order = ballot.accept_order;
            evaluation.state.highest_accept_order = evaluation.state.highest_accept_order.max(order);
            let id = ballot.candidate;
            propose(evaluation, rules, id, value, *origin);
            evaluation.cause = Cause::Review;
            if retracted_by.is_some() {
                close(evaluation, id, Status::Withdrawn, Reason::Retracted);
            }
            evaluation.report(id, true, retracted_by.is_some());
        }
        Event::Proposed { proposal, value } => {
            let is_closed = rules.rejection_closes_to_generators
                && evaluation.state.candidates.iter().any(|candidate| {
                    candidate.status == Status::Rejected
                        && candidate.value.learned.canonical() == value.learned.canonical()
                });
            if is_closed {
                return Err(Refusal::RejectedForGood);
            }
            people::check_kind(evaluation, Some(value))?;
            evaluation.cause = Cause::Review;
            let base = evaluation.state.versions.current;
            let id = proposal_of(evaluation.state.id(), base, proposal);
            propose(evaluation, rules, id, value, Origin::Generator);
            evaluation.subject = Some(id);
        }
        Event::Retracted { ballot, .. } => {
            evaluation.cause = Cause::Retraction;
            close(evaluation, ballot.candidate, Status::Withdrawn, Reason::Retracted);
            evaluation.report(ballot.candidate, false, true);
        }
        Event::Rated { .. } | Event::RatingExcluded { .. } => return Err(Refusal::WrongKind),
        Event::Mined { .. } => return Err(Refusal::NotByVotes),
        Event::PolicyChanged | Event::TargetArrived | Event::TargetGone => evaluation.cause = Cause::Policy,
        Event::Approve {
            candidate,
            edited,
            reason,
            is_second,
        } => {
            let edited = edited.as_ref();
            approve(
                evaluation,
                rules,
                *candidate,
                (edited, reason.as_deref()),
                *is_second,
            )?;
        }
        Event::Reject { candidate, reason } => reject(evaluation, *candidate, reason)?,
        Event::Undo { decision } => undo::where_people_review(evaluation, decision)?,
        Event::Put {
            value,
            origin,
            reason,
        } => {
            people::check_kind(evaluation, Some(value))?;
            people::check_room(evaluation)?;
            evaluation.cause = Cause::Operator;
            let id = write(evaluation, rules, value, *origin, reason.as_deref());
            close_all(evaluation, id);
        }
        Event::MakeCurrent {
            version,
            value,
            reason,
        } => {
            let id = use_version(evaluation, *version, value, reason.as_deref())?;
            close_all(evaluation, id);
        }
        Event::Delete { reason } => {
            let Some(applied) = evaluation.state.applied().map(|applied| applied.id) else {
                return Err(Refusal::NoResource);
            };
            evaluation.cause = Cause::Operator;
            people::note(evaluation, applied, reason.as_deref());
            evaluation.move_to(applied, Status::Withdrawn, Some(Reason::Deleted));
            evaluation.state.versions.current = 0;
            close_all(evaluation, applied);
        }
        Event::Revert { restore, reason, .. } => revert(evaluation, rules, restore.as_ref(), reason)?,
        Event::Erase => {
            evaluation.cause = Cause::Erasure;
            for id in evaluation.candidate_ids() {
                if let Some(kept) = proposed(evaluation, id)
                    && kept.verdict == Verdict::Open
                {
                    kept.verdict = Verdict::Closed;
                }
                evaluation.move_to(id, Status::Withdrawn, Some(Reason::Erased));
            }
            evaluation.state.versions.current = 0;
        }
    }
    Ok(())
}

fn proposed<'e>(evaluation: &'e mut Evaluation<'_>, id: CandidateId) -> Option<&'e mut Proposed> {
    evaluation.state.candidate_mut(id)?.proposal.as_mut()
}

fn known(evaluation: &Evaluation<'_>, id: CandidateId) -> Result<Proposed, Refusal> {
    let candidate = evaluation.state.candidate(id).ok_or(Refusal::UnknownCandidate)?;
    candidate.proposal.ok_or(Refusal::UnknownCandidate)
}

/// Makes a proposal for what is current, if it is not there yet.
fn propose(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    id: CandidateId,
    value: &ResourceValue,
    origin: Origin,
) {
    if evaluation.state.candidate(id).is_none() {
        create(evaluation, rules, id, value, origin, Verdict::Open);
        evaluation.move_to(id, Status::AwaitingReview, Some(Reason::PersonDecides));
    }
}

/// Makes a version with the next number.
fn create(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    id: CandidateId,
    value: &ResourceValue,
    origin: Origin,
    verdict: Verdict,
) {
    evaluation.state.versions.last += 1;
    let version = evaluation.state.versions.last;
    let mut value = value.clone();
    (rules.numbered)(&mut value.learned, version);
    create_version(evaluation, id, &value, origin, version, verdict);
}

fn create_version(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    value: &ResourceValue,
    origin: Origin,
    version: u32,
    verdict: Verdict,
) {
    evaluation.create(id, value, origin, Status::Pending);
    let kept = Proposed {
        version,
        base: evaluation.state.versions.current,
        verdict,
        decided_at: None,
    };
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.proposal = Some(kept);
    }
}

/// Makes a version current that was approved before, here or in another contest that counts its versions with this one.
fn use_version(
    evaluation: &mut Evaluation<'_>,
    version: u32,
    value: &ResourceValue,
    reason: Option<&str>,
) -> Result<CandidateId, Refusal> {
    people::check_kind(evaluation, Some(value))?;
    let here = evaluation.state.candidates.iter().find_map(|candidate| {
        Some((
            candidate.id,
            candidate.proposal.filter(|kept| kept.version == version)?,
        ))
    });
    if here.is_some_and(|(_, kept)| kept.verdict != Verdict::Approved) {
        return Err(Refusal::NotApproved);
    }
    if evaluation.state.versions.current == version {
        return Err(Refusal::AlreadyApplied);
    }
    people::check_room(evaluation)?;
    evaluation.cause = Cause::Operator;
    let id = if let Some((id, _)) = here {
        id
    } else {
        let base = evaluation.state.versions.current;
        let id = proposal_of(evaluation.state.id(), base, &version.to_le_bytes());
        create_version(
            evaluation,
            id,
            value,
            Origin::Operator,
            version,
            Verdict::Approved,
        );
        id
    };
    people::note(evaluation, id, reason);
    make_current(evaluation, id);
    Ok(id)
}

/// A version that a person writes now, which becomes the current one.
fn write(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    value: &ResourceValue,
    origin: Origin,
    reason: Option<&str>,
) -> CandidateId {
    let number = evaluation.state.versions.last + 1;
    let base = evaluation.state.versions.current;
    let id = proposal_of(evaluation.state.id(), base, &number.to_le_bytes());
    create(evaluation, rules, id, value, origin, Verdict::Approved);
    people::note(evaluation, id, reason);
    make_current(evaluation, id);
    id
}

fn make_current(evaluation: &mut Evaluation<'_>, id: CandidateId) {
    evaluation.apply(id, false);
    evaluation.subject = Some(id);
    let now = evaluation.now;
    if let Some(kept) = proposed(evaluation, id) {
        kept.verdict = Verdict::Approved;
        kept.decided_at.get_or_insert(now);
        evaluation.state.versions.current = kept.version;
    }
}

/// Closes a proposal that is open; what was decided stays decided.
fn close(evaluation: &mut Evaluation<'_>, id: CandidateId, status: Status, reason: Reason) {
    if let Some(kept) = proposed(evaluation, id)
        && kept.verdict == Verdict::Open
    {
        kept.verdict = Verdict::Closed;
        evaluation.move_to(id, status, Some(reason));
    }
}

/// Closes all open proposals, because another version than they were made for is current.
fn close_all(evaluation: &mut Evaluation<'_>, but: CandidateId) {
    let others: Vec<CandidateId> = evaluation
        .state
        .candidates
        .iter()
        .map(|candidate| candidate.id)
        .filter(|id| *id != but)
        .collect();
    for id in others {
        close(evaluation, id, Status::Superseded, Reason::BaseChanged);
    }
}

/// Applies a proposal as the current version; an edited one is a version of its own.
fn approve(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    id: CandidateId,
    (edited, reason): (Option<&ResourceValue>, Option<&str>),
    is_second: bool,
) -> Result<(), Refusal> {
    let kept = known(evaluation, id)?;
    check_open(evaluation, id, kept)?;
    people::check_kind(evaluation, edited)?;
    people::check_room(evaluation)?;
    evaluation.cause = Cause::Review;
    let original = evaluation
        .state
        .candidate(id)
        .map(|candidate| candidate.value.clone());
    let mut edited = edited.cloned();
    if let Some(edited) = &mut edited {
        (rules.numbered)(&mut edited.learned, kept.version);
    }
    let edited = edited.filter(|edited| Some(edited) != original.as_ref());
    if evaluation.needs_second(is_second) {
        approve_first(evaluation, rules, id, edited.as_ref(), reason);
        return Ok(());
    }
    match edited {
        None => {
            let confirmed = evaluation
                .state
                .candidate(id)
                .filter(|candidate| candidate.awaits_second());
            if let Some(edited_from) = confirmed.and_then(|candidate| candidate.edited_from) {
                close(evaluation, edited_from, Status::Superseded, Reason::Edited);
            }
            people::note(evaluation, id, reason);
            make_current(evaluation, id);
            close_all(evaluation, id);
        }
        Some(edited) => {
            close(evaluation, id, Status::Superseded, Reason::Edited);
            let written = write(evaluation, rules, &edited, Origin::Review, reason);
            if let Some(candidate) = evaluation.state.candidate_mut(written) {
                candidate.edited_from = Some(id);
            }
            close_all(evaluation, written);
        }
    }
    Ok(())
}

/// The first approval of two; an edited proposal waits for the second as a version of its own.
fn approve_first(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    id: CandidateId,
    edited: Option<&ResourceValue>,
    reason: Option<&str>,
) {
    let approved = match edited {
        None => id,
        Some(edited) => {
            let number = evaluation.state.versions.last + 1;
            let base = evaluation.state.versions.current;
            let written = proposal_of(evaluation.state.id(), base, &number.to_le_bytes());
            create(evaluation, rules, written, edited, Origin::Review, Verdict::Open);
            if let Some(candidate) = evaluation.state.candidate_mut(written) {
                candidate.edited_from = Some(id);
            }
            written
        }
    };
    second::note_first(evaluation, approved, reason);
}

fn check_open(evaluation: &Evaluation<'_>, id: CandidateId, kept: Proposed) -> Result<(), Refusal> {
    check_not_edited(evaluation, id)?;
    match kept.verdict {
        Verdict::Approved => Err(Refusal::AlreadyApplied),
        Verdict::Rejected => Err(Refusal::AlreadyRejected),
        Verdict::Closed => Err(Refusal::BaseChanged),
        Verdict::Open if kept.base != evaluation.state.versions.current => Err(Refusal::BaseChanged),
        Verdict::Open => Ok(()),
    }
}

/// What a person applied in another wording is decided.
fn check_not_edited(evaluation: &Evaluation<'_>, id: CandidateId) -> Result<(), Refusal> {
    let candidate = evaluation.state.candidate(id);
    match candidate.and_then(|candidate| candidate.reason) {
        Some(Reason::Edited) => Err(Refusal::AlreadyApplied),
        _ => Ok(()),
    }
}

fn reject(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: &str) -> Result<(), Refusal> {
    let kept = known(evaluation, id)?;
    check_not_edited(evaluation, id)?;
    match kept.verdict {
        Verdict::Approved => return Err(Refusal::AlreadyApplied),
        Verdict::Rejected => return Err(Refusal::AlreadyRejected),
        Verdict::Open | Verdict::Closed => {}
    }
    evaluation.cause = Cause::Review;
    evaluation.subject = Some(id);
    people::note(evaluation, id, Some(reason));
    let now = evaluation.now;
    if let Some(kept) = proposed(evaluation, id) {
        kept.verdict = Verdict::Rejected;
        kept.decided_at = Some(now);
    }
    evaluation.move_to(id, Status::Rejected, None);
    Ok(())
}

/// Makes the version current that was so before, or none.
fn revert(
    evaluation: &mut Evaluation<'_>,
    rules: ReviewRules,
    restore: Option<&ResourceValue>,
    reason: &str,
) -> Result<(), Refusal> {
    people::check_kind(evaluation, restore)?;
    if restore.is_some() {
        people::check_room(evaluation)?;
    }
    evaluation.cause = Cause::Revert;
    if let Some(reverted) = evaluation.state.applied().map(|applied| applied.id) {
        people::note(evaluation, reverted, Some(reason));
        evaluation.move_to(reverted, Status::Superseded, Some(Reason::Reverted));
        evaluation.state.versions.current = 0;
        close_all(evaluation, reverted);
    }
    let Some(value) = restore else { return Ok(()) };
    let approved = |candidate: &&crate::candidate::Candidate| {
        candidate.value == *value
            && candidate
                .proposal
                .is_some_and(|kept| kept.verdict == Verdict::Approved)
    };
    let before = evaluation.state.candidates.iter().filter(approved);
    let newest = before
        .max_by_key(|candidate| candidate.proposal.map(|kept| kept.version))
        .map(|candidate| candidate.id);
    match newest {
        Some(id) => make_current(evaluation, id),
        None => {
            write(evaluation, rules, value, Origin::Operator, Some(reason));
        }
    }
    Ok(())
}
