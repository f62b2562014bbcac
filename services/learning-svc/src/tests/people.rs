//! What people do: approve, reject, put, delete, revert.

use emend_base::Error;
use emend_core::{Correction, Learned, Origin, ResourceValue, Revision, Status, correction::Form};
use emend_serve::auth::Access;
use jiff::SignedDuration;
use learning_store::{
    contests::{CandidateFilter, CandidatePosition},
    log::{RevisionFilter, RevisionRecord},
};

use crate::{
    decisions::review::Verdict,
    etag,
    log::revert::Revert,
    resources::{
        import::{Import, ImportAs, Mode, Row},
        write::Delete,
    },
    tests::{
        on_both_databases,
        world::{
            World, approval, assert_sound, candidate, candidate_id, head, key, namespace, one, operator, put,
            rejection, review, still, verb,
        },
    },
};

on_both_databases!(
    an_approval_applies_and_pins,
    an_edited_approval_is_a_candidate_of_its_own,
    approving_or_rejecting_twice_is_refused,
    a_review_of_a_candidate_that_has_changed_is_aborted,
    a_candidate_of_another_namespace_is_not_found,
    rejecting_the_applied_candidate_removes_the_resource,
    putting_the_current_value_writes_no_revision,
    puts_and_deletes_check_the_etag,
    deleting_nothing_is_not_found,
    a_deleted_value_is_not_learned_again_by_votes,
    a_refused_revert_lists_every_key_that_changed_again,
    a_revert_of_an_import_restores_all_it_changed,
    a_revision_of_another_namespace_is_not_found,
    a_limit_of_the_policy_refuses_a_put,
    candidates_are_listed_in_pages_newest_first,
    revisions_are_listed_in_pages_newest_first,
);

fn delete(phrase: &str, etag: Option<String>) -> Delete {
    Delete {
        key: key(Form::PhraseMapping, phrase, "x"),
        etag,
        reason: Some("gone".to_owned()),
        actor: operator(),
    }
}

fn revert(revision: i64) -> Revert {
    Revert {
        namespace: namespace(),
        revision: Revision(revision),
        reason: "a mistake".to_owned(),
        actor: operator(),
    }
}

async fn an_approval_applies_and_pins(world: &World) {
    let app = world.instance().await;
    // The clock is finer than what databases keep: the answer says no more than what is read later.
    world.clock.advance(SignedDuration::from_nanos(123_456_789));
    one(&app, &world.phrase("ann", "p", "v")).await;
    let reviewed = review(&app, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    assert_eq!(reviewed.revision.0, 1);
    assert_eq!(reviewed.candidate, candidate(&app, "p", "v").await);
    let history = app.store.transitions(candidate_id("p", "v"), 10).await.unwrap();
    assert_eq!(history.last().unwrap().at, reviewed.candidate.kept.updated_at);
    assert!(reviewed.candidate.contest_pinned);
    assert_eq!(
        reviewed.candidate.candidate.decision_reason.as_deref(),
        Some("seen it")
    );
    assert_eq!(verb(&app, "p").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn an_edited_approval_is_a_candidate_of_its_own(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let edited = ResourceValue::new("P", Learned::Verb("better".to_owned()));
    let verdict = Verdict::Approve {
        edited: Some(edited.clone()),
        reason: None,
        accept_redacted: false,
    };
    let reviewed = review(&app, candidate_id("p", "v"), None, verdict).await.unwrap();
    let made = &reviewed.candidate.candidate;
    assert_eq!(
        (made.origin, made.edited_from),
        (Origin::Review, Some(candidate_id("p", "v")))
    );
    assert_eq!(made.value, edited);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("better"));
    assert_eq!(
        candidate(&app, "p", "v").await.candidate.status,
        Status::Superseded
    );
    // Once that is reverted, what was proposed is in the queue again.
    app.log.revert(&revert(1), &Access::open()).await.unwrap();
    assert_eq!(verb(&app, "p").await, None);
    assert_eq!(
        candidate(&app, "p", "v").await.candidate.status,
        Status::AwaitingReview
    );
    assert_sound(&app).await;
}

async fn approving_or_rejecting_twice_is_refused(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let id = candidate_id("p", "v");
    review(&app, id, None, approval()).await.unwrap();
    let again = review(&app, id, None, approval()).await.unwrap_err();
    assert_eq!(again.reason(), "ALREADY_APPLIED");
    review(&app, id, None, rejection()).await.unwrap();
    let again = review(&app, id, None, rejection()).await.unwrap_err();
    assert!(matches!(
        again,
        Error::FailedPrecondition {
            reason: "ALREADY_REJECTED",
            ..
        }
    ));
    assert_sound(&app).await;
}

async fn a_review_of_a_candidate_that_has_changed_is_aborted(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let seen = etag::of_version(candidate(&app, "p", "v").await.kept.version);
    one(&app, &world.phrase("bob", "p", "v")).await;
    let id = candidate_id("p", "v");
    let refused = review(&app, id, Some(seen), approval()).await.unwrap_err();
    assert_eq!(refused.reason(), "ETAG_MISMATCH");
    let seen = etag::of_version(candidate(&app, "p", "v").await.kept.version);
    review(&app, id, Some(seen), approval()).await.unwrap();
}

async fn a_candidate_of_another_namespace_is_not_found(world: &World) {
    let app = world.instance().await;
    one(&app, &world.phrase("ann", "p", "v")).await;
    let other = emend_core::Namespace::parse("other").unwrap();
    let refused = app
        .decisions
        .candidate(&other, candidate_id("p", "v"))
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }));
    let refused = review(&app, candidate_id("p", "unheard"), None, approval())
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }));
}

