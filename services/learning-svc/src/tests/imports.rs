//! Bulk import.

use std::sync::atomic::{AtomicU32, Ordering};

use emend_base::Error;
use emend_core::{Correction, DomainRule, OperationId, Status, contest::MAX_CANDIDATES, correction::Form};
use emend_serve::auth::Access;
use learning_store::log::RevisionFilter;

use crate::{
    log::revert::{RevertOperation, RevertedOperation},
    resources::import::{Import, ImportAs, Imported, Mode, Row, RowError},
    tests::{
        on_both_databases,
        world::{
            World, apply, assert_sound, candidate, candidates, choice_correction, head, namespace, one,
            operator, put, still, verb,
        },
    },
};

on_both_databases!(
    an_import_as_decision_applies_and_pins,
    an_import_run_twice_changes_nothing,
    an_import_as_votes_casts_one_vote_each_however_often_it_runs,
    of_rows_that_disagree_the_first_counts_or_none,
    a_large_import_is_one_operation_of_revisions_of_a_thousand,
    all_or_nothing_writes_nothing_where_a_limit_is_reached,
    skip_invalid_reports_the_rows_that_a_limit_refused,
    an_imported_vote_proposes_no_new_value_in_a_full_contest,
    imports_and_votes_in_opposite_order_do_not_deadlock,
    an_import_stops_when_its_caller_loses_the_right,
    what_votes_do_not_decide_is_no_vote,
    a_whole_operation_is_reverted_but_for_what_changed_since,
    what_nothing_is_known_of_is_stored_as_what_is_decided_row_by_row,
);

pub(super) fn import(mode: Mode, import_as: ImportAs) -> Import {
    Import {
        namespace: namespace(),
        mode,
        import_as,
        reason: Some("initial load".to_owned()),
        actor: operator(),
        operation: OperationId(uuid::Uuid::from_u128(99)),
    }
}

fn row(line: usize, phrase: &str, verb: &str) -> Row {
    let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
    Row {
        line: i64::try_from(line).unwrap(),
        proposal: correction.effects(&namespace(), None).remove(0),
    }
}

fn many(count: usize) -> Vec<Row> {
    (1..=count).map(|n| row(n, &format!("phrase {n}"), "v")).collect()
}

fn counts(imported: &Imported) -> (u64, u64, i64, i64) {
    (
        imported.applied,
        imported.unchanged,
        imported.first.0,
        imported.last.0,
    )
}

async fn an_import_as_decision_applies_and_pins(world: &World) {
    let app = world.instance().await;
    let imported = app
        .imports
        .import(&import(Mode::AllOrNothing, ImportAs::Decision), many(3), &still)
        .await
        .unwrap();
    assert_eq!(counts(&imported), (3, 0, 1, 1));
    let record = candidate(&app, "phrase 2", "v").await;
    assert_eq!(
        (record.candidate.status, record.contest_pinned),
        (Status::Applied, true)
    );
    assert_eq!(record.candidate.origin, emend_core::Origin::Import);
    let stats = app.queue.stats(&namespace(), 1).await.unwrap();
    let applied: Vec<u64> = stats.days.iter().map(|count| count.figures.applied).collect();
    assert_eq!(applied, [3]);
    assert_sound(&app).await;
}

async fn an_import_run_twice_changes_nothing(world: &World) {
    let app = world.instance().await;
    for mode in [Mode::AllOrNothing, Mode::SkipInvalid] {
        app.imports
            .import(&import(mode, ImportAs::Decision), many(5), &still)
            .await
            .unwrap();
        let before = candidates(&app).await;
        let again = app
            .imports
            .import(&import(mode, ImportAs::Decision), many(5), &still)
            .await
            .unwrap();
        assert_eq!(counts(&again), (0, 5, 0, 0));
        assert_eq!(candidates(&app).await, before);
    }
    assert_eq!(head(&app).await, 1);
    assert_sound(&app).await;
}

