//! Whether votes had their effect: one contest evaluated once more, by the rules and the policy that evaluated it last.
//!
//! Whoever records, retracts, rejects or changes a policy evaluates; so nothing that votes decide is left to be decided.
//! What a person set, put back or took away may leave something that a next vote moves: that is no finding.
//!
//! It must know nothing of how the contest was read.

use emend_core::{
    Ballot, Ballots, Candidate, ContestState, Event, Policy, Revision, Status,
    contest::CurrentResource,
    decide::{Transition, decide},
    ids::AcceptOrder,
    outcome::Reason,
};
use emend_runtime::audit::Findings;
use jiff::Timestamp;

use super::Contest;
use crate::audit::CONTEST_DECIDED;

/// Evaluates a contest with its newest ballots.
pub(super) fn check(
    id: &str,
    contest: &Contest,
    ballots: Vec<Ballot>,
    candidates: Vec<Candidate>,
    policy: &Policy,
    findings: &mut Findings,
) {
    let (Some(row), Some(key)) = (&contest.row, &contest.key) else {
        return;
    };
    // What decayed votes came to depends on when they were counted, which is not kept. Without its resource nothing can be
    // said of a contest; that it can't be read is a finding of its own.
    if policy.half_life.is_some() || contest.resource.is_some() != contest.value.is_some() {
        return;
    }
    let pinned = row.pinned != 0;
    let resource = contest.resource.as_ref().zip(contest.value.clone());
    let settled_by_votes = resource.is_some() && !pinned;
    let state = ContestState {
        key: key.clone(),
        pinned,
        resource: resource.map(|(resource, value)| CurrentResource {
            revision: Revision(resource.revision),
            value,
        }),
        highest_accept_order: AcceptOrder(row.highest_accept_order),
        // Others may have made room since: what waits for that is right to.
        full: candidates.iter().any(|candidate| {
            candidate.status == Status::AwaitingReview && candidate.reason == Some(Reason::ResourceLimit)
        }),
        candidates,
        ballots: Ballots::new(ballots, true),
    };
    // A changed policy is never refused.
    let Ok(decision) = decide(state, &Event::PolicyChanged, policy, Timestamp::UNIX_EPOCH) else {
        return;
    };
    for Transition {
        candidate, from, to, ..
    } in decision.transitions
    {
        let released = (from, to) == (Some(Status::AwaitingReview), Status::Pending);
        if from == Some(Status::Pending) || released || settled_by_votes {
            findings.add(
                CONTEST_DECIDED,
                format_args!("contest {id}"),
                format_args!(
                    "candidate {candidate} stands at {from:?}, its ballots and version {} of its policy lead to {to:?}",
                    policy.version
                ),
            );
        }
    }
}
