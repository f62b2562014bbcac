//! Undoing a person's approval or rejection: what it changed is kept beside it, and is given back.
//!
//! Only the contest's last decision is undone, so what it changed is still as it left it. What it did not change, such as votes
//! that came since, stays and counts.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{Cause, Decision, Evaluation, Refusal, people, votes};
use crate::{
    candidate::{Candidate, Hold, Reason, Status, TakenBack, Verdict},
    contest::ContestState,
    ids::CandidateId,
    resource::ResourceValue,
};

/// What a person's approval or rejection of a candidate changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoableDecision {
    /// The candidate that was approved or rejected.
    pub candidate: CandidateId,
    /// The candidate that was applied or rejected: another one where the value was edited.
    pub subject: CandidateId,
    /// The number of the decision: how many the contest had seen with it.
    pub number: u64,
    /// Whether the contest was pinned before.
    pub pinned: bool,
    /// How often anything had been proposed in the contest, so that votes that come later are noticed.
    pub occurrences: u64,
    /// The version of the policy, so that a later one is noticed.
    pub policy_version: i64,
    /// The candidates that it changed.
    pub changed: Vec<ChangedCandidate>,
}

/// A candidate that a decision changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCandidate {
    /// The candidate.
    pub id: CandidateId,
    /// Its status since.
    pub status: Status,
    /// What it was before; `None`: the decision created it.
    pub before: Option<CandidateBefore>,
}

/// What a candidate was before a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateBefore {
    /// Its status.
    pub status: Status,
    /// The reason for it.
    pub reason: Option<Reason>,
    /// Why votes alone could not apply it.
    pub hold: Option<Hold>,
    /// The reviewer's last reason.
    pub decision_reason: Option<String>,
    /// The threshold at which votes had applied it.
    pub applied_threshold: Option<u32>,
    /// Its value, where the decision changed it.
    pub value: Option<ResourceValue>,
    /// Of a ruling: whether a person had approved it.
    pub approved: bool,
    /// Of a proposal: what had been decided about it, and when.
    pub verdict: Option<(Verdict, Option<Timestamp>)>,
}

impl CandidateBefore {
    fn of(candidate: &Candidate, now: &Candidate) -> Self {
        Self {
            status: candidate.status,
            reason: candidate.reason,
            hold: candidate.hold,
            decision_reason: candidate.decision_reason.clone(),
            applied_threshold: candidate.applied_threshold,
            value: (candidate.value != now.value).then(|| candidate.value.clone()),
            approved: candidate.ruling.as_ref().is_some_and(|ruling| ruling.approved),
            verdict: candidate.proposal.map(|kept| (kept.verdict, kept.decided_at)),
        }
    }
}

impl UndoableDecision {
    pub(super) fn of(
        decision: &Decision,
        candidate: CandidateId,
        before: &[Candidate],
        pinned: bool,
    ) -> Self {
        let known: HashMap<CandidateId, &Candidate> =
            before.iter().map(|candidate| (candidate.id, candidate)).collect();
        let changed = decision.after.candidates.iter().filter_map(|now| {
            let before = known.get(&now.id).map(|before| CandidateBefore::of(before, now));
            let is_changed = before.as_ref() != Some(&CandidateBefore::of(now, now));
            is_changed.then_some(ChangedCandidate {
                id: now.id,
                status: now.status,
                before,
            })
        });
        Self {
            candidate,
            subject: decision.subject.unwrap_or(candidate),
            number: decision.after.decisions,
            pinned,
            occurrences: occurrences(&decision.after),
            policy_version: decision.policy_version,
            changed: changed.collect(),
        }
    }
}

fn occurrences(state: &ContestState) -> u64 {
    state
        .candidates
        .iter()
        .map(|candidate| candidate.occurrences)
        .sum()
}

