//! What votes do: recording, retracting, and re-evaluating after a policy change.

use super::{Asked, Bench, Cause};
use crate::{
    ballots::Ballot,
    contest::{Hold, Origin, Status},
    ids::CandidateId,
    outcome::Reason,
    policy::RiskLevel,
    resource::ResourceValue,
};

/// A correction proposes a value. The bench has already counted its vote, which may decide the contest.
pub(super) fn record(
    bench: &mut Bench<'_>,
    ballot: &Ballot,
    value: &ResourceValue,
    origin: Origin,
    personal_data: bool,
) {
    let (id, was_new) = bench.candidate_for(value, origin, Status::Pending);
    bench.state.highest_accept_order = bench.state.highest_accept_order.max(ballot.accept_order);
    if let Some(candidate) = bench.state.candidate_mut(id) {
        candidate.occurrences += 1;
        if personal_data && candidate.status != Status::Applied {
            candidate.hold.get_or_insert(Hold::PersonalData);
        }
        if matches!(candidate.status, Status::Superseded | Status::Withdrawn) {
            bench.move_to(id, Status::Pending, None);
        }
    }
    bench.cause = Cause::Votes;
    evaluate(bench);
    bench.asked = Some(Asked {
        candidate: id,
        was_new,
        retracted: false,
    });
}

/// A correction is retracted: its vote no longer counts, and an applied value that thereby loses its supporters is
/// withdrawn.
pub(super) fn retract(bench: &mut Bench<'_>, ballot: &Ballot) {
    let id = ballot.candidate;
    let before = bench.tally.of(id).undecayed;
    bench.state.ballots.remove(ballot);
    bench.count();
    let after = bench.tally.of(id).undecayed;
    bench.cause = Cause::Retraction;

    let (pinned, threshold) = (bench.state.pinned, bench.threshold);
    if let Some(candidate) = bench.state.candidate_mut(id) {
        candidate.occurrences = candidate.occurrences.saturating_sub(1);
        match candidate.status {
            // A raised threshold alone never withdraws a value: the lower of the two thresholds applies.
            Status::Applied if !pinned && after < before => {
                let needed = candidate.applied_threshold.unwrap_or(threshold).min(threshold);
                if after < u64::from(needed) {
                    bench.move_to(id, Status::Withdrawn, Some(Reason::Retracted));
                }
            }
            Status::Pending | Status::AwaitingReview if after == 0 => {
                bench.move_to(id, Status::Withdrawn, Some(Reason::Retracted));
            }
            _ => {}
        }
    }
    evaluate(bench);
    bench.asked = Some(Asked {
        candidate: id,
        was_new: false,
        retracted: true,
    });
}

/// Re-evaluates pending candidates under the current policy. An applied value stays.
pub(super) fn reevaluate(bench: &mut Bench<'_>) {
    bench.cause = Cause::Policy;
    evaluate(bench);
}

/// Promotes the winner, if there is one and votes may apply it; otherwise sends it to review. The first evaluation
/// after a policy change releases candidates that waited because of the old policy.
pub(super) fn evaluate(bench: &mut Bench<'_>) {
    if bench.risk != RiskLevel::High {
        // Candidates that waited only because of HIGH risk may now be decided by votes.
        let released: Vec<CandidateId> = bench
            .state
            .candidates
            .iter()
            .filter(|candidate| {
                candidate.status == Status::AwaitingReview && candidate.reason == Some(Reason::HighRisk)
            })
            .map(|candidate| candidate.id)
            .collect();
        for id in released {
            bench.move_to(id, Status::Pending, None);
        }
    }
    let gathering: Vec<(CandidateId, Option<Hold>)> = bench
        .state
        .candidates
        .iter()
        .filter(|candidate| candidate.status == Status::Pending && bench.tally.of(candidate.id).counted > 0)
        .map(|candidate| (candidate.id, candidate.hold))
        .collect();
    for (id, hold) in gathering {
        if bench.risk == RiskLevel::High {
            bench.move_to(id, Status::AwaitingReview, Some(Reason::HighRisk));
        } else if let Some(hold) = hold {
            bench.move_to(id, Status::AwaitingReview, Some(hold.reason()));
        }
    }
    let Some((winner, status)) = winner(bench) else {
        return;
    };
    if matches!(status, Status::Applied | Status::Rejected) || bench.risk == RiskLevel::High {
        return;
    }
    let hold = bench.state.candidate(winner).and_then(|candidate| candidate.hold);
    let grows = bench.state.applied().is_none() && bench.state.resource.is_none();
    let obstacle = if let Some(hold) = hold {
        Some(hold.reason())
    } else if bench.state.pinned {
        Some(Reason::Pinned)
    } else {
        (bench.state.full && grows).then_some(Reason::ResourceLimit)
    };
    match obstacle {
        Some(reason) => bench.move_to(winner, Status::AwaitingReview, Some(reason)),
        None => bench.apply(winner, true),
    }
}

/// The candidate whose net confirmations reach the threshold. There is at most one, since the threshold is at least 1.
fn winner(bench: &Bench<'_>) -> Option<(CandidateId, Status)> {
    let candidates = &bench.state.candidates;
    let standings = bench.tally.standings(candidates);
    candidates
        .iter()
        .filter(|candidate| candidate.status != Status::Rejected)
        .find(|candidate| standings.net(candidate.id) >= i64::from(bench.threshold))
        .map(|candidate| (candidate.id, candidate.status))
}
