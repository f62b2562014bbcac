//! Decisions about domains are read through indexes.

use crate::{
    contests::store::{CandidateFilter, CandidatePosition, lists_sql::listed},
    evidence::{
        store::levels_sql::of_patterns,
        trust_file::{Format, ReadTrustFile},
    },
    store::{
        begin_installation,
        testing::{TestDatabase, on_both},
    },
    tests::world::{app_on, operator},
};
use std::sync::Arc;

use emend_base::{Entropy, ManualClock};
use emend_core::{CandidateId, Key, Kind, Namespace, Status};
use uuid::Uuid;

use super::trust_sql::{count_supported, decisions, in_force_by_file, rulings_before};

async fn decisions_about_domains_are_found_by_indexes(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let namespace = Namespace::parse("research").unwrap();
    // Of a table with a few rows PostgreSQL reads all.
    let mut text = "namespaces: [research]\nversion: 1\nblocked:\n".to_owned();
    for number in 0..3_000 {
        text.extend(["  - d", &number.to_string(), ".example\n"]);
    }
    let file = ReadTrustFile::read(&text, Format::Yaml).unwrap();
    let entropy = Entropy::system();
    begin_installation(&store, &entropy).await.unwrap();
    let app = app_on(Arc::new(store.clone()), &ManualClock::default(), &entropy);
    app.evidence
        .apply_trust_file(&file, &namespace, &operator())
        .await
        .unwrap();
    let id = CandidateId(Uuid::from_u128(1));
    let filter = |keys| CandidateFilter {
        user: None,
        namespace: namespace.clone(),
        kinds: vec![Kind::DomainRule],
        statuses: vec![Status::Applied, Status::Superseded],
        keys,
    };
    let after = CandidatePosition { created_at: 7, id };
    let pattern = Key::parse(Kind::DomainRule.rules().key, "example.org").unwrap();
    for (name, query, index) in [
        (
            "newest first",
            listed(&filter(Vec::new()), Some(after), 1_000),
            "candidates_listed",
        ),
        (
            "of a pattern",
            listed(&filter(vec![pattern]), None, 1_000),
            "contests_by_key",
        ),
        // All that is stored here: PostgreSQL may join by keys instead.
        ("by file", in_force_by_file(&namespace), ""),
        ("what is stored of them", decisions(&[id]), "ballots"),
        ("rulings before", rulings_before(&[id]), "candidates_by_contest"),
        ("rules above", of_patterns(&namespace, &[1, 2]), "contests_by_key"),
        (
            "claims that a domain supports",
            count_supported(&namespace, "example.org"),
            // There are no edges here: PostgreSQL may take any index.
            "evidence_edges",
        ),
    ] {
        let plan = store.plan(query).await;
        assert!(plan.contains(index), "{name}: {plan}");
        assert!(!plan.contains("Seq Scan"), "{name}: {plan}");
        let scans = plan.lines().filter(|step| step.trim_start().starts_with("SCAN "));
        // Only what was found before is read from one end to the other.
        let of_tables: Vec<&str> = scans
            .filter(|step| {
                !["newest", "list_", "named", "CONSTANT ROW"]
                    .iter()
                    .any(|found| step.contains(found))
            })
            .collect();
        assert!(of_tables.is_empty(), "{name}: {plan}");
    }
}

on_both! {
    decisions_about_domains_are_found_by_indexes,
}
