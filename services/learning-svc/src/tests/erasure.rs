//! Erasing a reporter: what was learned for that user alone goes for good, and everything else stays.

use emend_core::{Caller, FeedbackId, ReporterId, Revision, UserId, correction::Form};
use emend_proto::common::v1::OutcomeState;
use emend_serve::auth::Access;
use emend_store::audit::{Findings, IgnoreProgress};
use learning_store::audit::Audit;
use learning_store::log::RevisionFilter;

use crate::{
    ingest::event::{ErasedVoter, FeedbackChange, IngestEvent},
    log::revert::Revert,
    tests::{
        on_both_databases,
        votes::state,
        world::{World, apply, assert_sound, candidate, head, namespace, one, operator, verb},
    },
};

on_both_databases!(
    what_a_user_had_alone_goes_and_votes_stay,
    what_arrives_late_is_not_learned_for_an_erased_user,
    an_erased_user_may_come_back,
    a_vote_whose_reporter_was_erased_before_it_came_counts_under_the_pseudonym,
    what_one_user_had_is_erased_page_by_page,
    once_the_deletions_have_expired_the_log_names_a_pseudonym_and_keeps_no_value,
);

fn erasure(world: &World, reporter: &str) -> IngestEvent {
    let any = world.phrase(reporter, "p", "v");
    IngestEvent {
        feedback: FeedbackId::none(),
        change: FeedbackChange::ReporterErased {
            caller: Caller::parse("console").unwrap(),
            reporter: ReporterId::parse(reporter).unwrap(),
        },
        ..any
    }
}

fn own(world: &World, phrase: &str) -> IngestEvent {
    world.own_feedback("ann", Form::PhraseMapping, phrase, "mine")
}

async fn of_ann(app: &crate::capabilities::Capabilities) -> usize {
    let contents = app.store.contents().await.unwrap();
    contents.resources.len()
}

/// The audit finds nothing.
pub(crate) async fn assert_audited(world: &World) {
    let mut audit = Audit::open(&world.url).await.unwrap();
    let mut findings = Findings::default();
    audit.check(&mut findings, &mut IgnoreProgress).await.unwrap();
    assert!(findings.counts().is_empty(), "{findings:#?}");
}

async fn what_a_user_had_alone_goes_and_votes_stay(world: &World) {
    let app = world.instance().await;
    let votes = ["ann", "bob", "cid"].map(|reporter| world.phrase(reporter, "p", "v"));
    apply(&app, &votes).await;
    apply(&app, &[own(world, "a"), own(world, "b")]).await;
    let before = head(&app).await;

    let erasure = erasure(world, "ann");
    let outcome = one(&app, &erasure).await;
    assert_eq!(state(&outcome), OutcomeState::NoEffect);
    assert_eq!(head(&app).await, before + 1, "one revision deletes both");
    assert_eq!(of_ann(&app).await, 1, "only the phrase is left");
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_eq!(candidate(&app, "p", "v").await.candidate.reporters, 3);

    assert_eq!(
        one(&app, &erasure).await,
        outcome,
        "the same event is answered alike"
    );
    assert_eq!(head(&app).await, before + 1);
    let revert = Revert {
        namespace: namespace(),
        revision: Revision(before + 1),
        reason: "back".to_owned(),
        actor: operator(),
    };
    let refused = app.log.revert(&revert, &Access::open()).await.unwrap_err();
    assert_eq!(refused.reason(), "ERASED", "an erasure is for good");
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn what_arrives_late_is_not_learned_for_an_erased_user(world: &World) {
    let app = world.instance().await;
    let late = own(world, "a");
    one(&app, &erasure(world, "ann")).await;
    let outcome = one(&app, &late).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Refused, "ERASED")
    );
    assert_eq!((of_ann(&app).await, head(&app).await), (0, 0));
    assert_audited(world).await;
}