async fn an_import_as_votes_casts_one_vote_each_however_often_it_runs(world: &World) {
    let app = world.instance().await;
    let votes = import(Mode::AllOrNothing, ImportAs::Votes);
    assert_eq!(
        counts(&app.imports.import(&votes, many(4), &still).await.unwrap()),
        (4, 0, 0, 0)
    );
    assert_eq!(
        counts(&app.imports.import(&votes, many(4), &still).await.unwrap()),
        (0, 4, 0, 0)
    );
    let record = candidate(&app, "phrase 1", "v").await;
    assert_eq!(
        (record.candidate.occurrences, record.candidate.status),
        (1, Status::Pending)
    );
    // With two more reporters, what was imported as a vote is learned.
    for reporter in ["ann", "bob"] {
        one(&app, &world.phrase(reporter, "phrase 1", "v")).await;
    }
    assert_eq!(verb(&app, "phrase 1").await.as_deref(), Some("v"));
    assert_sound(&app).await;
}

async fn of_rows_that_disagree_the_first_counts_or_none(world: &World) {
    let app = world.instance().await;
    let rows = || {
        vec![
            row(1, "P", "a"),
            row(2, "q", "x"),
            row(3, " p ", "b"),
            row(4, "p", "a"),
        ]
    };
    let refused = app
        .imports
        .import(&import(Mode::AllOrNothing, ImportAs::Decision), rows(), &still)
        .await
        .unwrap_err();
    let says = "disagrees with line 1: \"a\" there, \"b\" here";
    assert!(refused.to_string().contains(says), "{refused}");
    assert_eq!(verb(&app, "q").await, None);
    let imported = app
        .imports
        .import(&import(Mode::SkipInvalid, ImportAs::Decision), rows(), &still)
        .await
        .unwrap();
    assert_eq!(counts(&imported), (2, 1, 1, 1));
    let refused: Vec<_> = imported.refused.iter().map(|row| row.line).collect();
    assert_eq!(refused, [3]);
    assert_eq!(verb(&app, "p").await.as_deref(), Some("a"));
    assert_sound(&app).await;
}

async fn a_large_import_is_one_operation_of_revisions_of_a_thousand(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("phrase 7", "before")).await.unwrap();
    let imported = app
        .imports
        .import(
            &import(Mode::AllOrNothing, ImportAs::Decision),
            many(2_500),
            &still,
        )
        .await
        .unwrap();
    // What nothing was known of comes first, the row of the known phrase after it.
    assert_eq!(counts(&imported), (2_500, 0, 2, 5));
    let filter = RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: Some(OperationId(uuid::Uuid::from_u128(99))),
    };
    // A page ends early if its revisions have very many changes.
    let (page, more) = app.store.list_revisions(&filter, None, 500).await.unwrap();
    let sizes: Vec<_> = page.iter().map(|revision| revision.changes.len()).collect();
    assert_eq!((sizes, more), (vec![1, 499, 1_000], true));
    assert_sound(&app).await;
}

async fn all_or_nothing_writes_nothing_where_a_limit_is_reached(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::InvocationPhrase, |policy| {
        policy.max_resources = 3;
    })
    .await;
    let refused = app
        .imports
        .import(&import(Mode::AllOrNothing, ImportAs::Decision), many(4), &still)
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "RESOURCE_LIMIT");
    assert!(candidates(&app).await.is_empty());
    assert_eq!(head(&app).await, 0);
    assert_sound(&app).await;
}

async fn skip_invalid_reports_the_rows_that_a_limit_refused(world: &World) {
    let app = world.instance().await;
    super::policies::set(&app, emend_core::Kind::InvocationPhrase, |policy| {
        policy.max_resources = 3;
    })
    .await;
    let imported = app
        .imports
        .import(&import(Mode::SkipInvalid, ImportAs::Decision), many(4), &still)
        .await
        .unwrap();
    assert_eq!((imported.applied, imported.refused.len()), (3, 1));
    assert_sound(&app).await;
}

async fn an_imported_vote_proposes_no_new_value_in_a_full_contest(world: &World) {
    let app = world.instance().await;
    let votes: Vec<_> = (0..MAX_CANDIDATES)
        .map(|n| world.phrase(&format!("r{n}"), "p", &format!("v{n}")))
        .collect();
    apply(&app, &votes).await;
    let import_as = async |import_as| {
        let import = import(Mode::SkipInvalid, import_as);
        app.imports
            .import(&import, vec![row(7, "p", "new")], &still)
            .await
            .unwrap()
    };
    let by_vote = import_as(ImportAs::Votes).await;
    assert_eq!((by_vote.applied, by_vote.refused.len()), (0, 1));
    let RowError {
        line, description, ..
    } = &by_vote.refused[0];
    assert!(
        *line == 7 && description.contains("1000 candidates"),
        "{by_vote:?}"
    );
    let by_decision = import_as(ImportAs::Decision).await;
    assert_eq!(by_decision.applied, 1, "{by_decision:?}");
    assert_sound(&app).await;
}

