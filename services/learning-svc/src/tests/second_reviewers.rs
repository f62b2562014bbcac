//! Where the policy needs two reviewers, two callers who are known have to approve the same value.

use std::sync::Arc;

use emend_base::Error;
use emend_core::{Caller, Kind, Learned, ResourceValue, Status, candidate::Reason};
use emend_serve::auth::{Access, Grant, Principal, Reach, Role};
use learning_store::{actor::Actor, policies::PolicyKey};

use crate::{
    capabilities::Capabilities,
    decisions::{
        review::{Review, Reviewed, Verdict},
        undo::Undo,
    },
    etag,
    policies::update::PolicyUpdate,
    tests::{
        on_both_databases,
        world::{
            World, approval, assert_sound, candidate, candidate_id, head, namespace, one, operator,
            rejection, verb,
        },
    },
};

on_both_databases!(
    the_second_of_two_callers_decides,
    nobody_is_both_of_them_and_nobody_unknown_is_one,
    two_first_approvals_at_once_are_a_first_and_a_second,
    another_value_is_approved_anew,
    a_second_approval_is_undone_and_one_rejection_is_enough,
    a_vote_between_them_makes_the_etag_old,
);

fn person(name: &str) -> (Actor, Access) {
    let caller = Caller::parse(name).unwrap();
    let grant = Grant {
        roles: vec![Role::Reviewer],
        reach: Reach::All,
        act_for_users: false,
    };
    let principal = Principal::new(caller.clone(), &[grant]);
    (
        Actor::caller(caller),
        Access::known(Arc::new(principal), Role::Reviewer),
    )
}

/// A service whose verbs need two reviewers, and a phrase with a vote.
async fn of_two(world: &World) -> Capabilities {
    let app = world.instance().await;
    let key = PolicyKey {
        namespace: namespace(),
        kind: Kind::InvocationPhrase,
    };
    let update = PolicyUpdate {
        key,
        etag: None,
        actor: operator(),
        reason: None,
        change: Box::new(|policy| policy.reviewers_needed = 2),
    };
    app.policies.update_policy(&update).await.unwrap();
    one(&app, &world.phrase("ann", "p", "v")).await;
    app
}

async fn decide(
    app: &Capabilities,
    name: &str,
    phrase_verb: &str,
    verdict: Verdict,
    etag: Option<String>,
) -> Result<Reviewed, Error> {
    let (actor, access) = person(name);
    let review = Review {
        namespace: namespace(),
        candidate: candidate_id("p", phrase_verb),
        etag,
        actor,
        operation: None,
        verdict,
    };
    app.decisions.review(&review, &access).await
}

async fn approve(app: &Capabilities, name: &str) -> Result<Reviewed, Error> {
    decide(app, name, "v", approval(), None).await
}

fn edited(display: &str, verb: &str) -> Verdict {
    Verdict::Approve {
        edited: Some(ResourceValue::new(display, Learned::Verb(verb.to_owned()))),
        reason: None,
        accept_redacted: false,
    }
}

fn waits(reviewed: &Reviewed) -> bool {
    let candidate = &reviewed.candidate.candidate;
    reviewed.revision.0 == 0
        && (candidate.status, candidate.reason) == (Status::AwaitingReview, Some(Reason::SecondReviewer))
}