/// Where votes decide, those that came or went since the decision decide now, under the policy as it is now.
pub(super) fn where_votes_decide(
    evaluation: &mut Evaluation<'_>,
    decision: &UndoableDecision,
) -> Result<(), Refusal> {
    check(evaluation, decision)?;
    restore(evaluation, decision);
    evaluation.state.pinned = decision.pinned;
    if occurrences(&evaluation.state) != decision.occurrences
        || evaluation.policy.version != decision.policy_version
    {
        votes::evaluate(evaluation);
    }
    Ok(())
}

/// Gives back what is kept of the rulings; their statuses follow from it.
pub(super) fn where_rulings_decide(
    evaluation: &mut Evaluation<'_>,
    decision: &UndoableDecision,
) -> Result<(), Refusal> {
    check(evaluation, decision)?;
    restore(evaluation, decision);
    Ok(())
}

/// A proposal that was rejected or approved is open again, or closed, as it was; what was current before is so again. The number of
/// the version stays its own.
pub(super) fn where_people_review(
    evaluation: &mut Evaluation<'_>,
    decision: &UndoableDecision,
) -> Result<(), Refusal> {
    check(evaluation, decision)?;
    restore(evaluation, decision);
    let current = evaluation.state.applied().and_then(|applied| applied.proposal);
    evaluation.state.versions.current = current.map_or(0, |kept| kept.version);
    Ok(())
}

fn check(evaluation: &Evaluation<'_>, decision: &UndoableDecision) -> Result<(), Refusal> {
    let is_as_left = |changed: &ChangedCandidate| {
        let candidate = evaluation.state.candidate(changed.id);
        candidate.is_some_and(|candidate| candidate.status == changed.status)
    };
    if evaluation.state.decisions != decision.number || !decision.changed.iter().all(is_as_left) {
        return Err(Refusal::NotTheLastDecision);
    }
    let applies_again = |changed: &ChangedCandidate| {
        let before = changed.before.as_ref();
        before.is_some_and(|before| before.status == Status::Applied)
    };
    if decision.changed.iter().any(applies_again) {
        people::check_room(evaluation)?;
    }
    Ok(())
}

fn restore(evaluation: &mut Evaluation<'_>, decision: &UndoableDecision) {
    evaluation.cause = Cause::Undo;
    // What is applied again takes the place of what was applied.
    let (last, first): (Vec<_>, Vec<_>) = decision.changed.iter().partition(|changed| {
        let before = changed.before.as_ref();
        before.is_some_and(|before| before.status == Status::Applied)
    });
    for changed in first.into_iter().chain(last) {
        match &changed.before {
            None => take_away(evaluation, changed.id),
            Some(before) => give_back(evaluation, changed.id, before),
        }
    }
}

/// A candidate that the decision created never was: votes may propose it anew.
fn take_away(evaluation: &mut Evaluation<'_>, id: CandidateId) {
    if let Some(candidate) = evaluation.state.candidate_mut(id)
        && let Some(ruling) = &mut candidate.ruling
    {
        ruling.taken_back = TakenBack::Reverted;
    }
    if let Some(candidate) = evaluation.state.candidate_mut(id)
        && let Some(kept) = &mut candidate.proposal
    {
        kept.verdict = Verdict::Closed;
        kept.decided_at = None;
    }
    evaluation.move_to(id, Status::Withdrawn, Some(Reason::Undone));
}

fn give_back(evaluation: &mut Evaluation<'_>, id: CandidateId, before: &CandidateBefore) {
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.hold = before.hold;
        candidate.decision_reason.clone_from(&before.decision_reason);
        candidate.applied_threshold = before.applied_threshold;
        if let Some(value) = &before.value {
            candidate.value = value.clone();
        }
        if let Some(ruling) = &mut candidate.ruling {
            ruling.approved = before.approved;
        }
        if let (Some(kept), Some((verdict, decided_at))) = (&mut candidate.proposal, before.verdict) {
            kept.verdict = verdict;
            kept.decided_at = decided_at;
        }
    }
    evaluation.move_to(id, before.status, before.reason);
}