async fn rejecting_the_applied_candidate_removes_the_resource(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("p", "v")).await.unwrap();
    let reviewed = review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    assert_eq!(reviewed.revision.0, 2);
    assert_eq!(reviewed.candidate.candidate.status, Status::Rejected);
    assert_eq!(verb(&app, "p").await, None);
    assert_sound(&app).await;
}

async fn putting_the_current_value_writes_no_revision(world: &World) {
    let app = world.instance().await;
    let first = app.resources.put(&put("p", "v")).await.unwrap();
    let again = app.resources.put(&put("p", "v")).await.unwrap();
    assert_eq!((again.revision.0, again.resource_revision), (0, first.revision));
    assert_eq!(again.committed_at, first.committed_at);
    assert_eq!(head(&app).await, 1);
}

async fn puts_and_deletes_check_the_etag(world: &World) {
    let app = world.instance().await;
    let first = app.resources.put(&put("p", "v")).await.unwrap();
    let seen = etag::of_revision(first.revision.0);
    let mut second = put("p", "w");
    second.etag = Some(seen.clone());
    app.resources.put(&second).await.unwrap();
    let mut third = put("p", "x");
    third.etag = Some(seen.clone());
    assert_eq!(
        app.resources.put(&third).await.unwrap_err().reason(),
        "ETAG_MISMATCH"
    );
    assert_eq!(
        app.resources
            .delete(&delete("p", Some(seen)))
            .await
            .unwrap_err()
            .reason(),
        "ETAG_MISMATCH"
    );
    assert_eq!(
        app.resources
            .delete(&delete("p", Some("2".to_owned())))
            .await
            .unwrap()
            .0,
        3
    );
    assert_sound(&app).await;
}

async fn deleting_nothing_is_not_found(world: &World) {
    let app = world.instance().await;
    let refused = app.resources.delete(&delete("p", None)).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }));
}

async fn a_deleted_value_is_not_learned_again_by_votes(world: &World) {
    let app = world.instance().await;
    for reporter in ["ann", "bob", "cid"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    app.resources.delete(&delete("p", None)).await.unwrap();
    let late = one(&app, &world.phrase("dan", "p", "v")).await;
    assert_eq!(late.reason, "DELETED");
    assert_eq!(verb(&app, "p").await, None);
    // Another value may still be learned.
    for n in 0..8 {
        one(&app, &world.phrase(&format!("other {n}"), "p", "w")).await;
    }
    assert_eq!(verb(&app, "p").await.as_deref(), Some("w"));
    assert_sound(&app).await;
}

fn rows(verb: &str, phrases: &[&str]) -> Vec<Row> {
    let row = |(line, phrase): (usize, &&str)| Row {
        line: i64::try_from(line).unwrap() + 1,
        proposal: Correction::parse_phrase_mapping(phrase, verb)
            .unwrap()
            .effects(&namespace(), None)
            .remove(0),
    };
    phrases.iter().enumerate().map(row).collect()
}

fn import() -> Import {
    Import {
        namespace: namespace(),
        mode: Mode::AllOrNothing,
        import_as: ImportAs::Decision,
        reason: None,
        actor: operator(),
        operation: emend_core::OperationId(uuid::Uuid::from_u128(1)),
    }
}

async fn a_refused_revert_lists_every_key_that_changed_again(world: &World) {
    let app = world.instance().await;
    app.imports
        .import(&import(), rows("v", &["p", "q", "r"]), &still)
        .await
        .unwrap();
    app.resources.put(&put("p", "w")).await.unwrap();
    app.resources.put(&put("r", "w")).await.unwrap();
    let Error::FailedPrecondition { violations, .. } =
        app.log.revert(&revert(1), &Access::open()).await.unwrap_err()
    else {
        panic!("a key with a newer revision stands in the way");
    };
    let mut subjects: Vec<_> = violations
        .iter()
        .map(|violation| violation.subject.as_str())
        .collect();
    subjects.sort_unstable();
    assert_eq!(
        subjects,
        ["fund-admin/invocation_phrase/p", "fund-admin/invocation_phrase/r"]
    );
    assert_eq!(head(&app).await, 3, "nothing was written");
}

async fn a_revert_of_an_import_restores_all_it_changed(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("p", "before")).await.unwrap();
    app.imports
        .import(&import(), rows("v", &["p", "q"]), &still)
        .await
        .unwrap();
    assert_eq!(app.log.revert(&revert(2), &Access::open()).await.unwrap().0, 3);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("before"));
    assert_eq!(verb(&app, "q").await, None);
    assert_sound(&app).await;
}

