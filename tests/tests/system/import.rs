//! Bulk import: as decisions or as votes, all-or-nothing or only the good rows, and idempotent.

use emend_proto::{
    common::v1::{Cause, Correction, ResourceKind},
    learning::v1::{CandidateOrigin, CandidateStatus, ImportAs, ImportHeader, ImportMode, ImportRow},
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, alias, phrase, prohibit, refused, says, verb},
};
use tonic::Code;

fn header(mode: ImportMode, import_as: ImportAs) -> ImportHeader {
    ImportHeader {
        namespace: NAMESPACE.into(),
        mode: mode.into(),
        import_as: import_as.into(),
        reason: "the house's glossary".into(),
        on_behalf_of: "tom".into(),
        ..ImportHeader::default()
    }
}

fn rows(corrections: Vec<Correction>) -> Vec<ImportRow> {
    (1..)
        .zip(corrections)
        .map(|(line, correction)| ImportRow {
            line,
            correction: Some(correction),
            user_id: String::new(),
        })
        .collect()
}

fn glossary() -> Vec<ImportRow> {
    rows(vec![
        phrase("set up a csa", "create_csa"),
        alias("jd", "person-17"),
        prohibit("close it", "delete_fund"),
    ])
}

both_databases! {
    async fn an_import_as_decision_applies_and_pins_every_row(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let done = learning.import(header(ImportMode::AllOrNothing, ImportAs::Decision), glossary()).await;
        let done = done.unwrap();
        assert_eq!((done.applied_count, done.unchanged_count, done.rejected_count), (3, 0, 0));
        assert!(done.first_revision >= 1 && done.last_revision >= done.first_revision);
        assert_eq!(learning.verb_for("Set up a CSA").await, "create_csa");
        assert_eq!(learning.entity_for("JD").await, "person-17");
        let resolved = learning.resolve(ResourceKind::InvocationPhrase, "close it", "").await;
        assert_eq!(resolved.prohibited, ["delete_fund"]);
        for revision in learning.revisions().await {
            assert_eq!(revision.cause(), Cause::Import);
            assert_eq!(revision.operation_id, done.operation_id);
            assert_eq!(revision.reason, "the house's glossary");
        }
        for reporter in ["a", "b", "c", "d"] {
            feedback.learn(says(reporter, verb("set up a csa", "create_isda"))).await;
        }
        assert_eq!(learning.verb_for("set up a csa").await, "create_csa");
    }

    async fn an_import_that_is_run_twice_changes_nothing_the_second_time(system) {
        let learning = system.learning();
        for import_as in [ImportAs::Decision, ImportAs::Votes] {
            let header = header(ImportMode::AllOrNothing, import_as);
            learning.import(header.clone(), glossary()).await.unwrap();
            let head = learning.head().await;
            let resources = learning.resources_in(NAMESPACE).await;
            let again = learning.import(header, glossary()).await.unwrap();
            assert_eq!((again.applied_count, again.unchanged_count), (0, 3), "{import_as:?}");
            assert_eq!((again.first_revision, again.last_revision), (0, 0));
            assert_eq!(learning.head().await, head);
            assert_eq!(learning.resources_in(NAMESPACE).await, resources);
        }
    }

    async fn an_import_as_votes_is_one_vote_per_row(system) {
        let learning = system.learning();
        let done = learning.import(header(ImportMode::AllOrNothing, ImportAs::Votes), glossary()).await;
        assert_eq!(done.unwrap().applied_count, 3);
        let candidate = learning.candidate_for("set up a csa", "create_csa").await;
        assert_eq!((candidate.status(), candidate.reporter_count), (CandidateStatus::Pending, 1));
        assert_eq!(candidate.origin(), CandidateOrigin::Import);
        // Names are low risk: one vote applies one.
        assert_eq!(learning.entity_for("jd").await, "person-17");
        assert_eq!(learning.verb_for("set up a csa").await, "");
    }

    async fn one_bad_row_keeps_an_import_from_writing_anything(system) {
        let learning = system.learning();
        let mut bad = glossary();
        bad.push(ImportRow { line: 4, correction: Some(alias(" ", "")), user_id: String::new() });
        bad.push(ImportRow { line: 5, correction: None, user_id: "u".repeat(129) });
        let refusal = refused(learning.import(header(ImportMode::Unspecified, ImportAs::Unspecified), bad).await);
        assert_eq!(refusal.code, Code::InvalidArgument);
        assert!(refusal.field_violations.len() >= 4, "{refusal}");
        assert_eq!(learning.head().await, 0);
        assert_eq!(learning.resources_in(NAMESPACE).await, []);
    }

    async fn bad_rows_can_be_skipped_and_are_named(system) {
        let learning = system.learning();
        let mut mixed = glossary();
        mixed.insert(1, ImportRow { line: 17, correction: Some(alias(" ", "")), user_id: String::new() });
        let done = learning.import(header(ImportMode::SkipInvalid, ImportAs::Decision), mixed).await.unwrap();
        assert_eq!((done.applied_count, done.rejected_count), (3, 1));
        assert!(done.errors.iter().all(|error| error.line == 17), "{:?}", done.errors);
        let mut fields: Vec<_> = done.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["correction.entity.correct_choice", "correction.entity.original_input"]);
        assert_eq!(learning.resources_in(NAMESPACE).await.len(), 3);
    }

    async fn of_rows_that_disagree_the_first_counts_however_far_apart_they_are(system) {
        let learning = system.learning();
        let mut corrections = vec![phrase("same", "first")];
        corrections.extend((0..10_000).map(|n| phrase(&format!("filler {n}"), "v")));
        corrections.push(phrase("same", "second"));
        let far_apart = rows(corrections);
        let whole = refused(learning.import(header(ImportMode::AllOrNothing, ImportAs::Decision), far_apart.clone()).await);
        let disagrees = "disagrees with line 1: \"first\" there, \"second\" here";
        assert_eq!(whole.field_violations[0].field, "rows[line 10002].correction");
        assert_eq!(whole.field_violations[0].description, disagrees);
        assert_eq!(learning.head().await, 0);
        let skipping = header(ImportMode::SkipInvalid, ImportAs::Decision);
        let done = learning.import(skipping.clone(), far_apart.clone()).await.unwrap();
        assert_eq!((done.applied_count, done.unchanged_count, done.rejected_count), (10_001, 0, 1));
        assert_eq!((done.errors[0].line, &*done.errors[0].description), (10_002, disagrees));
        assert_eq!(learning.verb_for("same").await, "first");
        let head = learning.head().await;
        let again = learning.import(skipping, far_apart).await.unwrap();
        assert_eq!((again.applied_count, again.unchanged_count, again.rejected_count), (0, 10_001, 1));
        assert_eq!((again.last_revision, learning.head().await), (0, head));
    }

    async fn an_import_larger_than_a_revision_shares_one_operation(system) {
        let learning = system.learning();
        let many = rows((0..2_500).map(|n| alias(&format!("name {n}"), &format!("person-{n}"))).collect());
        let done = learning.import(header(ImportMode::AllOrNothing, ImportAs::Decision), many).await.unwrap();
        assert_eq!(done.applied_count, 2_500);
        let revisions = learning.revisions().await;
        assert!(revisions.len() >= 3, "at most 1,000 changes each: {}", revisions.len());
        assert!(revisions.iter().all(|revision| {
            revision.operation_id == done.operation_id && revision.changes.len() <= 1_000
        }));
        assert_eq!(revisions.iter().map(|revision| revision.changes.len()).sum::<usize>(), 2_500);
        assert_eq!(learning.resources_in(NAMESPACE).await.len(), 2_500);
    }

    async fn a_row_for_one_user_is_that_users_own(system) {
        let learning = system.learning();
        let row = ImportRow {
            line: 1,
            correction: Some(phrase("set up a csa", "create_isda")),
            user_id: "jane".into(),
        };
        learning.import(header(ImportMode::AllOrNothing, ImportAs::Decision), vec![row]).await.unwrap();
        let own = learning.resolve(ResourceKind::InvocationPhrase, "set up a csa", "jane").await;
        assert_eq!(own.r#match.unwrap().value, "create_isda");
        assert_eq!(learning.verb_for("set up a csa").await, "");
    }
}
