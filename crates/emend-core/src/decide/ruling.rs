//! What rulings do: the newest effective one is in force.
//!
//! A ruling is effective if its sender was entitled when it was first evaluated and its key needs no person, or once a
//! person approved it; it is not once it was taken back or rejected. What is in force is a function of the effective
//! rulings alone, so the order in which they arrive does not matter. Nothing pins a contest and nothing is held back.

use super::{Cause, Evaluation, Event, Refusal, people, second, undo};
use crate::{
    ballots::Ballot,
    candidate::{Hold, Origin, Reason, Ruling, Status, TakenBack},
    contest::Target,
    ids::{CandidateId, Revision},
    kinds::RulingRules,
    resource::{ResourceValue, ruling_at, ruling_of},
    roles::{RiskLevel, Roles},
};

/// All refusals happen before anything changes.
pub(super) fn apply_event(
    evaluation: &mut Evaluation<'_>,
    rules: &RulingRules,
    event: &Event,
) -> Result<(), Refusal> {
    let is_high_risk = (rules.is_high_risk)(evaluation.state.key.key.as_str());
    evaluation.risk = if is_high_risk {
        RiskLevel::High
    } else {
        RiskLevel::Low
    };
    evaluation.threshold = 0;
    match event {
        Event::Recorded {
            ballot,
            value,
            origin,
            personal_data,
            sender,
            retracted_by,
        } => {
            let needs_room = value.learned != (rules.nothing)();
            let hold = hold(evaluation, *personal_data, sender, needs_room);
            let id = record(evaluation, ballot, value, *origin, sender, hold);
            if let Some(retracted_by) = retracted_by {
                take_back(evaluation, id, retracted_by);
            }
            evaluation.cause = Cause::Ruling;
            evaluation.report(id, true, retracted_by.is_some());
        }
        Event::Retracted { ballot, sender } => {
            take_back(evaluation, ballot.candidate, sender);
            evaluation.cause = Cause::Retraction;
            evaluation.report(ballot.candidate, false, true);
        }
        Event::Rated { .. } | Event::RatingExcluded { .. } => return Err(Refusal::WrongKind),
        Event::Mined { .. } => return Err(Refusal::NotByVotes),
        Event::PolicyChanged => evaluation.cause = Cause::Policy,
        Event::TargetArrived => {
            if evaluation.state.target == Target::Unknown {
                evaluation.state.target = Target::Known;
            }
            evaluation.cause = Cause::Ruling;
        }
        Event::TargetGone => {
            evaluation.state.target = Target::Unknown;
            evaluation.cause = Cause::Ruling;
        }
        Event::Proposed { .. } | Event::MakeCurrent { .. } => return Err(Refusal::NotByReview),
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
        Event::Undo { decision } => undo::where_rulings_decide(evaluation, decision)?,
        Event::Put {
            value,
            origin,
            reason,
        } => {
            check_value(evaluation, rules, value)?;
            people::check_room(evaluation)?;
            evaluation.cause = match origin {
                Origin::Import => Cause::Import,
                Origin::Votes | Origin::Review | Origin::Operator | Origin::Generator | Origin::Mined => {
                    Cause::Operator
                }
            };
            write(evaluation, value, *origin, reason.as_deref());
        }
        Event::Delete { reason } => {
            let Some(resource) = &evaluation.state.resource else {
                return Err(Refusal::NoResource);
            };
            let nothing = ResourceValue::new(resource.value.display.clone(), (rules.nothing)());
            evaluation.cause = Cause::Operator;
            write(evaluation, &nothing, Origin::Operator, reason.as_deref());
        }
        Event::Revert {
            revision,
            restore,
            reason,
        } => revert(evaluation, rules, *revision, restore.as_ref(), reason)?,
        Event::Erase => {
            evaluation.cause = Cause::Erasure;
            for id in evaluation.candidate_ids() {
                set_taken_back(evaluation, id, TakenBack::Reverted);
            }
        }
    }
    settle(evaluation, rules);
    Ok(())
}

