//! Whether events, figures of reviews and exports are found by indexes.

use emend_core::{
    Caller, Namespace,
    evidence::{EdgeRelation, EvidenceId},
};
use emend_store::sql::Statement;

use super::events_sql::{counted_reviews, listed_events, listed_samples};
use crate::SqlStore;
use crate::evidence::exports_sql::exported_keys;
use crate::evidence::{EdgePosition, EventFilter, EventPosition, Part, Period, ReviewFilter};
use crate::testing::{TestDatabase, on_both};

const ROWS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) ";

/// A namespace of its own among others, with 20,000 events and edges in all.
async fn fill(store: &SqlStore) {
    let mut transaction = store.begin_work().await.unwrap();
    for (into, select) in [
        (
            "evidence_events (namespace, contest, element_sort, element_id, action, task_id, caller, on_behalf_of, reason, value_before, \
             value_after, proposed, revision, made_at)",
            "SELECT 'space-' || CAST(i % 10 AS TEXT), i % 1000, 0, '', 1, 'task-' || CAST(i % 500 AS TEXT), \
             'caller-' || CAST(i % 20 AS TEXT), '', '', '', '', '', 0, i FROM n",
        ),
        (
            "evidence_claims (space, claim_id, task, page, host, text, adoption, patterns, ruled, status, stale, created_at, \
             updated_at)",
            "SELECT i % 10, 'c' || CAST(i AS TEXT), i % 500, i, 0, '', 2, '[]', 0, 1, 0, 0, 0 FROM n",
        ),
        (
            "evidence_edges (space, edge_id, task, source_sort, source, target_sort, target, page, host, given, label, \
             confidence, ruled, ruled_at, model_weight, relation, weight)",
            "SELECT i % 10, 'e' || CAST(i AS TEXT), i % 500, 2, i, 3, i, i, i % 100, 1, 0, NULL, \
             CASE WHEN i % 5 = 0 THEN 2 ELSE 0 END, i, 0, 1, 0 FROM n",
        ),
    ] {
        let sql = format!("INSERT INTO {into} {ROWS}{select}");
        transaction.execute(Statement::new(sql)).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

async fn events_reviews_and_exports_are_found_by_an_index_of_what_is_asked_for(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    fill(&store).await;
    let all = EventFilter {
        namespace: Namespace::parse("space-3").unwrap(),
        target: None,
        element: None,
        task: None,
        caller: None,
        period: Period::default(),
    };
    let of_task = EventFilter {
        task: Some(EvidenceId::parse("task-3").unwrap()),
        ..all.clone()
    };
    let of_caller = EventFilter {
        caller: Some(Caller::parse("caller-3").unwrap()),
        ..all.clone()
    };
    let at = |micros| Some(jiff::Timestamp::from_microsecond(micros).unwrap());
    let of_period = EventFilter {
        period: Period {
            from: at(100),
            to: at(2_000),
        },
        ..all.clone()
    };
    let of_contest = EventFilter {
        target: Some((
            emend_core::Kind::ClaimState,
            emend_core::Key::parse(emend_core::Kind::ClaimState.rules().key, "c1").unwrap(),
        )),
        ..all.clone()
    };
    let before = Some(EventPosition {
        at: 10_000,
        event: 10_000,
    });
    let reviews = ReviewFilter {
        namespace: all.namespace.clone(),
        task: None,
        predicted: Some(EdgeRelation::Supports),
        correct: vec![EdgeRelation::Refutes],
        period: of_period.period,
    };
    let after = EdgePosition {
        first: 100,
        edge: 100,
    };
    for (query, indexes) in [
        (
            listed_events(&all, &[], before, 100),
            &["evidence_events_listed"][..],
        ),
        (
            listed_events(&of_period, &[], None, 100),
            &["evidence_events_listed"],
        ),
        (
            listed_events(&of_task, &[], before, 100),
            &["evidence_events_by_task"],
        ),
        (
            listed_events(&of_caller, &[], before, 100),
            &["evidence_events_by_caller"],
        ),
        (
            listed_events(&of_contest, &[3, 4], before, 100),
            &["evidence_events_by_contest"],
        ),
        (counted_reviews(3, None, &reviews), &["evidence_edges_reviewed"]),
        (
            counted_reviews(3, Some(13), &reviews),
            &["evidence_edges_reviewed", "evidence_edges_by_task"],
        ),
        (
            listed_samples(3, None, &reviews, after, 64),
            &["evidence_edges_reviewed"],
        ),
        (exported_keys(Part::Edges, 13, 0, 64), &["evidence_edges_by_task"]),
        (exported_keys(Part::Pages, 13, 0, 64), &["evidence_edges_by_task"]),
        (
            exported_keys(Part::Claims, 13, 0, 64),
            &["evidence_claims_by_task"],
        ),
        (
            exported_keys(Part::Fragments, 13, 0, 64),
            &["evidence_edges_by_task"],
        ),
    ] {
        let plan = store.plan(query).await;
        assert!(
            indexes.iter().any(|index| plan.contains(index)),
            "{indexes:?}: {plan}"
        );
        for table in ["e", "c", "n", "d"] {
            let scans = [format!("SCAN {table}\n"), format!("SCAN {table} ")];
            assert!(
                !scans.iter().any(|scan| format!("{plan}\n").contains(scan)),
                "{plan}"
            );
        }
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
}

on_both! {
    events_reviews_and_exports_are_found_by_an_index_of_what_is_asked_for,
}
