//! Each service dies between any two steps of the outbox and of promotion: at each of its fail points, under load.

use std::time::Duration;

use emend_base::{
    fail_point::{COMPILED_IN, FailPoint},
    testing::skipped,
};
use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{
        GetPolicyRequest, Policy, UpdatePolicyRequest, policy_service_client::PolicyServiceClient,
    },
};
use emend_tests::{
    faults::{Fleet, Member, Run, bounded, rounds},
    harness::NAMESPACE,
    load::Plan,
};
use tonic::transport::Channel;

/// The service that is to die.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Feedback,
    Learning,
}

impl Victim {
    fn of(self, run: &mut Run) -> &mut Member {
        match self {
            Self::Feedback => &mut run.fleet.feedback[0],
            Self::Learning => &mut run.fleet.learning[0],
        }
    }
}

/// Walks through the points; the process that starts after a death is the one that dies at the next point.
async fn dies_at_each(name: &str, fleet: Fleet, victim: Victim, points: Vec<FailPoint>) {
    let plan = Plan {
        importers: usize::from(matches!(victim, Victim::Learning)),
        ..Plan::default()
    };
    let mut run = Run::begin_with(name, fleet, plan).await;
    for round in 0..rounds(1, 5) {
        for point in &points {
            let mut passing = 1 + run.dice.below(if round == 0 { 2 } else { 20 });
            if *point == feedback_svc::fail_points::EVENTS_CLAIMED {
                leave_events_in_the_outbox(&mut run).await;
                passing = 1;
            }
            if ONCE_AFTER_A_START.contains(point) {
                passing = 1;
            } else if EVERY_FEW_SECONDS
                .iter()
                .any(|slow| point.name().starts_with(slow))
            {
                passing = passing.min(3);
            }
            let member = victim.of(&mut run);
            if member.is_running() {
                member.kill().await;
            }
            member.start_to_die_at(*point, passing).await;
            run.fleet.start_all().await;
            let policies = run.fleet.learning_clients().remove(0).policies;
            // Fails if a point is never passed.
            let dies = victim.of(&mut run).dies(*point);
            if learning_svc::fail_points::AFTER_A_CHANGE_OF_POLICY.contains(point) {
                tokio::select! {
                    () = dies => {}
                    () = keep_changing_a_policy(policies) => {}
                }
            } else {
                dies.await;
            }
        }
    }
    run.fleet.start_all().await;
    run.goes_on().await;
    run.ends_well().await;
}

/// Points that a process passes once soon after its start, and then not for minutes.
const ONCE_AFTER_A_START: [FailPoint; 2] = [
    feedback_svc::fail_points::REQUEST_IDS_FORGOTTEN,
    learning_svc::fail_points::HORIZON_RAISED,
];

/// Points, by the beginning of their names, that a process passes every few seconds: when nodes report and during
/// imports.
const EVERY_FEW_SECONDS: [&str; 2] = ["nodes.", "import."];

/// Repeatedly changes the threshold of the phrases' policy, so that everything waiting is re-evaluated and some of it
/// is promoted. The audit in the end evaluates once more: whatever a death lost is still open then.
async fn keep_changing_a_policy(mut policies: PolicyServiceClient<Channel>) {
    loop {
        let of = GetPolicyRequest {
            namespace: NAMESPACE.into(),
            kind: ResourceKind::InvocationPhrase.into(),
        };
        if let Ok(answer) = policies.get_policy(of).await
            && let Some(policy) = answer.into_inner().policy
        {
            let threshold = if policy.threshold == 2 { 5 } else { 2 };
            let policy = Policy { threshold, ..policy };
            // A process that dies sends no answer.
            let _ = policies
                .update_policy(UpdatePolicyRequest {
                    policy: Some(policy),
                    reason: "for a new threshold".into(),
                    ..UpdatePolicyRequest::default()
                })
                .await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes sure that feedback-svc finds events to claim when it starts: a replica does not claim events that it accepted
/// itself.
async fn leave_events_in_the_outbox(run: &mut Run) {
    run.fleet.start_all().await;
    run.fleet.learning[0].kill().await;
    run.goes_on().await;
    run.fleet.feedback[0].stop().await;
}

fn can_be_armed() -> bool {
    if !COMPILED_IN {
        skipped("fail points are in unoptimised builds only");
    }
    COMPILED_IN
}

fn on_postgresql(points: &[FailPoint], never_there: &[FailPoint]) -> Vec<FailPoint> {
    points
        .iter()
        .copied()
        .filter(|point| !never_there.contains(point))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feedback_svc_may_die_between_any_two_steps_on_sqlite() {
    bounded(async {
        if can_be_armed() {
            let points = feedback_svc::fail_points::ALL.to_vec();
            dies_at_each(
                "points-feedback-sqlite",
                Fleet::sqlite().await,
                Victim::Feedback,
                points,
            )
            .await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feedback_svc_may_die_between_any_two_steps_on_postgresql() {
    bounded(async {
        if can_be_armed()
            && let Some(fleet) = Fleet::postgres(1, 1).await
        {
            use feedback_svc::fail_points::{ALL, ON_SQLITE_ONLY};
            let points = on_postgresql(&ALL, &ON_SQLITE_ONLY);
            dies_at_each("points-feedback-postgres", fleet, Victim::Feedback, points).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn learning_svc_may_die_between_any_two_steps_on_sqlite() {
    bounded(async {
        if can_be_armed() {
            let points = learning_svc::fail_points::ALL.to_vec();
            dies_at_each(
                "points-learning-sqlite",
                Fleet::sqlite().await,
                Victim::Learning,
                points,
            )
            .await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn learning_svc_may_die_between_any_two_steps_on_postgresql() {
    bounded(async {
        if can_be_armed()
            && let Some(fleet) = Fleet::postgres(1, 1).await
        {
            let points = learning_svc::fail_points::ALL.to_vec();
            dies_at_each("points-learning-postgres", fleet, Victim::Learning, points).await;
        }
    })
    .await;
}
