//! Policies, and the re-evaluation of pending contests when they change.

use emend_base::Error;
use emend_core::{Kind, Policy, RiskLevel, Status, correction::Form};
use emend_proto::common::v1::OutcomeState;
use emend_store::audit::{Findings, IgnoreProgress};
use futures::future::join_all;
use learning_store::{self, audit::Audit, policies::PolicyKey};

use crate::{
    capabilities::Capabilities,
    etag,
    policies::update::{PolicyInForce, PolicyUpdate},
    resources::write::Delete,
    tests::{
        on_both_databases,
        votes::state,
        world::{
            World, applies, assert_sound, candidate, candidates, head, namespace, one, operator, put, verb,
        },
    },
};

on_both_databases!(
    a_policy_that_was_never_set_is_the_default,
    each_change_is_a_version_and_a_stale_one_is_aborted,
    a_change_out_of_bounds_is_refused_and_changes_nothing,
    no_concurrent_policy_change_is_lost,
    a_lowered_threshold_promotes_pending_candidates_in_resumable_steps,
    a_pass_goes_on_after_contests_that_could_not_be_evaluated,
    corrupt_contests_stop_neither_the_worker_nor_the_others,
    a_raised_risk_sends_pending_candidates_to_review,
    several_replicas_evaluate_each_contest_once,
    a_raised_threshold_withdraws_nothing,
    a_contest_stays_due_for_reevaluation_after_a_persons_action,
    a_vote_releases_candidates_held_for_a_risk_that_was_lowered,
    a_frozen_kind_learns_nothing_by_votes_and_loses_none_of_them,
);

fn key(kind: Kind) -> PolicyKey {
    PolicyKey {
        namespace: namespace(),
        kind,
    }
}

fn update(
    kind: Kind,
    etag: Option<String>,
    change: impl Fn(&mut Policy) + Send + Sync + 'static,
) -> PolicyUpdate {
    PolicyUpdate {
        key: key(kind),
        etag,
        actor: operator(),
        reason: None,
        change: Box::new(change),
    }
}

/// Changes a policy.
pub(super) async fn set(
    app: &Capabilities,
    kind: Kind,
    change: impl Fn(&mut Policy) + Send + Sync + 'static,
) -> PolicyInForce {
    app.policies
        .update_policy(&update(kind, None, change))
        .await
        .unwrap()
}

async fn a_policy_that_was_never_set_is_the_default(world: &World) {
    let app = world.instance().await;
    let in_force = app.policies.policy(&key(Kind::EntityAlias)).await.unwrap();
    assert_eq!(in_force.stored.policy, Policy::default_for(Kind::EntityAlias));
    assert_eq!((in_force.stored.updated_at, in_force.remaining), (None, 0));
}

async fn each_change_is_a_version_and_a_stale_one_is_aborted(world: &World) {
    let app = world.instance().await;
    let first = set(&app, Kind::Prohibition, |policy| policy.votes.threshold = 5).await;
    assert_eq!(
        (first.stored.policy.version, first.stored.policy.votes.threshold),
        (1, 5)
    );
    let seen = etag::of_version(1);
    let second = update(Kind::Prohibition, Some(seen.clone()), |policy| {
        policy.votes.threshold = 6;
    });
    assert_eq!(
        app.policies
            .update_policy(&second)
            .await
            .unwrap()
            .stored
            .policy
            .version,
        2
    );
    let stale = update(Kind::Prohibition, Some(seen), |policy| policy.votes.threshold = 7);
    assert_eq!(
        app.policies.update_policy(&stale).await.unwrap_err().reason(),
        "ETAG_MISMATCH"
    );
    // A change to the current value is no change.
    let same = set(&app, Kind::Prohibition, |policy| policy.votes.threshold = 6).await;
    assert_eq!(same.stored.policy.version, 2);
}

async fn a_change_out_of_bounds_is_refused_and_changes_nothing(world: &World) {
    let app = world.instance().await;
    let bad = update(Kind::Prohibition, None, |policy| {
        policy.votes.threshold = 0;
        policy.max_resources = 0;
    });
    let Error::InvalidArgument(violations) = app.policies.update_policy(&bad).await.unwrap_err() else {
        panic!("out of bounds");
    };
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["policy.threshold", "policy.max_resources"]);
    assert_eq!(
        app.policies
            .policy(&key(Kind::Prohibition))
            .await
            .unwrap()
            .stored
            .policy
            .version,
        0
    );
}

async fn no_concurrent_policy_change_is_lost(world: &World) {
    let (one_app, two) = (world.instance().await, world.instance().await);
    let changes = (0..6).map(|n: usize| {
        let app = if n.is_multiple_of(2) {
            one_app.clone()
        } else {
            two.clone()
        };
        tokio::spawn(async move { set(&app, Kind::Prohibition, |policy| policy.votes.threshold += 1).await })
    });
    for change in join_all(changes).await {
        change.unwrap();
    }
    let policy = one_app
        .policies
        .policy(&key(Kind::Prohibition))
        .await
        .unwrap()
        .stored
        .policy;
    assert_eq!((policy.version, policy.votes.threshold), (6, 9));
}