async fn a_revision_of_another_namespace_is_not_found(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("p", "v")).await.unwrap();
    let mut foreign = revert(1);
    foreign.namespace = emend_core::Namespace::parse("other").unwrap();
    for revert in [foreign, revert(2)] {
        assert!(matches!(
            app.log.revert(&revert, &Access::open()).await.unwrap_err(),
            Error::NotFound { .. }
        ));
    }
}

async fn a_limit_of_the_policy_refuses_a_put(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::InvocationPhrase, |policy| {
        policy.max_resources = 1;
    })
    .await;
    app.resources.put(&put("p", "v")).await.unwrap();
    assert_eq!(
        app.resources.put(&put("q", "v")).await.unwrap_err().reason(),
        "RESOURCE_LIMIT"
    );
    // Existing resources may still change.
    app.resources.put(&put("p", "w")).await.unwrap();
    assert_sound(&app).await;
}

async fn candidates_are_listed_in_pages_newest_first(world: &World) {
    let app = world.instance().await;
    for n in 0..7 {
        one(&app, &world.phrase("ann", &format!("p{n}"), "v")).await;
        if n % 2 == 0 {
            world.clock.advance(jiff::SignedDuration::from_secs(1));
        }
    }
    let filter = CandidateFilter {
        reviewed: learning_store::contests::Involvement::default(),
        user: None,
        namespace: namespace(),
        kinds: vec![emend_core::Kind::InvocationPhrase],
        statuses: vec![Status::Pending, Status::Applied],
        keys: Vec::new(),
    };
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let (page, more) = app.contests.list_candidates(&filter, after, 3).await.unwrap();
        after = page.last().map(CandidatePosition::of);
        seen.extend(page);
        if !more {
            break;
        }
    }
    assert_eq!(seen.len(), 7);
    assert!(
        seen.windows(2)
            .all(|pair| pair[0].kept.created_at >= pair[1].kept.created_at)
    );
    let one_key = CandidateFilter {
        keys: vec![emend_core::NormalizedKey::parse("p3").unwrap().into()],
        ..filter.clone()
    };
    let (page, more) = app.contests.list_candidates(&one_key, None, 3).await.unwrap();
    assert_eq!((page.len(), more), (1, false));
    let none = CandidateFilter {
        statuses: vec![Status::Rejected],
        ..filter
    };
    assert!(
        app.contests
            .list_candidates(&none, None, 3)
            .await
            .unwrap()
            .0
            .is_empty()
    );
}

async fn revisions_are_listed_in_pages_newest_first(world: &World) {
    let app = world.instance().await;
    for n in 0..5 {
        app.resources.put(&put(&format!("p{n}"), "v")).await.unwrap();
    }
    app.imports
        .import(&import(), rows("w", &["p0", "p1"]), &still)
        .await
        .unwrap();
    let all = RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: None,
    };
    let (page, more) = app.store.list_revisions(&all, None, 4).await.unwrap();
    let numbers: Vec<_> = page.iter().map(|revision| revision.revision.0).collect();
    assert_eq!((numbers, more), (vec![6, 5, 4, 3], true));
    assert_eq!(page[0].changes.len(), 2);
    let (page, more) = app
        .store
        .list_revisions(&all, Some(Revision(3)), 4)
        .await
        .unwrap();
    let numbers: Vec<_> = page.iter().map(|revision| revision.revision.0).collect();
    assert_eq!((numbers, more), (vec![2, 1], false));

    let of_key = RevisionFilter {
        keys: vec![emend_core::NormalizedKey::parse("p1").unwrap().into()],
        kind: Some(emend_core::Kind::InvocationPhrase),
        ..all.clone()
    };
    let (page, _) = app.store.list_revisions(&of_key, None, 10).await.unwrap();
    let numbers: Vec<_> = page.iter().map(|revision| revision.revision.0).collect();
    assert_eq!(numbers, [6, 2]);
    let changed_since = |revision: &RevisionRecord| {
        let changes = revision.changes.iter();
        changes
            .map(|change| (change.key.key.as_str().to_owned(), change.changed_since))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        page.iter().flat_map(changed_since).collect::<Vec<_>>(),
        [("p0".into(), false), ("p1".into(), false), ("p1".into(), true)]
    );
    let of_operation = RevisionFilter {
        operation: Some(import().operation),
        ..all.clone()
    };
    assert_eq!(
        app.store
            .list_revisions(&of_operation, None, 10)
            .await
            .unwrap()
            .0
            .len(),
        1
    );
    let elsewhere = RevisionFilter {
        namespace: emend_core::Namespace::parse("other").unwrap(),
        ..all
    };
    assert!(
        app.store
            .list_revisions(&elsewhere, None, 10)
            .await
            .unwrap()
            .0
            .is_empty()
    );
}
