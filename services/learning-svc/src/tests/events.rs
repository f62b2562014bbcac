//! What events do beyond voting: retraction, redaction, redelivery, and what is shown of them.

use emend_core::{Origin, Status, correction::Form};
use emend_proto::common::v1::OutcomeState;
use emend_serve::auth::Access;

use crate::tests::{
    on_both_databases,
    votes::state,
    world::{
        World, applies, apply, approval, assert_sound, candidate, candidate_id, candidates, head, namespace,
        one, operator, review, verb,
    },
};

on_both_databases!(
    retraction_below_the_threshold_withdraws,
    a_candidate_unchanged_by_a_group_can_be_voted_for_again,
    a_retraction_that_overtakes_its_feedback_leaves_nothing_counted,
    a_retraction_in_one_group_with_its_feedback_in_any_order_leaves_nothing_counted,
    a_candidate_that_a_group_changed_and_changed_back_can_still_change,
    redaction_erases_the_reporter_and_keeps_the_counts,
    a_redaction_that_overtakes_its_feedback_keeps_its_personal_parts_out,
    a_redelivered_event_gets_the_same_answer_and_changes_nothing,
    a_bad_event_does_not_affect_the_others_in_its_group,
    the_log_names_the_feedback_that_caused_a_change_and_its_time,
    a_candidate_is_shown_with_votes_rivals_feedback_and_history,
    many_groups_of_mixed_events_stay_consistent,
);

async fn retraction_below_the_threshold_withdraws(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = ["ann", "bob", "cid"]
        .map(|reporter| world.phrase(reporter, "p", "v"))
        .into();
    apply(&app, &events).await;
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    let outcome = one(&app, &world.retraction(&events[1])).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Withdrawn, "RETRACTED")
    );
    assert_eq!(outcome.revision, 2);
    assert_eq!(verb(&app, "p").await, None);
    let record = candidate(&app, "p", "v").await;
    assert_eq!(
        (record.candidate.status, record.candidate.occurrences),
        (Status::Withdrawn, 2)
    );

    // A second retraction has no further effect.
    let again = one(&app, &world.retraction(&events[1])).await;
    assert_eq!(
        (state(&again), again.reason.as_str()),
        (OutcomeState::NoEffect, "RETRACTED")
    );
    assert_eq!(head(&app).await, 2);
    assert_sound(&app).await;
}

