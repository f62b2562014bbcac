//! What votes do: one instance, one vote after another.

use emend_core::{Status, contest::MAX_CANDIDATES, correction::Form};
use emend_proto::common::v1::{Outcome, OutcomeState};
use emend_serve::auth::Access;
use jiff::SignedDuration;
use learning_store::policies::PolicyKey;

use crate::{
    log::revert::Revert,
    tests::{
        on_both_databases,
        world::{
            World, applies, apply, assert_sound, candidate, candidate_id, candidates, head, namespace, one,
            operator, put, rejection, review, verb,
        },
    },
};

on_both_databases!(
    low_risk_is_recorded_and_applied_in_one_transaction,
    three_reporters_promote_and_a_fourth_writes_no_revision,
    the_same_reporter_three_times_is_one_confirmation,
    a_rival_blocks_promotion_by_three_votes_but_not_by_four,
    a_reporter_who_changes_his_mind_moves_his_vote,
    all_spellings_of_a_phrase_share_one_contest,
    a_pinned_value_is_not_replaced_by_votes,
    a_reverted_value_is_not_restored_by_votes,
    a_users_own_preference_applies_at_once_and_to_nobody_else,
    a_prohibition_has_no_rivals,
    a_rejected_value_is_not_reopened_by_votes,
    personal_data_awaits_review,
    votes_without_a_reporter_count_together_as_one,
    a_value_above_the_policys_byte_limit_is_refused,
    new_values_for_a_full_namespace_are_sent_to_review,
    votes_propose_a_bounded_number_of_values_and_people_any_number,
    half_lives_use_the_injected_clock,
);

pub(super) fn state(outcome: &Outcome) -> OutcomeState {
    OutcomeState::try_from(outcome.state).unwrap()
}

async fn low_risk_is_recorded_and_applied_in_one_transaction(world: &World) {
    let app = world.instance().await;
    let outcome = one(&app, &world.feedback("ann", Form::Entity, "Big Blue", "ibm")).await;
    assert_eq!(state(&outcome), OutcomeState::Applied);
    assert!(outcome.auto_applied && outcome.was_new);
    assert_eq!((outcome.revision, outcome.confirmations_needed), (1, 0));
    let value = applies(&app, Form::Entity, "big  blue", "x").await.unwrap();
    assert_eq!(
        (value.learned.maps_to(), value.display.as_str()),
        ("ibm", "Big Blue")
    );
    assert_sound(&app).await;
}

async fn three_reporters_promote_and_a_fourth_writes_no_revision(world: &World) {
    let app = world.instance().await;
    let mut outcomes = Vec::new();
    for reporter in ["ann", "bob", "cid", "dan"] {
        outcomes.push(one(&app, &world.phrase(reporter, "set up a CSA", "create_csa")).await);
    }
    let seen: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let needed = outcome.confirmations_needed;
            (
                state(outcome),
                needed,
                outcome.reporter_count,
                outcome.auto_applied,
                outcome.revision,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (OutcomeState::Pending, 2, 1, false, 0),
            (OutcomeState::Pending, 1, 2, false, 0),
            (OutcomeState::Applied, 0, 3, true, 1),
            (OutcomeState::Applied, 0, 4, false, 1),
        ]
    );
    assert_eq!(head(&app).await, 1);
    let record = candidate(&app, "set up a csa", "create_csa").await;
    assert_eq!((record.candidate.occurrences, record.candidate.reporters), (4, 4));
    assert_eq!(record.candidate.applied_revision.0, 1);
    assert_sound(&app).await;
}

async fn the_same_reporter_three_times_is_one_confirmation(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = (0..3).map(|_| world.phrase("ann", "p", "v")).collect();
    let last = apply(&app, &events).await.pop().unwrap();
    assert_eq!(state(&last), OutcomeState::Pending);
    assert_eq!(
        (
            last.occurrence_count,
            last.reporter_count,
            last.confirmations_needed
        ),
        (3, 1, 2)
    );
    assert_eq!(verb(&app, "p").await, None);
    assert_sound(&app).await;
}