async fn imports_and_votes_in_opposite_order_do_not_deadlock(world: &World) {
    let (one_app, two) = (world.instance().await, world.instance().await);
    let mut backwards = many(1_200);
    backwards.reverse();
    let first = {
        let app = one_app.clone();
        tokio::spawn(async move {
            app.imports
                .import(
                    &import(Mode::AllOrNothing, ImportAs::Decision),
                    many(1_200),
                    &still,
                )
                .await
        })
    };
    let second = {
        let app = two.clone();
        tokio::spawn(async move {
            app.imports
                .import(&import(Mode::SkipInvalid, ImportAs::Votes), backwards, &still)
                .await
        })
    };
    for n in [1_200, 600, 1] {
        let batch = [
            world.phrase("ann", &format!("phrase {n}"), "w"),
            world.phrase("ann", "phrase 900", "w"),
        ];
        super::world::apply(&two, &batch).await;
    }
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_sound(&one_app).await;
}

async fn an_import_stops_when_its_caller_loses_the_right(world: &World) {
    let app = world.instance().await;
    let gone = || Error::PermissionDenied {
        reason: "ROLE_MISSING",
        message: "the caller may not call this method".to_owned(),
    };
    let refused = app
        .imports
        .import(
            &import(Mode::AllOrNothing, ImportAs::Decision),
            many(1_200),
            &|| Err(gone()),
        )
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "ROLE_MISSING");
    assert!(candidates(&app).await.is_empty());
    assert_eq!(head(&app).await, 0, "all or nothing");

    app.resources.put(&put("phrase 7", "before")).await.unwrap();
    let asked = AtomicU32::new(0);
    let may_once = || match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(gone()),
    };
    let refused = app
        .imports
        .import(
            &import(Mode::SkipInvalid, ImportAs::Decision),
            many(2_500),
            &may_once,
        )
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "ROLE_MISSING");
    assert_eq!(
        (head(&app).await, verb(&app, "phrase 7").await.as_deref()),
        (4, Some("before")),
        "the part before stays, and nothing was written after"
    );
    assert_sound(&app).await;
}

async fn what_votes_do_not_decide_is_no_vote(world: &World) {
    let app = world.instance().await;
    let rows = || {
        let correction = Correction::parse_domain("example.org", Ok(DomainRule::Block), "").unwrap();
        let rule = Row {
            line: 2,
            proposal: correction.effects(&namespace(), None).remove(0),
        };
        vec![row(1, "set up", "create"), rule]
    };
    let refused = app
        .imports
        .import(&import(Mode::AllOrNothing, ImportAs::Votes), rows(), &still)
        .await
        .unwrap_err();
    let Error::InvalidArgument(violations) = refused else {
        panic!("{refused}")
    };
    assert_eq!(violations[0].field, "rows[line 2].correction");
    assert!(violations[0].description.contains("import it as a decision"));
    let skipped = app
        .imports
        .import(&import(Mode::SkipInvalid, ImportAs::Votes), rows(), &still)
        .await
        .unwrap();
    assert_eq!((skipped.applied, skipped.refused[0].line), (1, 2));
}

