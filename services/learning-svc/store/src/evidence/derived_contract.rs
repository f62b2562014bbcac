//! What is computed later is found by indexes.

use emend_store::sql::Statement;

use super::verification_sql::{
    claims_of_domains, dangerous_of_domains, domains_after, mark_domains_of_claims, stale_claims,
    stale_domains,
};
use crate::evidence::refresh_sql::below;
use crate::evidence::refresh_sql::mark_claims;
use crate::evidence::refresh_sql::stale_names;
use crate::evidence::rows::StaleNameRow;
use crate::testing::{TestDatabase, on_both};

/// A graph of 2,000 hosts of 500 domains, and 10,000 edges to 2,000 claims. Few of them are marked.
const GRAPH: [&str; 7] = [
    "INSERT INTO evidence_spaces (namespace, rules) VALUES ('fund-admin', 0)",
    "INSERT INTO evidence_domains (space, name, stale) SELECT 1, 'd' || n || '.example', CASE WHEN n < 5 THEN 1 ELSE 0 END \
     FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500) \
     SELECT n FROM numbers) AS numbered",
    "INSERT INTO evidence_hosts (space, reversed, domain, level, set_level, layer) \
     SELECT 1, 'example.d' || (n / 4 + 1) || '.h' || n, n / 4 + 1, 6, 6, 0 \
     FROM (WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1999) \
     SELECT n FROM numbers) AS numbered",
    "INSERT INTO evidence_claims (space, claim_id, task, page, host, text, adoption, patterns, ruled, status, stale, created_at, \
     updated_at) SELECT 1, 'c' || n, 0, 0, n, '', 0, CASE WHEN n % 5 = 0 THEN '[\"x\"]' ELSE '[]' END, 0, 1, CASE WHEN n < 5 THEN 1 ELSE 0 END, 0, 0 \
     FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000) \
     SELECT n FROM numbers) AS numbered",
    "INSERT INTO evidence_edges (space, edge_id, task, source_sort, source, target_sort, target, page, host, given, label, \
     ruled, ruled_at, model_weight, relation, weight) SELECT 1, 'e' || n, 0, 2, n, 3, n % 2000 + 1, n, n % 2000 + 1, 1, 0, 0, 0, 0, \
     1, 0 FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) \
     SELECT n FROM numbers) AS numbered",
    "INSERT INTO evidence_stale_names (space, reversed, done) VALUES (1, 'example', '')",
    "ANALYZE",
];

async fn what_is_to_be_computed_is_found_by_indexes_and_costs_no_more_in_a_large_graph(
    database: TestDatabase,
) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let mut transaction = store.begin_work().await.unwrap();
    for sql in GRAPH {
        transaction.execute(Statement::new(sql)).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let name = StaleNameRow {
        stale: 1,
        reversed: "example.d7".to_owned(),
        done: "example.d7.h3".to_owned(),
    };
    let keys = [7, 8, 9];
    for (query, indexes) in [
        (stale_names(1), &["evidence_stale_names"][..]),
        (below(1, &name, 1_000), &["evidence_hosts"]),
        (mark_claims(&keys), &["evidence_edges_by_host", "evidence_claims"]),
        (stale_claims(256), &["evidence_claims_stale"]),
        (stale_domains(3, 256), &["evidence_domains_stale"]),
        (domains_after(1, "d7.example", 1_000), &["evidence_domains"]),
        (
            mark_domains_of_claims(&keys),
            &["evidence_edges_by_target", "evidence_domains"],
        ),
        (
            claims_of_domains(&keys),
            &["evidence_hosts_by_domain", "evidence_edges_by_host"],
        ),
        (
            dangerous_of_domains(&keys),
            &["evidence_hosts_by_domain", "evidence_claims"],
        ),
    ] {
        let text = query.text().to_owned();
        let plan = store.plan(query).await;
        for index in indexes {
            assert!(plan.contains(index), "no {index}: {text}\n{plan}");
        }
        // Only what was found before, and an index of what is marked, is read from one end to the other.
        let scans = plan
            .lines()
            .filter(|step| step.contains("SCAN ") || step.contains("Seq Scan"));
        let scans: Vec<&str> = scans
            .filter(|step| {
                !["supported", "evidence_stale_names", "_stale"]
                    .iter()
                    .any(|found| step.contains(found))
            })
            .collect();
        assert!(scans.is_empty(), "{text}\n{plan}");
    }
}

on_both! {
    what_is_to_be_computed_is_found_by_indexes_and_costs_no_more_in_a_large_graph,
}
