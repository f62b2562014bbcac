//! Corrections with several effects: each has its own ballot and outcome, and all of them happen in one transaction.

use emend_core::{Policy, Status, correction::Form};
use emend_proto::common::v1::{Outcome, OutcomeState};

use emend_serve::auth::Access;

use crate::{
    policies::update::PolicyUpdate,
    tests::{
        on_both_databases,
        votes::state,
        world::{
            World, apply, assert_sound, candidate, candidates, head, key, namespace, one, operator, put, verb,
        },
    },
};

on_both_databases!(
    each_effect_has_a_ballot_and_an_outcome_and_all_are_in_one_revision,
    a_retraction_takes_back_every_effect_in_one_revision,
    a_retraction_that_overtakes_its_feedback_takes_back_every_effect,
    the_outcome_of_the_whole_is_that_of_the_least_advanced_effect,
    a_refused_effect_does_not_affect_the_others,
    a_redelivered_correction_votes_once_in_each_contest,
    erasing_a_feedback_leaves_all_its_votes,
);

const PHRASES: [&str; 3] = ["alpha", "beta", "gamma"];

fn effects(outcome: &Outcome) -> Vec<OutcomeState> {
    outcome.effects.iter().map(state).collect()
}

async fn three_votes(
    world: &World,
    app: &crate::capabilities::Capabilities,
) -> Vec<crate::ingest::event::IngestEvent> {
    let events: Vec<_> = ["ann", "bob", "cid"]
        .map(|reporter| world.several(reporter, &PHRASES, "open"))
        .into();
    apply(app, &events).await;
    events
}

async fn each_effect_has_a_ballot_and_an_outcome_and_all_are_in_one_revision(world: &World) {
    let app = world.instance().await;
    let first = one(&app, &world.several("ann", &PHRASES, "open")).await;
    assert_eq!(effects(&first), [OutcomeState::Pending; 3]);
    let inputs: Vec<_> = first
        .effects
        .iter()
        .map(|effect| effect.what_was_learned.as_ref().unwrap().input.as_str())
        .collect();
    assert_eq!(inputs, PHRASES, "in the order of the correction");
    assert!(first.message.starts_with("0 of 3 apply."), "{}", first.message);
    one(&app, &world.several("bob", &PHRASES, "open")).await;
    let third = one(&app, &world.several("cid", &PHRASES, "open")).await;
    assert_eq!(effects(&third), [OutcomeState::Applied; 3]);
    assert_eq!((state(&third), third.revision), (OutcomeState::Applied, 1));
    assert!(
        third
            .effects
            .iter()
            .all(|effect| effect.revision == 1 && effect.auto_applied)
    );
    assert_eq!(head(&app).await, 1);
    for phrase in PHRASES {
        assert_eq!(verb(&app, phrase).await.as_deref(), Some("open"));
        assert_eq!(candidate(&app, phrase, "open").await.candidate.occurrences, 3);
    }
    assert_sound(&app).await;
}

async fn a_retraction_takes_back_every_effect_in_one_revision(world: &World) {
    let app = world.instance().await;
    let events = three_votes(world, &app).await;
    let outcome = one(&app, &world.retraction(&events[1])).await;
    assert_eq!(effects(&outcome), [OutcomeState::Withdrawn; 3]);
    assert_eq!((state(&outcome), outcome.revision), (OutcomeState::Withdrawn, 2));
    assert_eq!(head(&app).await, 2);
    for phrase in PHRASES {
        assert_eq!(verb(&app, phrase).await, None);
        let record = candidate(&app, phrase, "open").await;
        assert_eq!(
            (record.candidate.status, record.candidate.occurrences),
            (Status::Withdrawn, 2)
        );
    }
    let again = one(&app, &world.retraction(&events[1])).await;
    assert_eq!((state(&again), head(&app).await), (OutcomeState::NoEffect, 2));
    assert_sound(&app).await;
}

async fn a_retraction_that_overtakes_its_feedback_takes_back_every_effect(world: &World) {
    let app = world.instance().await;
    let event = world.several("ann", &PHRASES, "open");
    one(&app, &world.retraction(&event)).await;
    let outcome = one(&app, &event).await;
    assert_eq!(effects(&outcome), [OutcomeState::NoEffect; 3]);
    assert!(candidates(&app).await.is_empty());
    assert_sound(&app).await;
}

async fn the_outcome_of_the_whole_is_that_of_the_least_advanced_effect(world: &World) {
    let app = world.instance().await;
    for reporter in ["ann", "bob"] {
        one(&app, &world.phrase(reporter, "alpha", "open")).await;
    }
    app.resources.put(&put("beta", "close")).await.unwrap();
    let outcome = one(&app, &world.several("cid", &PHRASES, "open")).await;
    assert_eq!(
        effects(&outcome),
        [
            OutcomeState::Applied,
            OutcomeState::Pending,
            OutcomeState::Pending
        ]
    );
    assert_eq!(state(&outcome), OutcomeState::Pending);
    assert_eq!(outcome.revision, 2, "the newest of its effects");
    assert!(
        outcome.message.starts_with("1 of 3 apply."),
        "{}",
        outcome.message
    );
    assert_sound(&app).await;
}

async fn a_refused_effect_does_not_affect_the_others(world: &World) {
    let app = world.instance().await;
    let long = "Beta ".repeat(50);
    let scope = learning_store::policies::PolicyKey::of(&key(Form::PhraseMapping, "alpha", "open"));
    app.policies
        .update_policy(&PolicyUpdate {
            key: scope,
            etag: None,
            actor: operator(),
            reason: None,
            change: Box::new(|policy: &mut Policy| policy.max_value_bytes = 64),
        })
        .await
        .unwrap();
    let outcome = one(&app, &world.several("ann", &["alpha", &long, "gamma"], "open")).await;
    assert_eq!(
        effects(&outcome),
        [
            OutcomeState::Pending,
            OutcomeState::Refused,
            OutcomeState::Pending
        ]
    );
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Refused, "RESOURCE_LIMIT")
    );
    assert_eq!(candidates(&app).await.len(), 2);
    assert_sound(&app).await;
}

async fn a_redelivered_correction_votes_once_in_each_contest(world: &World) {
    let app = world.instance().await;
    let event = world.several("ann", &PHRASES, "open");
    let first = one(&app, &event).await;
    assert_eq!(one(&app, &event).await, first);
    let same = apply(&app, &[event.clone(), event]).await;
    assert_eq!(same, [first.clone(), first]);
    for phrase in PHRASES {
        assert_eq!(candidate(&app, phrase, "open").await.candidate.occurrences, 1);
    }
    assert_sound(&app).await;
}

async fn erasing_a_feedback_leaves_all_its_votes(world: &World) {
    let app = world.instance().await;
    let events = three_votes(world, &app).await;
    one(&app, &world.redaction(&events[0])).await;
    for phrase in PHRASES {
        assert_eq!(verb(&app, phrase).await.as_deref(), Some("open"));
        let shown = app
            .contests
            .candidate_details(
                &namespace(),
                candidate(&app, phrase, "open").await.candidate.id,
                &Access::open(),
            )
            .await
            .unwrap();
        assert_eq!(shown.feedback.len(), 3);
        let erased = shown
            .feedback
            .iter()
            .filter(|feedback| feedback.reason.is_empty());
        assert_eq!(erased.count(), 1);
    }
    assert_sound(&app).await;
}