async fn a_rival_blocks_promotion_by_three_votes_but_not_by_four(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("rival", "p", "other")).await;
    for reporter in ["ann", "bob", "cid"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    let record = candidate(&app, "p", "v").await;
    assert_eq!(
        (record.candidate.net, record.candidate.status),
        (2, Status::Pending)
    );
    assert_eq!(verb(&app, "p").await, None);
    let fourth = one(&app, &world.phrase("dan", "p", "v")).await;
    assert!(fourth.auto_applied);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn a_reporter_who_changes_his_mind_moves_his_vote(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "a")).await;
    one(&app, &world.phrase("ann", "p", "b")).await;
    let (a, b) = (candidate(&app, "p", "a").await, candidate(&app, "p", "b").await);
    assert_eq!((a.candidate.reporters, b.candidate.reporters), (0, 1));
    assert_eq!((a.candidate.occurrences, b.candidate.occurrences), (1, 1));
    assert_sound(&app).await;
}

async fn all_spellings_of_a_phrase_share_one_contest(world: &World) {
    let app = world.instance().await;
    for (reporter, phrase) in [
        ("ann", "  Set up a CSA "),
        ("bob", "set up a csa"),
        ("cid", "Ｓｅｔ　ｕｐ　ａ　ＣＳＡ"),
    ] {
        one(&app, &world.phrase(reporter, phrase, "create_csa")).await;
    }
    assert_eq!(candidates(&app).await.len(), 1);
    assert_eq!(verb(&app, "SET UP A CSA").await.as_deref(), Some("create_csa"));
}

async fn a_pinned_value_is_not_replaced_by_votes(world: &World) {
    let app = world.instance().await;
    let done = app.resources.put(&put("p", "pinned")).await.unwrap();
    assert_eq!(done.revision.0, 1);
    for reporter in ["ann", "bob", "cid", "dan"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    assert_eq!(verb(&app, "p").await.as_deref(), Some("pinned"));
    let record = candidate(&app, "p", "v").await;
    assert_eq!(record.candidate.status, Status::AwaitingReview);
    assert!(record.contest_pinned);
    assert_eq!(head(&app).await, 1);
    assert_sound(&app).await;
}

async fn a_reverted_value_is_not_restored_by_votes(world: &World) {
    let app = world.instance().await;
    for reporter in ["ann", "bob", "cid"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    let revert = Revert {
        namespace: namespace(),
        revision: emend_core::Revision(1),
        reason: "a mistake".to_owned(),
        actor: operator(),
    };
    assert_eq!(app.log.revert(&revert, &Access::open()).await.unwrap().0, 2);
    assert_eq!(verb(&app, "p").await, None);
    let late = one(&app, &world.phrase("dan", "p", "v")).await;
    assert_eq!(
        (state(&late), late.reason.as_str()),
        (OutcomeState::AwaitingReview, "REVERTED")
    );
    assert_eq!(verb(&app, "p").await, None);

    // A revert is a revision like any other and can itself be reverted.
    let again = Revert {
        revision: emend_core::Revision(2),
        ..revert
    };
    assert_eq!(app.log.revert(&again, &Access::open()).await.unwrap().0, 3);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn a_users_own_preference_applies_at_once_and_to_nobody_else(world: &World) {
    let app = world.instance().await;
    let outcome = one(&app, &world.own_feedback("ann", Form::PhraseMapping, "p", "v")).await;
    assert!(outcome.auto_applied);
    assert_eq!(verb(&app, "p").await, None, "not everybody's");
    assert_eq!(candidates(&app).await[0].key.user_id(), "ann");
    assert_sound(&app).await;
}

async fn a_prohibition_has_no_rivals(world: &World) {
    let app = world.instance().await;
    for choice in ["a", "b"] {
        for reporter in ["ann", "bob", "cid"] {
            one(&app, &world.feedback(reporter, Form::Prohibition, "p", choice)).await;
        }
    }
    for choice in ["a", "b"] {
        assert!(applies(&app, Form::Prohibition, "p", choice).await.is_some());
    }
}

async fn a_rejected_value_is_not_reopened_by_votes(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    let mut last = None;
    for reporter in ["bob", "cid", "dan", "eve"] {
        last = Some(one(&app, &world.phrase(reporter, "p", "v")).await);
    }
    let last = last.unwrap();
    assert_eq!(state(&last), OutcomeState::Rejected);
    assert_eq!(last.decision_reason, "wrong desk");
    assert!(!last.message.contains("wrong desk"), "{}", last.message);
    assert_eq!(verb(&app, "p").await, None);
    assert_sound(&app).await;
}

async fn personal_data_awaits_review(world: &World) {
    let app = world.instance().await;
    let outcome = one(
        &app,
        &world.feedback("ann", Form::Entity, "jane.doe@example.org", "jane"),
    )
    .await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::AwaitingReview, "PERSONAL_DATA")
    );
}

async fn votes_without_a_reporter_count_together_as_one(world: &World) {
    let app = world.instance().await;
    for _ in 0..5 {
        one(&app, &world.phrase("", "p", "v")).await;
    }
    let record = candidate(&app, "p", "v").await;
    assert_eq!((record.candidate.occurrences, record.candidate.reporters), (5, 1));
    assert_sound(&app).await;
}

async fn a_value_above_the_policys_byte_limit_is_refused(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::EntityAlias, |policy| {
        policy.max_value_bytes = 8;
    })
    .await;
    let feedback = world.feedback("ann", Form::Entity, "a long alias", "entity");
    let outcome = one(&app, &feedback).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Refused, "RESOURCE_LIMIT")
    );
    assert!(candidates(&app).await.is_empty());
    // Retracting what was refused is harmless.
    let taken_back = one(&app, &world.retraction(&feedback)).await;
    assert_eq!(taken_back.reason, "RETRACTED");
    assert_sound(&app).await;
}