async fn an_erased_user_may_come_back(world: &World) {
    let app = world.instance().await;
    one(&app, &own(world, "a")).await;
    one(&app, &erasure(world, "ann")).await;
    let outcome = one(&app, &own(world, "a")).await;
    assert_eq!(state(&outcome), OutcomeState::Applied);
    assert_eq!(outcome.occurrence_count, 1, "nothing of before counts");
    world.store().await.forget_erased(10).await.unwrap();
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn a_vote_whose_reporter_was_erased_before_it_came_counts_under_the_pseudonym(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let mut again = world.phrase("ann", "p", "v");
    let mut mine = own(world, "a");
    for event in [&mut again, &mut mine] {
        let FeedbackChange::Recorded(recorded) = &mut event.change else {
            unreachable!("it was recorded")
        };
        let voter = recorded.reporter.voter(&recorded.caller).key(&namespace());
        let own = recorded.effects[0].key.user.take().is_some();
        recorded.reporter = emend_core::Reporter::default();
        recorded.erased = Some(ErasedVoter {
            key: voter,
            identified: true,
            own,
        });
    }
    let outcome = one(&app, &again).await;
    assert_eq!(
        (outcome.occurrence_count, outcome.reporter_count),
        (2, 1),
        "it is the same voter's"
    );
    let outcome = one(&app, &mine).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Refused, "ERASED")
    );
    assert_sound(&app).await;
}

async fn what_one_user_had_is_erased_page_by_page(world: &World) {
    let app = world.instance().await;
    let many: Vec<IngestEvent> = (0..520).map(|n| own(world, &format!("phrase {n}"))).collect();
    apply(&app, &many).await;
    let before = head(&app).await;
    one(&app, &erasure(world, "ann")).await;
    assert_eq!((of_ann(&app).await, head(&app).await), (0, before + 2));
    assert_sound(&app).await;
}

async fn once_the_deletions_have_expired_the_log_names_a_pseudonym_and_keeps_no_value(world: &World) {
    let app = world.instance().await;
    apply(
        &app,
        &[
            own(world, "a"),
            world.own_feedback("bob", Form::PhraseMapping, "a", "his"),
        ],
    )
    .await;
    one(&app, &erasure(world, "ann")).await;
    let store = world.store().await;
    assert_eq!(
        store.forget_erased(10).await.unwrap(),
        0,
        "a node may still have to be told"
    );

    for reporter in ["cid", "dee"] {
        one(&app, &world.own_feedback(reporter, Form::PhraseMapping, "a", "x")).await;
        one(&app, &erasure(world, reporter)).await;
    }
    store
        .raise_horizon(jiff::SignedDuration::from_hours(1), 1)
        .await
        .unwrap();
    assert!(store.forget_erased(10).await.unwrap() > 0);
    assert!(store.clean_files().await.unwrap());

    let filter = RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: None,
    };
    let (revisions, _) = app.store.list_revisions(&filter, None, 100).await.unwrap();
    let of_ann: Vec<_> = revisions
        .iter()
        .filter(|revision| {
            revision
                .changes
                .iter()
                .any(|change| change.key.user.as_ref().is_some_and(UserId::is_erased))
        })
        .collect();
    assert!(of_ann.len() >= 2, "{revisions:#?}");
    for change in of_ann.iter().flat_map(|revision| &revision.changes) {
        assert_eq!((&change.before, &change.after), (&None, &None));
    }
    let named = |user: &str| {
        let user = UserId::parse(user).unwrap();
        revisions.iter().any(|revision| {
            revision
                .changes
                .iter()
                .any(|change| change.key.user.as_ref() == Some(&user))
        })
    };
    assert!(!named("ann") && named("bob"));
    assert_sound(&app).await;
    assert_audited(world).await;
}

#[test]
fn only_pseudonyms_begin_as_pseudonyms_do() {
    let pseudonym = UserId::erased(uuid::Uuid::from_u128(7));
    assert!(pseudonym.is_erased());
    assert!(ReporterId::parse(pseudonym.as_str()).is_err());
}