/// Why a correction's ruling is not effective at once, if it is not.
fn hold(evaluation: &Evaluation<'_>, personal_data: bool, sender: &Roles, needs_room: bool) -> Option<Hold> {
    let is_full = needs_room && evaluation.state.full && evaluation.state.resource.is_none();
    [
        (
            !sender.permit(evaluation.policy.ruling.entitled),
            Hold::NotEntitled,
        ),
        (evaluation.risk == RiskLevel::High, Hold::HighRisk),
        (personal_data, Hold::PersonalData),
        (is_full, Hold::ResourceLimit),
        (evaluation.policy.frozen, Hold::Frozen),
    ]
    .into_iter()
    .find_map(|(holds, hold)| holds.then_some(hold))
}

fn record(
    evaluation: &mut Evaluation<'_>,
    ballot: &Ballot,
    value: &ResourceValue,
    origin: Origin,
    sender: &Roles,
    hold: Option<Hold>,
) -> CandidateId {
    let id = ruling_of(evaluation.state.id(), ballot.feedback_id);
    let order = ballot.accept_order;
    evaluation.state.highest_accept_order = evaluation.state.highest_accept_order.max(order);
    create(
        evaluation,
        id,
        value,
        origin,
        Ruling {
            accept_order: order,
            roles: sender.clone(),
            approved: false,
            taken_back: TakenBack::No,
        },
    );
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.hold = hold;
        candidate.occurrences = 1;
        candidate.reporters = 1;
    }
    id
}

fn create(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    value: &ResourceValue,
    origin: Origin,
    ruling: Ruling,
) {
    evaluation.create(id, value, origin, Status::Pending);
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.ruling = Some(ruling);
    }
    evaluation.subject = Some(id);
}

/// What an operator or reviewer decides now.
fn write(
    evaluation: &mut Evaluation<'_>,
    value: &ResourceValue,
    origin: Origin,
    reason: Option<&str>,
) -> CandidateId {
    let accept_order = evaluation.state.next_order;
    let id = ruling_at(evaluation.state.id(), accept_order);
    create(
        evaluation,
        id,
        value,
        origin,
        Ruling {
            accept_order,
            roles: Roles::default(),
            approved: true,
            taken_back: TakenBack::No,
        },
    );
    people::note(evaluation, id, reason);
    id
}

/// A retraction by somebody entitled takes back any ruling, another only one that waits.
fn take_back(evaluation: &mut Evaluation<'_>, id: CandidateId, by: &Roles) {
    let taken_back = if by.permit(evaluation.policy.ruling.entitled) {
        TakenBack::Entitled
    } else {
        TakenBack::Unentitled
    };
    set_taken_back(evaluation, id, taken_back);
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.occurrences = 0;
        candidate.reporters = 0;
    }
}

fn set_taken_back(evaluation: &mut Evaluation<'_>, id: CandidateId, taken_back: TakenBack) {
    let candidate = evaluation.state.candidate_mut(id);
    if let Some(ruling) = candidate.and_then(|candidate| candidate.ruling.as_mut()) {
        ruling.taken_back = ruling.taken_back.max(taken_back);
    }
}

/// Why what was asked for is rejected where a person applied it otherwise.
const IN_OTHER_WORDS: &str = "it was applied in other words";

/// The first approval of two; an edited ruling waits, as the one that it was made of, for the second.
fn approve_first(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    edited: Option<&ResourceValue>,
    reason: Option<&str>,
) {
    let approved = match edited {
        None => id,
        Some(edited) => {
            let written = write(evaluation, edited, Origin::Review, reason);
            let hold = evaluation.state.candidate(id).and_then(|original| original.hold);
            if let Some(candidate) = evaluation.state.candidate_mut(written) {
                candidate.edited_from = Some(id);
                // A frozen policy ends by itself, and would put into force what one person alone wrote.
                candidate.hold = hold.filter(|hold| *hold != Hold::Frozen).or(Some(Hold::HighRisk));
                if let Some(ruling) = &mut candidate.ruling {
                    ruling.approved = false;
                }
            }
            written
        }
    };
    second::note_first(evaluation, approved, reason);
}

