//! Whether votes took effect: re-evaluates one contest by the rules and the policy that evaluated it last.
//!
//! Every recorded or retracted vote, rejection and policy change evaluates, so nothing that votes decide is left
//! undecided. What a person set, restored or removed may leave something that the next vote decides: that is no
//! finding.

use emend_core::{
    Ballot, Ballots, Candidate, ContestState, Event, Policy, Revision, Rule, Status, Target,
    candidate::Reason,
    contest::{CurrentResource, Versions},
    decide::{Transition, decide},
    ids::AcceptOrder,
};
use emend_store::audit::Findings;
use jiff::Timestamp;

use super::Contest;
use crate::audit::CONTEST_DECIDED;

/// Re-evaluates a contest with its newest ballots.
pub(super) fn check(
    contest: &Contest,
    ballots: Vec<Ballot>,
    candidates: Vec<Candidate>,
    policy: &Policy,
    findings: &mut Findings,
) {
    let (Some(row), Some(key)) = (&contest.row, &contest.key) else {
        return;
    };
    // The total of decayed votes depends on when they were counted, which is not stored. If its resource can't be read,
    // nothing can be said about a contest, and that is a finding of its own.
    if policy.votes.half_life.is_some() || contest.resource.is_some() != contest.value.is_some() {
        return;
    }
    // What can't be read is found out beside the graph.
    let Some(target) = Target::from_number(row.target_known) else {
        return;
    };
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
        // Capacity may have been freed since; a candidate that waits for it is still right to wait.
        full: candidates.iter().any(|candidate| {
            candidate.status == Status::AwaitingReview && candidate.reason == Some(Reason::ResourceLimit)
        }),
        candidates,
        ballots: Ballots::new(ballots, true),
        ratings: Vec::new(),
        outputs: Vec::new(),
        next_order: AcceptOrder::default(),
        versions: Versions {
            current: u32::try_from(row.current_version).unwrap_or(0),
            last: u32::try_from(row.last_version).unwrap_or(0),
        },
        target,
        decisions: 0,
    };
    // A policy change is never refused.
    let Ok(decision) = decide(state, &Event::PolicyChanged, policy, Timestamp::UNIX_EPOCH) else {
        return;
    };
    // What rulings come to depends on nothing else.
    let is_by_rulings = matches!(key.kind.rules().rule, Rule::Ruling(_));
    if is_by_rulings && decision.resource.is_some() {
        findings.add(
            CONTEST_DECIDED,
            format_args!("contest {}", contest.name),
            "its resource is not what its effective rulings come to",
        );
    }
    for Transition {
        candidate, from, to, ..
    } in decision.transitions
    {
        let released = (from, to) == (Some(Status::AwaitingReview), Status::Pending);
        if from == Some(Status::Pending) || released || settled_by_votes || is_by_rulings {
            findings.add(
                CONTEST_DECIDED,
                format_args!("contest {}", contest.name),
                format_args!(
                    "the status of candidate {candidate} is {from:?}, but its ballots or rulings and version {} of its policy lead to {to:?}",
                    policy.version
                ),
            );
        }
    }
}
