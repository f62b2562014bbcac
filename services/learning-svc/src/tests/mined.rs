//! What users did proposes something: it waits for a person, and counts for nothing.

use emend_core::{Correction, FeedbackId, Origin, candidate::Status};
use emend_proto::common::v1::OutcomeState;

use super::{
    erasure::assert_audited,
    on_both_databases,
    votes::state,
    world::{
        World, apply, candidate, candidate_id, candidates, head, namespace, one, rejection, review, verb,
    },
};
use crate::ingest::event::{FeedbackChange, IngestEvent};

on_both_databases!(
    it_waits_for_a_person_and_no_revision_is_written,
    votes_carry_it,
    it_does_not_return_once_a_person_has_rejected_it,
);

fn mined(world: &World, phrase: &str, verb: &str) -> IngestEvent {
    let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
    IngestEvent {
        feedback: FeedbackId::none(),
        change: FeedbackChange::Mined {
            effects: correction.effects(&namespace(), None),
            reason: "what users did in 3 sessions".to_owned(),
        },
        ..world.phrase("", phrase, verb)
    }
}

async fn it_waits_for_a_person_and_no_revision_is_written(world: &World) {
    let app = world.instance().await;
    let event = mined(world, "p", "v");
    let outcome = one(&app, &event).await;
    assert_eq!(state(&outcome), OutcomeState::NoEffect);
    assert_eq!(
        one(&app, &event).await,
        outcome,
        "the same event is answered alike"
    );
    one(&app, &mined(world, "p", "v")).await;
    assert_eq!(candidates(&app).await.len(), 1);
    let waiting = candidate(&app, "p", "v").await.candidate;
    assert_eq!(
        (waiting.status, waiting.origin),
        (Status::AwaitingReview, Origin::Mined)
    );
    assert_eq!((waiting.occurrences, waiting.reporters), (0, 0));
    assert_eq!(head(&app).await, 0);
    assert_audited(world).await;
}

async fn votes_carry_it(world: &World) {
    let app = world.instance().await;
    one(&app, &mined(world, "p", "v")).await;
    let votes = ["ann", "bob", "cid"].map(|reporter| world.phrase(reporter, "p", "v"));
    apply(&app, &votes[..2]).await;
    assert_eq!(verb(&app, "p").await, None);
    apply(&app, &votes[2..]).await;
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_audited(world).await;
}

async fn it_does_not_return_once_a_person_has_rejected_it(world: &World) {
    let app = world.instance().await;
    one(&app, &mined(world, "p", "v")).await;
    review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    one(&app, &mined(world, "p", "v")).await;
    let rejected = candidate(&app, "p", "v").await.candidate;
    assert_eq!(rejected.status, Status::Rejected);
    assert_audited(world).await;
}