async fn new_values_for_a_full_namespace_are_sent_to_review(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::EntityAlias, |policy| {
        policy.max_resources = 2;
    })
    .await;
    let events: Vec<_> = ["a", "b", "c"]
        .map(|alias| world.feedback("ann", Form::Entity, alias, "e"))
        .into();
    let outcomes = apply(&app, &events).await;
    let states: Vec<_> = outcomes.iter().map(state).collect();
    assert_eq!(
        states,
        [
            OutcomeState::Applied,
            OutcomeState::Applied,
            OutcomeState::AwaitingReview
        ]
    );
    assert_eq!(outcomes[2].reason, "RESOURCE_LIMIT");
    let key = PolicyKey {
        namespace: namespace(),
        kind: emend_core::Kind::EntityAlias,
    };
    assert_eq!(app.store.contents().await.unwrap().counted[&key], 2);
    assert_sound(&app).await;
}

async fn votes_propose_a_bounded_number_of_values_and_people_any_number(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = (0..=MAX_CANDIDATES)
        .map(|n| world.phrase(&format!("r{n}"), "p", &format!("v{n}")))
        .collect();
    let outcomes = apply(&app, &events).await;
    let (last, others) = outcomes.split_last().unwrap();
    assert!(
        others
            .iter()
            .all(|outcome| state(outcome) == OutcomeState::Pending)
    );
    let told = (state(last), last.reason.as_str());
    assert_eq!(told, (OutcomeState::Refused, "RESOURCE_LIMIT"));
    let taken_back = one(&app, &world.retraction(&events[MAX_CANDIDATES])).await;
    assert_eq!(taken_back.reason, "RETRACTED");

    // Existing candidates can still win.
    for reporter in ["ann", "bob", "cid"] {
        one(&app, &world.phrase(reporter, "p", "v7")).await;
    }
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v7"));
    app.resources.put(&put("p", "new")).await.unwrap();
    assert_eq!(verb(&app, "p").await.as_deref(), Some("new"));
    assert_sound(&app).await;
}

async fn half_lives_use_the_injected_clock(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::InvocationPhrase, |policy| {
        policy.votes.half_life = Some(SignedDuration::from_hours(24));
    })
    .await;
    for reporter in ["ann", "bob"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    world.clock.advance(SignedDuration::from_hours(30 * 24));
    let third = one(&app, &world.phrase("cid", "p", "v")).await;
    assert_eq!((state(&third), third.reporter_count), (OutcomeState::Pending, 3));
    assert_eq!(third.confirmations_needed, 2);
}
