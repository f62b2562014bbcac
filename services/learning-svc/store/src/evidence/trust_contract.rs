//! Decisions about domains are read through indexes.

use bytes::Bytes;
use emend_base::Entropy;
use emend_core::{
    CandidateId, DomainRule, Key, Kind, Learned, Namespace, ResourceKey, ResourceValue, Revision, Status,
};
use uuid::Uuid;

use crate::{
    Store as _, begin_installation,
    contests::{CandidateFilter, CandidatePosition, Listing, fixtures, lists_sql::listed},
    evidence::{
        levels_sql::of_patterns,
        trust_sql::{count_supported, decisions, in_force_by_file, rulings_before},
    },
    resources::{ResourceWrite, ResourceWrites},
    testing::{TestDatabase, on_both},
};

async fn decisions_about_domains_are_found_by_indexes(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let namespace = Namespace::parse("research").unwrap();
    begin_installation(&store, &Entropy::system()).await.unwrap();
    // Of a table with a few rows PostgreSQL reads all.
    let mut decided: Vec<_> = (0..3_000)
        .map(|number| {
            let pattern = format!("d{number}.example");
            let key = ResourceKey::parse("research", Some(Kind::DomainRule), &pattern, "FILE", "").unwrap();
            let block = Learned::DomainRule(DomainRule::Block.into());
            let candidate = fixtures::put(&key, ResourceValue::new(&pattern, block));
            fixtures::write(&key, candidate, 1)
        })
        .collect();
    decided.sort_by_key(|write| write.key.contest_id());
    let keys: Vec<&ResourceKey> = decided.iter().map(|write| &write.key).collect();
    let mut tx = store.begin().await.unwrap();
    fixtures::store_empty(&mut *tx, &keys).await;
    tx.contests().save_candidates(&decided, &[]).await.unwrap();
    let blocked = keys.iter().map(|key| ResourceWrite {
        key: (*key).clone(),
        revision: Revision(1),
        value: Some(Bytes::from_static(b"rule")),
    });
    let resources = ResourceWrites {
        resources: blocked.collect(),
        ..ResourceWrites::default()
    };
    tx.resources().save(&resources).await.unwrap();
    tx.commit().await.unwrap();
    let id = CandidateId(Uuid::from_u128(1));
    let filter = |keys| CandidateFilter {
        reviewed: crate::contests::Involvement::default(),
        user: None,
        namespace: namespace.clone(),
        kinds: vec![Kind::DomainRule],
        statuses: vec![Status::Applied, Status::Superseded],
        keys,
    };
    let after = CandidatePosition { place: 7, id };
    let pattern = Key::parse(Kind::DomainRule.rules().key, "example.org").unwrap();
    for (name, query, index) in [
        (
            "newest first",
            listed(&filter(Vec::new()), &Listing::default(), Some(after), 1_000),
            "candidates_listed",
        ),
        (
            "of a pattern",
            listed(&filter(vec![pattern]), &Listing::default(), None, 1_000),
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