async fn a_lowered_threshold_promotes_pending_candidates_in_resumable_steps(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = (0..300)
        .map(|n| world.phrase("ann", &format!("p{n}"), "v"))
        .collect();
    super::world::apply(&app, &events).await;
    let in_force = set(&app, Kind::InvocationPhrase, |policy| policy.votes.threshold = 1).await;
    assert_eq!(in_force.remaining, 300);

    let first = app.contests.reevaluate_once(None).await.unwrap();
    assert!(first.evaluated > 0 && first.evaluated < 300);
    // Another replica, or this one after a restart, continues where the first stopped.
    let other = world.instance().await;
    let remaining = app
        .policies
        .policy(&key(Kind::InvocationPhrase))
        .await
        .unwrap()
        .remaining;
    assert_eq!(remaining, 300 - first.evaluated as u64);
    while other.contests.reevaluate_once(None).await.unwrap().evaluated > 0 {}
    assert_eq!(
        app.policies
            .policy(&key(Kind::InvocationPhrase))
            .await
            .unwrap()
            .remaining,
        0
    );
    assert_eq!(head(&app).await, 300);
    let record = candidate(&app, "p7", "v").await;
    assert_eq!(
        (record.candidate.status, record.candidate.policy_version),
        (Status::Applied, 1)
    );
    assert_eq!(record.kept.decided_by.caller.as_str(), "system");
    assert_sound(&app).await;
}

async fn a_pass_goes_on_after_contests_that_could_not_be_evaluated(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = (0..5)
        .map(|n| world.phrase("ann", &format!("p{n}"), "v"))
        .collect();
    super::world::apply(&app, &events).await;
    set(&app, Kind::InvocationPhrase, |policy| policy.votes.threshold = 1).await;
    let (mut passed, mut after) = (Vec::new(), None);
    // Nothing is evaluated here, as if everything failed.
    loop {
        let found = app.store.contests_to_reevaluate(after, 2).await.unwrap();
        after = found.last().map(|(place, _)| *place);
        if after.is_none() {
            break;
        }
        passed.extend(found.iter().map(|(place, _)| *place));
    }
    assert_eq!(passed.len(), 5);
    assert!(passed.is_sorted(), "each once, in order");
    let step = app.contests.reevaluate_once(Some(passed[1])).await.unwrap();
    assert_eq!((step.evaluated, step.last), (3, Some(passed[4])));
    assert_eq!(app.contests.reevaluate_once(step.last).await.unwrap().last, None);
    assert_eq!(
        app.policies
            .policy(&key(Kind::InvocationPhrase))
            .await
            .unwrap()
            .remaining,
        2
    );
}