async fn the_second_of_two_callers_decides(world: &World) {
    let app = of_two(world).await;
    assert!(waits(&approve(&app, "rita").await.unwrap()));
    assert_eq!(verb(&app, "p").await, None);
    let record = candidate(&app, "p", "v").await;
    let shown = app.queue.first_approvals(&[record]).await.unwrap();
    let first = &shown[&candidate_id("p", "v")];
    assert_eq!((first.actor.caller.as_str(), &*first.reason), ("rita", "seen it"));
    // Another replica knows of it.
    let other = world.instance().await;
    let second = approve(&other, "rob").await.unwrap();
    assert_eq!(
        (second.candidate.candidate.status, second.revision.0),
        (Status::Applied, 1)
    );
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn nobody_is_both_of_them_and_nobody_unknown_is_one(world: &World) {
    let app = of_two(world).await;
    let review = Review {
        namespace: namespace(),
        candidate: candidate_id("p", "v"),
        etag: None,
        actor: operator(),
        operation: None,
        verdict: approval(),
    };
    let unknown = app.decisions.review(&review, &Access::open()).await;
    assert_eq!(unknown.unwrap_err().reason(), "AUTHENTICATION_NEEDED");
    approve(&app, "rita").await.unwrap();
    assert_eq!(
        approve(&app, "rita").await.unwrap_err().reason(),
        "SECOND_REVIEWER"
    );
    // On whose behalf she says to act makes her nobody else.
    let (rita, access) = person("rita");
    let as_another = Review {
        actor: Actor {
            on_behalf_of: "rob".to_owned(),
            ..rita
        },
        ..review
    };
    let refused = app.decisions.review(&as_another, &access).await;
    assert_eq!(refused.unwrap_err().reason(), "SECOND_REVIEWER");
    assert_eq!(head(&app).await, 0);
}

async fn two_first_approvals_at_once_are_a_first_and_a_second(world: &World) {
    let (here, there) = (of_two(world).await, world.instance().await);
    let (one, two) = tokio::join!(approve(&here, "rita"), approve(&there, "rob"));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(waits(&one), waits(&two), "{one:?} {two:?}");
    assert_eq!(
        (verb(&here, "p").await.as_deref(), head(&here).await),
        (Some("v"), 1)
    );
    assert_sound(&here).await;
}

async fn another_value_is_approved_anew(world: &World) {
    let app = of_two(world).await;
    approve(&app, "rita").await.unwrap();
    // Rob would have it otherwise: his is the first approval of that.
    let first = decide(&app, "rob", "v", edited("p", "w"), None).await.unwrap();
    assert!(waits(&first));
    let again = decide(&app, "rob", "v", edited("p", "w"), None).await;
    assert_eq!(again.unwrap_err().reason(), "SECOND_REVIEWER");
    // Rita types the same.
    let second = decide(&app, "rita", "v", edited("p", "w"), None).await.unwrap();
    assert_eq!(second.candidate.candidate.status, Status::Applied);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("w"));
    assert_eq!(
        candidate(&app, "p", "v").await.candidate.status,
        Status::Superseded
    );
    assert_sound(&app).await;
}

async fn a_second_approval_is_undone_and_one_rejection_is_enough(world: &World) {
    let app = of_two(world).await;
    approve(&app, "rita").await.unwrap();
    approve(&app, "rob").await.unwrap();
    let (rob, access) = person("rob");
    let undo = Undo {
        namespace: namespace(),
        candidate: candidate_id("p", "v"),
        etag: None,
        actor: rob,
    };
    let undone = app.decisions.undo(&undo, &access).await.unwrap();
    assert!(undone.candidate.candidate.awaits_second());
    // Rita's approval stands as it did, and Rob's does not.
    assert_eq!(
        approve(&app, "rita").await.unwrap_err().reason(),
        "SECOND_REVIEWER"
    );
    let shown = app
        .store
        .first_approvals(&[candidate_id("p", "v")])
        .await
        .unwrap();
    assert_eq!(shown[&candidate_id("p", "v")].actor.caller.as_str(), "rita");
    approve(&app, "rob").await.unwrap();
    app.decisions.undo(&undo, &access).await.unwrap();
    let rejected = decide(&app, "eve", "v", rejection(), None).await.unwrap();
    assert_eq!(rejected.candidate.candidate.status, Status::Rejected);
    assert_sound(&app).await;
}

async fn a_vote_between_them_makes_the_etag_old(world: &World) {
    let app = of_two(world).await;
    let first = approve(&app, "rita").await.unwrap();
    let seen = etag::of_version(first.candidate.kept.version);
    one(&app, &world.phrase("tom", "p", "v")).await;
    let old = decide(&app, "rob", "v", approval(), Some(seen)).await;
    assert_eq!(old.unwrap_err().reason(), "ETAG_MISMATCH");
    approve(&app, "rob").await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
}