async fn a_candidate_unchanged_by_a_group_can_be_voted_for_again(world: &World) {
    let app = world.instance().await;
    let first = world.phrase("ann", "p", "v");
    one(&app, &first).await;
    let before = candidate(&app, "p", "v").await;

    // Its one supporter leaves, so it is withdrawn; another arrives, so it is pending again: all in one group.
    apply(&app, &[world.retraction(&first), world.phrase("bob", "p", "v")]).await;
    let after = candidate(&app, "p", "v").await;
    assert_eq!(after.candidate, before.candidate, "it is unchanged");
    assert_eq!(
        after.kept.transitions,
        before.kept.transitions + 2,
        "its history is longer"
    );

    let last = ["cid", "dee"].map(|reporter| world.phrase(reporter, "p", "v"));
    let outcomes = apply(&app, &last).await;
    assert_eq!(state(&outcomes[1]), OutcomeState::Applied);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn a_retraction_that_overtakes_its_feedback_leaves_nothing_counted(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = ["ann", "bob", "cid"]
        .map(|reporter| world.phrase(reporter, "p", "v"))
        .into();
    one(&app, &world.retraction(&events[0])).await;
    let outcomes = apply(&app, &events).await;
    assert_eq!(
        (state(&outcomes[0]), outcomes[0].reason.as_str()),
        (OutcomeState::NoEffect, "RETRACTED")
    );
    assert_eq!(verb(&app, "p").await, None);
    assert_eq!(candidate(&app, "p", "v").await.candidate.occurrences, 2);
    assert_sound(&app).await;
}

async fn a_retraction_in_one_group_with_its_feedback_in_any_order_leaves_nothing_counted(world: &World) {
    let app = world.instance().await;
    for (phrase, retraction_first) in [("p", true), ("q", false)] {
        let feedback = world.feedback("ann", Form::Entity, phrase, "e");
        let retraction = world.retraction(&feedback);
        let group = if retraction_first {
            [retraction, feedback]
        } else {
            [feedback, retraction]
        };
        apply(&app, &group).await;
        assert_eq!(applies(&app, Form::Entity, phrase, "x").await, None);
    }
    assert_sound(&app).await;
}

async fn a_candidate_that_a_group_changed_and_changed_back_can_still_change(world: &World) {
    let app = world.instance().await;
    let first = world.phrase("ann", "p", "v");
    one(&app, &first).await;
    // Pending, withdrawn, pending: as before, two transitions later.
    let second = world.phrase("bob", "p", "v");
    apply(&app, &[world.retraction(&first), second.clone()]).await;
    let record = candidate(&app, "p", "v").await;
    assert_eq!(
        (record.candidate.status, record.candidate.occurrences),
        (Status::Pending, 1)
    );
    one(&app, &world.retraction(&second)).await;
    let record = candidate(&app, "p", "v").await;
    assert_eq!(record.candidate.status, Status::Withdrawn);
    let history = app.store.transitions(record.candidate.id, 10).await.unwrap();
    let sequence: Vec<i64> = history.iter().map(|transition| transition.sequence).collect();
    assert_eq!(sequence, [0, 1, 2, 3]);
    assert_sound(&app).await;
}

async fn redaction_erases_the_reporter_and_keeps_the_counts(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = ["ann", "bob", "cid"]
        .map(|reporter| world.phrase(reporter, "p", "v"))
        .into();
    apply(&app, &events).await;
    one(&app, &world.redaction(&events[0])).await;
    let details = app
        .contests
        .candidate_details(&namespace(), candidate_id("p", "v"), &Access::open())
        .await
        .unwrap();
    let mut reporters: Vec<_> = details.votes.iter().map(|vote| vote.reporter.as_str()).collect();
    reporters.sort_unstable();
    assert_eq!(reporters, ["", "bob", "cid"]);
    let erased = details
        .feedback
        .iter()
        .find(|feedback| feedback.feedback == events[0].feedback);
    let erased = erased.unwrap();
    assert!(erased.reason.is_empty() && erased.context.is_empty() && erased.query_id.is_empty());
    assert_eq!(details.record.candidate.reporters, 3);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn a_redaction_that_overtakes_its_feedback_keeps_its_personal_parts_out(world: &World) {
    let app = world.instance().await;
    let feedback = world.phrase("ann", "p", "v");
    one(&app, &world.redaction(&feedback)).await;
    one(&app, &feedback).await;
    let details = app
        .contests
        .candidate_details(&namespace(), candidate_id("p", "v"), &Access::open())
        .await
        .unwrap();
    assert_eq!(details.votes[0].reporter, "");
    assert_eq!(details.feedback[0].reason, "");
    assert_eq!(details.record.candidate.reporters, 1);
}

async fn a_redelivered_event_gets_the_same_answer_and_changes_nothing(world: &World) {
    let app = world.instance().await;
    let feedback = world.feedback("ann", Form::Entity, "p", "e");
    let first = apply(&app, &[feedback.clone(), feedback.clone()]).await;
    assert_eq!(first[0], first[1]);
    one(&app, &world.feedback("bob", Form::Entity, "p", "e")).await;
    assert_eq!(one(&app, &feedback).await, first[0]);
    assert_eq!(candidates(&app).await[0].candidate.occurrences, 2);

    // Another event that claims the same feedback is a bug in its sender.
    let mut other = feedback;
    other.id = emend_core::EventId(uuid::Uuid::from_u128(7));
    let refused = app.ingest.apply(&[other]).await.pop().unwrap().unwrap_err();
    assert_eq!(refused.reason(), "FEEDBACK_RECORDED");
    assert_sound(&app).await;
}

async fn a_bad_event_does_not_affect_the_others_in_its_group(world: &World) {
    let app = world.instance().await;
    let good = world.feedback("ann", Form::Entity, "a", "e");
    one(&app, &good).await;
    let mut foreign = world.retraction(&good);
    foreign.namespace = emend_core::Namespace::parse("other").unwrap();
    let results = app
        .ingest
        .apply(&[foreign, world.feedback("bob", Form::Entity, "b", "e")])
        .await;
    assert_eq!(results[0].as_ref().unwrap_err().reason(), "INVALID_FIELDS");
    assert!(results[1].as_ref().unwrap().auto_applied);
    assert_sound(&app).await;
}

async fn the_log_names_the_feedback_that_caused_a_change_and_its_time(world: &World) {
    let app = world.instance().await;
    let mut feedback = world.feedback("ann", Form::Entity, "a", "e");
    feedback.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    one(&app, &feedback).await;
    let filter = learning_store::log::RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: None,
    };
    let (revisions, more) = app.store.list_revisions(&filter, None, 10).await.unwrap();
    assert!(!more);
    let change = &revisions[0].changes[0];
    assert_eq!(change.feedback, feedback.feedback.to_string());
    assert_eq!(revisions[0].actor.caller.as_str(), "backend");
    assert_eq!(revisions[0].cause, emend_core::Cause::Votes);
    assert_eq!((change.before.is_none(), change.policy_version), (true, 0));
}

async fn a_candidate_is_shown_with_votes_rivals_feedback_and_history(world: &World) {
    let app = world.instance().await;
    for (reporter, verb) in [("ann", "v"), ("bob", "v"), ("cid", "w")] {
        one(&app, &world.phrase(reporter, "p", verb)).await;
    }
    review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    let details = app
        .contests
        .candidate_details(&namespace(), candidate_id("p", "v"), &Access::open())
        .await
        .unwrap();
    let voters: Vec<_> = details.votes.iter().map(|vote| vote.reporter.as_str()).collect();
    assert_eq!(voters, ["bob", "ann"], "newest first");
    assert_eq!(details.rivals.len(), 1);
    assert_eq!(details.feedback.len(), 2);
    assert_eq!(details.feedback[0].context["topic"], "funds");
    let history: Vec<_> = details.history.iter().map(|step| (step.from, step.to)).collect();
    assert_eq!(
        history,
        [(None, Status::Pending), (Some(Status::Pending), Status::Applied)]
    );
    let last = details.history.last().unwrap();
    assert_eq!(
        (last.actor.on_behalf_of.as_str(), last.reason.as_str()),
        ("olga", "seen it")
    );
    assert_eq!(last.revision.0, 1);
    assert_eq!(details.record.kept.decided_by, operator());
    assert_eq!(details.record.candidate.origin, Origin::Votes);
}

async fn many_groups_of_mixed_events_stay_consistent(world: &World) {
    let app = world.instance().await;
    let mut events = Vec::new();
    for n in 0..220 {
        let (reporter, phrase, verb) = (
            format!("r{}", n % 17),
            format!("p{}", n % 5),
            format!("v{}", n % 3),
        );
        let feedback = world.phrase(&reporter, &phrase, &verb);
        if n % 7 == 0 {
            events.push(world.retraction(&feedback));
        }
        events.push(feedback);
        if n % 11 == 0 {
            events.push(world.feedback(&reporter, Form::Entity, &phrase, &verb));
        }
    }
    apply(&app, &events).await;
    assert_sound(&app).await;
    let told: Vec<_> = apply(&app, &events).await;
    assert_eq!(told, apply(&app, &events).await);
    assert_sound(&app).await;
}

/// Who supports what, and how strongly; candidates without any ballot are left out.
async fn votes(app: &crate::capabilities::Capabilities) -> Vec<(emend_core::CandidateId, u64, u64, i64)> {
    let mut votes: Vec<_> = candidates(app)
        .await
        .into_iter()
        .map(|record| record.candidate)
        .filter(|candidate| candidate.occurrences > 0)
        .map(|candidate| {
            (
                candidate.id,
                candidate.occurrences,
                candidate.reporters,
                candidate.net,
            )
        })
        .collect();
    votes.sort_unstable();
    votes
}

fn shuffled<T: Clone>(items: &[T], entropy: &emend_base::Entropy) -> Vec<T> {
    let mut keyed: Vec<_> = items
        .iter()
        .map(|item| (entropy.uuid_v4(), item.clone()))
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, item)| item).collect()
}

#[tokio::test]
async fn votes_do_not_depend_on_the_order_of_delivery() {
    let origin = World::sqlite();
    let mut events = Vec::new();
    for n in 0..90 {
        let (reporter, phrase, verb) = (
            format!("r{}", n % 7),
            format!("p{}", n % 3),
            format!("v{}", n % 4),
        );
        let feedback = origin.phrase(&reporter, &phrase, &verb);
        if n % 5 == 0 {
            events.push(origin.retraction(&feedback));
        }
        if n % 9 == 0 {
            events.push(origin.redaction(&feedback));
        }
        events.push(feedback);
    }
    let entropy = emend_base::Entropy::seeded(11);
    let mut seen = Vec::new();
    for group in [1, 7, 64] {
        let world = World::sqlite();
        let app = world.instance().await;
        // Each event arrives twice, shuffled, in groups of this size.
        let delivered = shuffled(&[events.clone(), events.clone()].concat(), &entropy);
        for group in delivered.chunks(group) {
            apply(&app, group).await;
        }
        assert_sound(&app).await;
        seen.push(votes(&app).await);
    }
    assert!(!seen[0].is_empty());
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[1], seen[2]);
}