async fn a_whole_operation_is_reverted_but_for_what_changed_since(world: &World) {
    let app = world.instance().await;
    let access = Access::open();
    app.resources.put(&put("phrase 1", "before")).await.unwrap();
    let mut rows = many(1_200);
    // Of a key that it changes twice, the value from before it is restored.
    rows.push(row(1_201, "phrase 1", "again"));
    let import = import(Mode::SkipInvalid, ImportAs::Decision);
    app.imports
        .import(&import, rows.split_off(600), &still)
        .await
        .unwrap();
    app.imports.import(&import, rows, &still).await.unwrap();
    app.resources.put(&put("phrase 2", "later")).await.unwrap();
    let revert = |operation, preview| RevertOperation {
        namespace: namespace(),
        operation,
        preview,
        reason: "the wrong file".to_owned(),
        actor: operator(),
    };
    let figures = |done: &RevertedOperation| (done.reverted, done.already, done.left_count);
    let head_before = head(&app).await;
    let foreseen = app
        .log
        .revert_operation(&revert(import.operation, true), &access)
        .await
        .unwrap();
    assert_eq!(figures(&foreseen).2, 1);
    assert_eq!(head(&app).await, head_before, "a preview writes nothing");
    let done = app
        .log
        .revert_operation(&revert(import.operation, false), &access)
        .await
        .unwrap();
    assert_eq!(figures(&done), (1_199, 1, 1), "{:?}", done.left);
    assert_eq!(done.left[0].key.key.as_str(), "phrase 2");
    let verbs = async || {
        [
            verb(&app, "phrase 1").await,
            verb(&app, "phrase 2").await,
            verb(&app, "phrase 3").await,
        ]
    };
    let words = |words: [Option<&str>; 3]| words.map(|word| word.map(str::to_owned));
    assert_eq!(verbs().await, words([Some("before"), Some("later"), None]));
    assert_sound(&app).await;

    let head_before = head(&app).await;
    let again = app
        .log
        .revert_operation(&revert(import.operation, false), &access)
        .await
        .unwrap();
    assert_eq!((figures(&again), again.last.0), ((0, 1_200, 1), 0));
    assert_eq!(head(&app).await, head_before);

    let back = app
        .log
        .revert_operation(&revert(done.operation, false), &access)
        .await
        .unwrap();
    assert_eq!(figures(&back), (1_199, 0, 0));
    assert_eq!(verbs().await, words([Some("v"), Some("later"), Some("v")]));
    let unknown = OperationId(uuid::Uuid::from_u128(98));
    let refused = app
        .log
        .revert_operation(&revert(unknown, false), &access)
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "NOT_FOUND");
    assert_sound(&app).await;
}

async fn what_nothing_is_known_of_is_stored_as_what_is_decided_row_by_row(world: &World) {
    let fresh = world.instance().await;
    let elsewhere = World::sqlite();
    let one_by_one = elsewhere.instance().await;
    // In the order in which they are written, so that the revisions are the same.
    let mut rows = many(1_001);
    for (form, input, choice) in [
        (Form::Entity, "j. smith", "person:jane"),
        (Form::Prohibition, "wind down", "delete_fund"),
    ] {
        let correction = choice_correction(form, input, choice);
        let proposals = correction.effects(&namespace(), None);
        rows.extend(proposals.into_iter().map(|proposal| Row { line: 9, proposal }));
    }
    rows.sort_by_key(|row| row.proposal.key.contest_id());
    for mode in [Mode::AllOrNothing, Mode::SkipInvalid] {
        let import = import(mode, ImportAs::Decision);
        let at_once = fresh.imports.import(&import, rows.clone(), &still).await.unwrap();
        let mut in_parts = 0;
        // So few rows are decided as any act of a person is.
        for part in rows.chunks(1_000) {
            let imported = one_by_one.imports.import(&import, part.to_vec(), &still).await;
            in_parts += imported.unwrap().applied;
        }
        let is_first = mode == Mode::AllOrNothing;
        let applied = if is_first { 1_003 } else { 0 };
        assert_eq!((at_once.applied, in_parts), (applied, applied));
    }
    // The newest; then one of each kind, with its history.
    assert_eq!(candidates(&fresh).await, candidates(&one_by_one).await);
    let of_each_kind = [
        (Form::PhraseMapping, "phrase 7", "v"),
        (Form::Entity, "j. smith", "person:jane"),
        (Form::Prohibition, "wind down", "delete_fund"),
    ];
    for (form, input, choice) in of_each_kind {
        let correction = choice_correction(form, input, choice);
        let proposal = correction.effects(&namespace(), None).remove(0);
        let id = proposal.value.candidate_id(proposal.key.contest_id());
        let written = fresh.decisions.candidate(&namespace(), id).await.unwrap();
        assert_eq!(
            written,
            one_by_one.decisions.candidate(&namespace(), id).await.unwrap()
        );
        assert_eq!(
            fresh.store.transitions(id, 9).await.unwrap(),
            one_by_one.store.transitions(id, 9).await.unwrap()
        );
    }
    assert_sound(&fresh).await;
}