/// Makes a ruling that waits effective at its own accept order; an edited one is the reviewer's own, made now.
fn approve(
    evaluation: &mut Evaluation<'_>,
    rules: &RulingRules,
    id: CandidateId,
    (edited, reason): (Option<&ResourceValue>, Option<&str>),
    is_second: bool,
) -> Result<(), Refusal> {
    let original = evaluation.state.candidate(id).ok_or(Refusal::UnknownCandidate)?;
    let edited = edited.filter(|edited| **edited != original.value);
    let taken_back = original.ruling.as_ref().map(|ruling| ruling.taken_back);
    if original.status == Status::Rejected {
        return Err(Refusal::RejectedForGood);
    }
    if taken_back >= Some(TakenBack::Entitled) {
        return Err(Refusal::TakenBack);
    }
    if original.is_effective() {
        return Err(Refusal::AlreadyApplied);
    }
    if let Some(edited) = edited {
        check_value(evaluation, rules, edited)?;
    }
    if edited.is_some() || original.value.learned != (rules.nothing)() {
        people::check_room(evaluation)?;
    }
    let confirmed_edit = original.edited_from.filter(|_| original.awaits_second());
    evaluation.cause = Cause::Review;
    if evaluation.needs_second(is_second) {
        approve_first(evaluation, id, edited, reason);
        return Ok(());
    }
    people::note(evaluation, id, reason);
    match edited {
        None => {
            if let Some(edited_from) = confirmed_edit
                && second::waits(evaluation, edited_from)
            {
                people::note(evaluation, edited_from, reason.or(Some(IN_OTHER_WORDS)));
                evaluation.move_to(edited_from, Status::Rejected, None);
            }
            evaluation.subject = Some(id);
            let candidate = evaluation.state.candidate_mut(id);
            if let Some(ruling) = candidate.and_then(|candidate| candidate.ruling.as_mut()) {
                ruling.approved = true;
            }
        }
        Some(edited) => {
            // What was asked for in other words is decided.
            people::note(evaluation, id, reason.or(Some(IN_OTHER_WORDS)));
            evaluation.move_to(id, Status::Rejected, None);
            let written = write(evaluation, edited, Origin::Review, reason);
            if let Some(candidate) = evaluation.state.candidate_mut(written) {
                candidate.edited_from = Some(id);
            }
        }
    }
    Ok(())
}

fn reject(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: &str) -> Result<(), Refusal> {
    let candidate = evaluation.state.candidate(id).ok_or(Refusal::UnknownCandidate)?;
    if candidate.status == Status::Rejected {
        return Err(Refusal::AlreadyRejected);
    }
    evaluation.cause = Cause::Review;
    evaluation.subject = Some(id);
    people::note(evaluation, id, Some(reason));
    evaluation.move_to(id, Status::Rejected, None);
    Ok(())
}

/// Takes back the ruling that the revision brought into force, with newer ones that say the same: what else was said is not
/// reverted with it, whenever it arrived. Where the revision brought none into force, what was before it is ruled anew. What a
/// reviewer had edited waits again.
fn revert(
    evaluation: &mut Evaluation<'_>,
    rules: &RulingRules,
    revision: Revision,
    restore: Option<&ResourceValue>,
    reason: &str,
) -> Result<(), Refusal> {
    people::check_kind(evaluation, restore)?;
    let effective = evaluation.state.effective();
    let brought = effective
        .iter()
        .position(|ruling| ruling.applied_revision == revision);
    let taken_back: Vec<CandidateId> = brought.map_or_else(Vec::new, |place| {
        let learned = &effective[place].value.learned;
        let same = effective[..=place]
            .iter()
            .filter(|ruling| ruling.value.learned == *learned);
        same.map(|ruling| ruling.id).collect()
    });
    if restore.is_some() {
        people::check_room(evaluation)?;
    }
    evaluation.cause = Cause::Revert;
    for &id in &taken_back {
        let ruling = evaluation.state.candidate(id);
        let approval = ruling.and_then(|ruling| ruling.decision_reason.clone());
        people::note(evaluation, id, Some(reason));
        set_taken_back(evaluation, id, TakenBack::Reverted);
        reopen(evaluation, id, approval.as_deref());
    }
    if taken_back.is_empty() {
        let display = evaluation
            .state
            .resource
            .as_ref()
            .map(|ruling| ruling.value.display.clone());
        let nothing = || ResourceValue::new(display.unwrap_or_default(), (rules.nothing)());
        let value = restore.cloned().unwrap_or_else(nothing);
        write(evaluation, &value, Origin::Operator, Some(reason));
    }
    Ok(())
}

