//! A person's decision is undone, soon after, by whoever made it or an operator.

use std::sync::Arc;

use emend_base::Error;
use emend_core::{
    Caller, Cause, Learned, ResourceValue, Status,
    candidate::{Hold, Reason},
};
use emend_serve::auth::{Access, Grant, Principal, Reach, Role};
use learning_store::{actor::Actor, testing::tamper};

use crate::{
    capabilities::Capabilities,
    decisions::{
        review::{Reviewed, Verdict},
        undo::Undo,
    },
    etag,
    tests::{
        on_both_databases,
        rulings::{REPORTER, decision, ruling},
        world::{
            World, apply, approval, assert_sound, candidate, candidate_id, head, namespace, one, operator,
            put, rejection, review, verb,
        },
    },
};

on_both_databases!(
    an_approval_is_undone_and_its_history_tells,
    a_rejection_is_undone_and_votes_since_count,
    an_edited_approval_is_undone_by_either_id,
    what_was_edited_into_a_known_candidate_gets_its_own_words_back,
    only_the_last_decision_is_undone,
    a_decision_is_undone_once_and_not_after_ten_minutes,
    somebody_else_must_be_an_operator,
    an_undo_of_a_candidate_that_has_changed_is_aborted,
    a_ruling_that_was_approved_waits_again,
);

fn of(phrase: &str, verb: &str) -> Undo {
    Undo {
        namespace: namespace(),
        candidate: candidate_id(phrase, verb),
        etag: None,
        actor: operator(),
    }
}

async fn undo(app: &Capabilities, phrase: &str, verb: &str) -> Result<Reviewed, Error> {
    app.decisions.undo(&of(phrase, verb), &Access::open()).await
}

async fn refused(app: &Capabilities, phrase: &str, verb: &str) -> String {
    undo(app, phrase, verb).await.unwrap_err().reason().to_owned()
}

fn edited(display: &str, verb: &str) -> Verdict {
    Verdict::Approve {
        edited: Some(ResourceValue::new(display, Learned::Verb(verb.to_owned()))),
        reason: None,
        accept_redacted: false,
    }
}

async fn an_approval_is_undone_and_its_history_tells(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let before = candidate(&app, "p", "v").await.candidate;
    review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    let undone = undo(&app, "p", "v").await.unwrap();
    assert_eq!((undone.revision.0, head(&app).await), (2, 2));
    let now = candidate(&app, "p", "v").await;
    assert_eq!(now, undone.candidate);
    assert!(!now.contest_pinned);
    assert_eq!(now.candidate.applied_revision.0, 1);
    let unapplied = emend_core::Candidate {
        applied_revision: before.applied_revision,
        ..now.candidate
    };
    assert_eq!(unapplied, before);
    assert_eq!(verb(&app, "p").await, None);
    let history = app.store.transitions(before.id, 10).await.unwrap();
    let last = history.last().unwrap();
    assert_eq!(
        (last.from, last.to, last.cause, last.revision.0),
        (Some(Status::Applied), Status::Pending, Cause::Undo, 2)
    );
    assert_eq!(last.actor, operator());
    assert_sound(&app).await;
}

