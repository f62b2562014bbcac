//! Claims, edges and the lines of exports are found by indexes, as they are read: without hints to the planner.

use emend_core::{
    Namespace,
    evidence::{Combining, EdgeRelation, EvidenceId, TrustLevel},
};
use emend_store::sql::Statement;

use super::reads_sql::{edges_by_keys, independent, listed_edges, named_claim, summed};
use crate::SqlStore;
use crate::evidence::exports_sql::exported_claims;
use crate::evidence::exports_sql::exported_fragments;
use crate::evidence::exports_sql::exported_pages;
use crate::evidence::{EdgeFilter, EdgePosition};
use crate::testing::{TestDatabase, on_both};

const NUMBERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) ";

/// 20,000 edges from as many fragments, pages and hosts to as many claims, of which one has ten. Of a table with few more rows than
/// are asked for PostgreSQL reads all.
async fn fill(store: &SqlStore) {
    let mut transaction = store.begin_work().await.unwrap();
    for (into, select) in [
        (
            "evidence_hosts (space, reversed, domain, level, set_level, layer)",
            "SELECT 1, 'example.h' || CAST(i AS TEXT), i, i % 7 + 1, 6, 0 FROM n",
        ),
        (
            "evidence_tasks (space, task_id)",
            "SELECT 1, 't' || CAST(i AS TEXT) FROM n",
        ),
        (
            "evidence_pages (space, page_id, host, url, title, doi, pmid, arxiv_id, work)",
            "SELECT 1, 'p' || CAST(i AS TEXT), i, '', '', '', '', '', 0 FROM n",
        ),
        (
            "evidence_fragments (space, fragment_id, page, text)",
            "SELECT 1, 'f' || CAST(i AS TEXT), i, 'A part of a page.' FROM n",
        ),
        (
            "evidence_claims (space, claim_id, task, page, host, text, adoption, patterns, ruled, status, stale, created_at, \
             updated_at)",
            "SELECT 1, 'c' || CAST(i AS TEXT), i, 0, 0, '', 2, '[]', 0, 1, 0, 0, 0 FROM n",
        ),
        (
            "evidence_edges (space, edge_id, task, source_sort, source, target_sort, target, page, host, given, label, \
             confidence, ruled, ruled_at, model_weight, relation, weight)",
            "SELECT 1, 'e' || CAST(i AS TEXT), i, 2, i, 3, CASE WHEN i <= 10 THEN 7 ELSE i END, \
             i, i, i % 3 + 1, 0, NULL, 0, 0, 900000, i % 3 + 1, 900000 FROM n",
        ),
    ] {
        let sql = format!("INSERT INTO {into} {NUMBERS}{select}");
        transaction.execute(Statement::new(sql)).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

async fn claims_edges_and_lines_of_exports_are_found_by_indexes(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    fill(&store).await;
    let conflict = EdgeFilter {
        namespace: Namespace::parse("research").unwrap(),
        claim: Some(EvidenceId::parse("c7").unwrap()),
        relations: vec![EdgeRelation::Supports, EdgeRelation::Refutes],
        levels: vec![TrustLevel::Low, TrustLevel::Unverified],
        reviewed: None,
        corrected: None,
        task: None,
        edge: None,
    };
    let of_levels = EdgeFilter {
        claim: None,
        ..conflict.clone()
    };
    let begin = EdgePosition::default();
    let keys: Vec<i64> = (100..108).collect();
    for (name, query, indexes) in [
        (
            "a claim by its id",
            named_claim(1, &EvidenceId::parse("c7").unwrap()),
            &[][..],
        ),
        (
            "what a claim's edges weigh",
            summed(&[7], Combining::CountAll),
            &["evidence_edges_by_target"],
        ),
        (
            "what a claim's sources weigh",
            summed(&[7], Combining::OnePerSource),
            &["evidence_edges_by_target"],
        ),
        (
            "a claim's sources",
            independent(&[7]),
            &["evidence_edges_by_target"],
        ),
        (
            "the edges of a conflict",
            listed_edges(1, &conflict, None, Some(7), begin, 101),
            &["evidence_edges_by_target", "evidence_edges_by_source"],
        ),
        (
            "edges by levels",
            listed_edges(1, &of_levels, None, None, begin, 101),
            &["evidence_edges_by_host"],
        ),
        ("edges", edges_by_keys(&keys), &[]),
        ("pages of an export", exported_pages(&keys), &[]),
        ("fragments of an export", exported_fragments(&keys), &[]),
        ("claims of an export", exported_claims(1, &keys), &[]),
    ] {
        let plan = store.plan_to_read(query).await;
        for index in indexes {
            assert!(plan.contains(index), "{name}: no {index}: {plan}");
        }
        // Only what was found before, and the table of reviews, which is empty, is read from one end to the other.
        let scans = plan
            .lines()
            .filter(|step| step.contains("SCAN ") || step.contains("Seq Scan"));
        let scans: Vec<&str> = scans
            .filter(|step| {
                !["weighed", "ballot_details", "found", "of_target", "of_source"]
                    .iter()
                    .any(|found| step.contains(found))
            })
            .collect();
        assert!(scans.is_empty(), "{name}: {plan}");
    }
}

on_both! {
    claims_edges_and_lines_of_exports_are_found_by_indexes,
}