async fn corrupt_contests_stop_neither_the_worker_nor_the_others(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = (0..200)
        .map(|n| world.phrase("ann", &format!("p{n}"), "v"))
        .collect();
    super::world::apply(&app, &events).await;
    // One contest with unreadable candidates and two unreadable contests, among readable ones.
    for sql in [
        "UPDATE candidates SET status = 99 WHERE contest = (SELECT contest FROM contests WHERE key = 'p7')",
        "UPDATE contests SET key = 'not what gives its id' WHERE key = 'p8'",
        "UPDATE contests SET kind = 1, key = '' WHERE key = 'p9'",
    ] {
        learning_store::testing::tamper(&world.url, sql).await;
    }
    set(&app, Kind::InvocationPhrase, |policy| policy.votes.threshold = 1).await;
    for expected in [197, 0] {
        let (mut evaluated, mut failed, mut after) = (0, 0, None);
        loop {
            let step = app.contests.reevaluate_once(after).await.unwrap();
            evaluated += step.evaluated;
            failed += step.failed;
            after = step.last;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((evaluated, failed), (expected, 3), "each pass tries them again");
    }
    assert_eq!(head(&app).await, 197);
    let remaining = app
        .policies
        .policy(&key(Kind::InvocationPhrase))
        .await
        .unwrap()
        .remaining;
    assert_eq!(remaining, 3, "the number that remains is shown");
    let mut findings = Findings::default();
    let mut audit = Audit::open(&world.url).await.unwrap();
    audit.check(&mut findings, &mut IgnoreProgress).await.unwrap();
    assert_eq!(findings.counts()["ROW_CORRUPT"], 3, "and by an audit, row by row");
}

async fn a_raised_risk_sends_pending_candidates_to_review(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    set(&app, Kind::InvocationPhrase, |policy| {
        policy.votes.risk = RiskLevel::High;
    })
    .await;
    app.contests.reevaluate_once(None).await.unwrap();
    let record = candidate(&app, "p", "v").await;
    assert_eq!(record.candidate.status, Status::AwaitingReview);
    for reporter in ["bob", "cid", "dan"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    assert_eq!(verb(&app, "p").await, None);
    // When the risk is lowered again, votes decide what waited for it alone.
    set(&app, Kind::InvocationPhrase, |policy| {
        policy.votes.risk = RiskLevel::Medium;
    })
    .await;
    app.contests.reevaluate_once(None).await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn several_replicas_evaluate_each_contest_once(world: &World) {
    let (one_app, two) = (world.instance().await, world.instance().await);
    let events: Vec<_> = (0..100)
        .map(|n| world.phrase("ann", &format!("p{n}"), "v"))
        .collect();
    super::world::apply(&one_app, &events).await;
    set(&one_app, Kind::InvocationPhrase, |policy| {
        policy.votes.threshold = 1;
    })
    .await;
    let (first, second) = tokio::join!(
        one_app.contests.reevaluate_once(None),
        two.contests.reevaluate_once(None)
    );
    first.unwrap();
    second.unwrap();
    assert_eq!(head(&one_app).await, 100);
    assert!(
        candidates(&one_app)
            .await
            .iter()
            .all(|record| record.candidate.status == Status::Applied)
    );
    assert_sound(&one_app).await;
}

async fn a_raised_threshold_withdraws_nothing(world: &World) {
    let app = world.instance().await;
    for reporter in ["ann", "bob", "cid"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    one(&app, &world.phrase("dan", "p", "w")).await;
    set(&app, Kind::InvocationPhrase, |policy| policy.votes.threshold = 10).await;
    app.contests.reevaluate_once(None).await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

/// The codes of the checks with findings in an audit.
async fn found(world: &World) -> Vec<&'static str> {
    let mut findings = Findings::default();
    let mut audit = Audit::open(&world.url).await.unwrap();
    audit.check(&mut findings, &mut IgnoreProgress).await.unwrap();
    findings.counts().keys().copied().collect()
}

async fn a_contest_stays_due_for_reevaluation_after_a_persons_action(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("p", "a")).await.unwrap();
    one(&app, &world.phrase("ann", "p", "v")).await;
    let in_force = set(&app, Kind::InvocationPhrase, |policy| policy.votes.threshold = 1).await;
    assert_eq!(in_force.remaining, 1);
    let gone = Delete {
        key: put("p", "a").key,
        etag: None,
        reason: None,
        actor: operator(),
    };
    app.resources.delete(&gone).await.unwrap();
    let remaining = app
        .policies
        .policy(&key(Kind::InvocationPhrase))
        .await
        .unwrap()
        .remaining;
    assert_eq!(remaining, 1, "it is not yet evaluated by the new policy");
    assert_eq!(found(world).await, [""; 0]);
    app.contests.reevaluate_once(None).await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_eq!(found(world).await, [""; 0]);
    assert_sound(&app).await;
}

async fn a_vote_releases_candidates_held_for_a_risk_that_was_lowered(world: &World) {
    let app = world.instance().await;
    set(&app, Kind::InvocationPhrase, |policy| {
        policy.votes.risk = RiskLevel::High;
    })
    .await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    assert_eq!(
        candidate(&app, "p", "v").await.candidate.status,
        Status::AwaitingReview
    );
    set(&app, Kind::InvocationPhrase, |policy| {
        policy.votes.risk = RiskLevel::Medium;
    })
    .await;
    // Before the worker gets to it: an event evaluated by the new policy does everything it asks for.
    one(&app, &world.phrase("bob", "p", "w")).await;
    assert_eq!(candidate(&app, "p", "v").await.candidate.status, Status::Pending);
    assert_eq!(found(world).await, [""; 0]);
    assert_sound(&app).await;
}

async fn a_frozen_kind_learns_nothing_by_votes_and_loses_none_of_them(world: &World) {
    let app = world.instance().await;
    set(&app, Kind::InvocationPhrase, |policy| policy.frozen = true).await;
    let mut told = Vec::new();
    for reporter in ["ann", "bob", "cid"] {
        let outcome = one(&app, &world.phrase(reporter, "p", "v")).await;
        told.push((state(&outcome), outcome.reason));
    }
    let waits = |reason: &str| (OutcomeState::Pending, reason.to_owned());
    assert_eq!(
        told,
        [
            waits("BELOW_THRESHOLD"),
            waits("BELOW_THRESHOLD"),
            waits("FROZEN")
        ]
    );
    // Other kinds go on, people may decide, and what applies may be taken back.
    one(&app, &world.feedback("ann", Form::Entity, "jd", "person:jd")).await;
    assert!(applies(&app, Form::Entity, "jd", "x").await.is_some());
    app.resources.put(&put("q", "w")).await.unwrap();
    assert_eq!(verb(&app, "q").await.as_deref(), Some("w"));
    assert_eq!(verb(&app, "p").await, None);
    assert_eq!(found(world).await, [""; 0]);

    let released = set(&app, Kind::InvocationPhrase, |policy| policy.frozen = false).await;
    assert_eq!(released.remaining, 1);
    app.contests.reevaluate_once(None).await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_eq!(found(world).await, [""; 0]);
    assert_sound(&app).await;
}