async fn a_rejection_is_undone_and_votes_since_count(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    for reporter in ["bob", "eve", "joe"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    assert_eq!(verb(&app, "p").await, None);
    let undone = undo(&app, "p", "v").await.unwrap();
    assert_eq!(undone.candidate.candidate.status, Status::Applied);
    assert_eq!(undone.candidate.candidate.decision_reason, None);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn an_edited_approval_is_undone_by_either_id(world: &World) {
    let app = world.instance().await;
    for (phrase, by) in [("p", "v"), ("q", "better")] {
        one(&app, &world.phrase("ann", phrase, "v")).await;
        review(&app, candidate_id(phrase, "v"), None, edited("P", "better"))
            .await
            .unwrap();
        let undone = undo(&app, phrase, by).await.unwrap();
        assert_eq!(undone.candidate.candidate.id, candidate_id(phrase, "v"));
        assert_eq!(undone.candidate.candidate.status, Status::Pending);
        let made = candidate(&app, phrase, "better").await.candidate;
        assert_eq!(
            (made.status, made.reason),
            (Status::Withdrawn, Some(Reason::Undone))
        );
        assert_eq!(verb(&app, phrase).await, None);
    }
    // Votes may still propose it.
    for reporter in ["bob", "eve", "joe", "kim"] {
        one(&app, &world.phrase(reporter, "p", "better")).await;
    }
    assert_eq!(verb(&app, "p").await.as_deref(), Some("better"));
    assert_sound(&app).await;
}

async fn what_was_edited_into_a_known_candidate_gets_its_own_words_back(world: &World) {
    let app = world.instance().await;
    for reporter in ["bob", "eve", "joe"] {
        one(&app, &world.phrase(reporter, "p", "known")).await;
    }
    one(&app, &world.phrase("ann", "p", "v")).await;
    let before = candidate(&app, "p", "known").await.candidate;
    review(&app, candidate_id("p", "v"), None, edited("Other words", "known"))
        .await
        .unwrap();
    assert_eq!(
        candidate(&app, "p", "known").await.candidate.value.display,
        "Other words"
    );
    undo(&app, "p", "v").await.unwrap();
    let now = candidate(&app, "p", "known").await.candidate;
    assert_eq!((&now.value, now.status), (&before.value, Status::Applied));
    assert_eq!(now.applied_threshold, before.applied_threshold);
    assert_eq!(candidate(&app, "p", "v").await.candidate.status, Status::Pending);
    assert_sound(&app).await;
}

async fn only_the_last_decision_is_undone(world: &World) {
    let app = world.instance().await;
    for (phrase, other) in [("p", false), ("q", true)] {
        one(&app, &world.phrase("ann", phrase, "v")).await;
        one(&app, &world.phrase("bob", phrase, "w")).await;
        review(&app, candidate_id(phrase, "v"), None, rejection())
            .await
            .unwrap();
        if other {
            review(&app, candidate_id(phrase, "w"), None, approval())
                .await
                .unwrap();
        } else {
            app.resources.put(&put(phrase, "x")).await.unwrap();
        }
        assert_eq!(refused(&app, phrase, "v").await, "NOT_THE_LAST_DECISION");
    }
    undo(&app, "q", "w").await.unwrap();
    assert_eq!(refused(&app, "q", "w").await, "NOTHING_TO_UNDO");
    assert_sound(&app).await;
}

async fn a_decision_is_undone_once_and_not_after_ten_minutes(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    assert_eq!(refused(&app, "p", "v").await, "NOTHING_TO_UNDO");
    review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    undo(&app, "p", "v").await.unwrap();
    assert_eq!(refused(&app, "p", "v").await, "NOTHING_TO_UNDO");
    review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    tamper(
        &world.url,
        "UPDATE undoable_decisions SET made_at = made_at - 601000000",
    )
    .await;
    assert_eq!(refused(&app, "p", "v").await, "TOO_LATE_TO_UNDO");
    tamper(&world.url, "DELETE FROM undoable_decisions").await;
    assert_eq!(refused(&app, "p", "v").await, "TOO_LATE_TO_UNDO");
}

async fn somebody_else_must_be_an_operator(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    let with = |role| {
        let grant = Grant {
            roles: vec![role],
            reach: Reach::All,
            act_for_users: true,
        };
        let principal = Principal::new(Caller::parse("console").unwrap(), &[grant]);
        Access::known(Arc::new(principal), Role::Reviewer)
    };
    let by = |person: &str| Undo {
        actor: Actor {
            caller: operator().caller,
            on_behalf_of: person.to_owned(),
        },
        ..of("p", "v")
    };
    let refused = app.decisions.undo(&by("tom"), &with(Role::Reviewer)).await;
    assert_eq!(refused.unwrap_err().reason(), "NOT_THE_DECIDER");
    app.decisions
        .undo(&by("olga"), &with(Role::Reviewer))
        .await
        .unwrap();
    review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    app.decisions
        .undo(&by("tom"), &with(Role::Operator))
        .await
        .unwrap();
}

async fn an_undo_of_a_candidate_that_has_changed_is_aborted(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let approved = review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    let seen = Undo {
        etag: Some(etag::of_version(approved.candidate.kept.version)),
        ..of("p", "v")
    };
    one(&app, &world.phrase("bob", "p", "v")).await;
    let aborted = app.decisions.undo(&seen, &Access::open()).await.unwrap_err();
    assert_eq!(aborted.reason(), "ETAG_MISMATCH");
    undo(&app, "p", "v").await.unwrap();
}

async fn a_ruling_that_was_approved_waits_again(world: &World) {
    let app = world.instance().await;
    let asked = decision(world, "example.org", "block", REPORTER);
    apply(&app, std::slice::from_ref(&asked)).await;
    let id = ruling(&asked);
    let approved = review(&app, id, None, approval()).await.unwrap();
    assert_eq!(approved.candidate.candidate.status, Status::Applied);
    let undo = Undo {
        candidate: id,
        ..of("p", "v")
    };
    let undone = app.decisions.undo(&undo, &Access::open()).await.unwrap();
    let waits = undone.candidate.candidate;
    assert_eq!(
        (waits.status, waits.hold),
        (Status::AwaitingReview, Some(Hold::NotEntitled))
    );
    assert!(!waits.is_effective());
    assert_sound(&app).await;
}