/// What an edited ruling was made of was decided with it, and is so no longer. What somebody rejected for a reason of their own,
/// not for that of the edit's approval, stays rejected.
fn reopen(evaluation: &mut Evaluation<'_>, edited: CandidateId, approval: Option<&str>) {
    let original = evaluation
        .state
        .candidate(edited)
        .and_then(|edited| evaluation.state.candidate(edited.edited_from?));
    if let Some(original) = original
        && original.status == Status::Rejected
        && original.decision_reason.as_deref() == Some(approval.unwrap_or(IN_OTHER_WORDS))
        && let Some(hold) = original.hold
    {
        let id = original.id;
        people::note(evaluation, id, None);
        evaluation.move_to(id, Status::AwaitingReview, Some(hold.reason()));
    }
}

/// A value that people set says that something applies.
fn check_value(
    evaluation: &Evaluation<'_>,
    rules: &RulingRules,
    value: &ResourceValue,
) -> Result<(), Refusal> {
    people::check_kind(evaluation, Some(value))?;
    if value.learned == (rules.nothing)() {
        return Err(Refusal::NoValue);
    }
    Ok(())
}

/// Gives every ruling the status that follows from what is kept of it.
fn settle(evaluation: &mut Evaluation<'_>, rules: &RulingRules) {
    if !evaluation.policy.frozen {
        for candidate in &mut evaluation.state.candidates {
            if candidate.hold == Some(Hold::Frozen) {
                candidate.hold = None;
            }
        }
    }
    let target = if rules.needs_target {
        evaluation.state.target
    } else {
        Target::Known
    };
    let in_force = evaluation.state.effective().first().map(|newest| newest.id);
    let mut due: Vec<(CandidateId, Status, Option<Reason>)> = evaluation
        .state
        .candidates
        .iter()
        .filter_map(|candidate| {
            let ruling = candidate.ruling.as_ref()?;
            let waits = candidate.hold.filter(|_| !ruling.approved);
            let (status, reason) = if candidate.status == Status::Rejected {
                (Status::Rejected, None)
            } else if ruling.taken_back == TakenBack::Reverted {
                (Status::Withdrawn, Some(Reason::Reverted))
            } else if ruling.taken_back == TakenBack::Entitled
                || ruling.taken_back == TakenBack::Unentitled
                    && waits.is_some_and(|hold| hold != Hold::Frozen)
            {
                (Status::Withdrawn, Some(Reason::Retracted))
            } else if target == Target::NotCorrectable {
                (Status::Superseded, Some(Reason::NotCorrectable))
            } else if waits.is_some() && candidate.awaits_second() {
                (Status::AwaitingReview, Some(Reason::SecondReviewer))
            } else if let Some(hold) = waits {
                let status = if hold == Hold::Frozen {
                    Status::Pending
                } else {
                    Status::AwaitingReview
                };
                (status, Some(hold.reason()))
            } else if target == Target::Unknown {
                (Status::Pending, Some(Reason::TargetNotFound))
            } else if in_force == Some(candidate.id) {
                (Status::Applied, None)
            } else {
                (Status::Superseded, Some(Reason::NewerRuling))
            };
            Some((candidate.id, status, reason))
        })
        .collect();
    // What is in force changes last.
    due.sort_by_key(|(id, ..)| in_force == Some(*id));
    for (id, status, reason) in due {
        evaluation.move_to(id, status, reason);
    }
}
