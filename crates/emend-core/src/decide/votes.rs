//! What votes do: recording, retracting, and re-evaluating after a policy change.

use super::{Cause, Evaluation, ReportedCandidate};
use crate::{
    ballots::Ballot,
    candidate::{Candidate, Hold, Origin, Reason, Status},
    ids::CandidateId,
    resource::ResourceValue,
    roles::RiskLevel,
};

/// A correction proposes a value. The ballots have already counted its vote, which may decide the contest.
pub(super) fn record(
    evaluation: &mut Evaluation<'_>,
    ballot: &Ballot,
    value: &ResourceValue,
    origin: Origin,
    personal_data: bool,
) {
    let (id, was_new) = evaluation.candidate_for(value, origin, Status::Pending);
    evaluation.state.highest_accept_order = evaluation.state.highest_accept_order.max(ballot.accept_order);
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.occurrences += 1;
        if personal_data && candidate.status != Status::Applied {
            candidate.hold.get_or_insert(Hold::PersonalData);
        }
        if matches!(candidate.status, Status::Superseded | Status::Withdrawn) {
            evaluation.move_to(id, Status::Pending, None);
        }
    }
    evaluation.cause = Cause::Votes;
    evaluate(evaluation);
    evaluation.subject = Some(id);
    evaluation.reported = Some(ReportedCandidate {
        candidate: id,
        proposed: Some(value.clone()),
        was_new,
        retracted: false,
    });
}

/// A value is proposed that nobody said: it counts for nothing and waits for a person, until ordinary votes carry it. What is
/// proposed already stays as it is.
pub(super) fn mine(evaluation: &mut Evaluation<'_>, value: &ResourceValue) {
    let (id, is_new) = evaluation.candidate_for(value, Origin::Mined, Status::Pending);
    if is_new {
        evaluation.move_to(id, Status::AwaitingReview, Some(Reason::PersonDecides));
    }
    evaluation.subject = Some(id);
}

/// A correction is retracted: its vote no longer counts, and an applied value that thereby loses its supporters is
/// withdrawn.
pub(super) fn retract(evaluation: &mut Evaluation<'_>, ballot: &Ballot) {
    let id = ballot.candidate;
    let before = evaluation.tally.of(id).undecayed;
    evaluation.state.ballots.remove(ballot);
    evaluation.count();
    let after = evaluation.tally.of(id).undecayed;
    evaluation.cause = Cause::Retraction;

    let (pinned, threshold) = (evaluation.state.pinned, evaluation.threshold);
    if let Some(candidate) = evaluation.state.candidate_mut(id) {
        candidate.occurrences = candidate.occurrences.saturating_sub(1);
        match candidate.status {
            // A raised threshold alone never withdraws a value: the lower of the two thresholds applies.
            Status::Applied if !pinned && after < before => {
                let needed = candidate.applied_threshold.unwrap_or(threshold).min(threshold);
                if after < u64::from(needed) {
                    evaluation.move_to(id, Status::Withdrawn, Some(Reason::Retracted));
                }
            }
            // What was mined waits without supporters, as it did before.
            Status::AwaitingReview if candidate.origin == Origin::Mined => {}
            Status::Pending | Status::AwaitingReview if after == 0 => {
                evaluation.move_to(id, Status::Withdrawn, Some(Reason::Retracted));
            }
            _ => {}
        }
    }
    evaluate(evaluation);
    evaluation.report(id, false, true);
}

/// Re-evaluates pending candidates under the current policy. An applied value stays.
pub(super) fn reevaluate(evaluation: &mut Evaluation<'_>) {
    evaluation.cause = Cause::Policy;
    evaluate(evaluation);
}

/// Promotes the winner, if there is one and votes may apply it; otherwise sends it to review. The first evaluation
/// after a policy change releases candidates that waited because of the old policy.
pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    if evaluation.risk != RiskLevel::High {
        // Candidates that waited only because of HIGH risk may now be decided by votes.
        let released: Vec<CandidateId> = evaluation
            .state
            .candidates
            .iter()
            .filter(|candidate| {
                candidate.status == Status::AwaitingReview && candidate.reason == Some(Reason::HighRisk)
            })
            .map(|candidate| candidate.id)
            .collect();
        for id in released {
            evaluation.move_to(id, Status::Pending, None);
        }
    }
    let gathering: Vec<(CandidateId, Option<Hold>)> = evaluation
        .state
        .candidates
        .iter()
        .filter(|candidate| {
            candidate.status == Status::Pending && evaluation.tally.of(candidate.id).counted > 0
        })
        .map(|candidate| (candidate.id, candidate.hold))
        .collect();
    for (id, hold) in gathering {
        if evaluation.risk == RiskLevel::High {
            evaluation.move_to(id, Status::AwaitingReview, Some(Reason::HighRisk));
        } else if let Some(hold) = hold {
            evaluation.move_to(id, Status::AwaitingReview, Some(hold.reason()));
        }
    }
    let Some((winner, status)) = winner(evaluation) else {
        return;
    };
    if matches!(status, Status::Applied | Status::Rejected)
        || evaluation.risk == RiskLevel::High
        || evaluation.policy.frozen
    {
        return;
    }
    let candidate = evaluation.state.candidate(winner);
    if candidate.is_some_and(Candidate::awaits_second) {
        return;
    }
    let hold = candidate.and_then(|candidate| candidate.hold);
    let grows = evaluation.state.applied().is_none() && evaluation.state.resource.is_none();
    let obstacle = if let Some(hold) = hold {
        Some(hold.reason())
    } else if evaluation.state.pinned {
        Some(Reason::Pinned)
    } else {
        (evaluation.state.full && grows).then_some(Reason::ResourceLimit)
    };
    match obstacle {
        Some(reason) => evaluation.move_to(winner, Status::AwaitingReview, Some(reason)),
        None => evaluation.apply(winner, true),
    }
}

/// The candidate whose net confirmations reach the threshold. There is at most one, since the threshold is at least 1.
fn winner(evaluation: &Evaluation<'_>) -> Option<(CandidateId, Status)> {
    let candidates = &evaluation.state.candidates;
    let standings = evaluation.tally.standings(candidates);
    candidates
        .iter()
        .filter(|candidate| candidate.status != Status::Rejected)
        .find(|candidate| standings.net(candidate.id) >= i64::from(evaluation.threshold))
        .map(|candidate| (candidate.id, candidate.status))
}
