//! Works are found by indexes, and a large one costs no more than a small one.

use emend_base::Entropy;
use emend_core::{
    Namespace,
    evidence::{EvidenceId, WorkId},
};
use emend_store::sql::Statement;

use crate::{
    SqlStore, UnitOfWork, begin_installation,
    evidence::{
        graph::{Page, Upsert},
        upsert_sql,
        works_sql::{mark_claims_of_pages, mark_claims_of_work, pages_of, works_of_ids},
    },
    testing::{TestDatabase, on_both},
    work::Work,
};

/// A page with a PubMed id, and a DOI, which many may have.
fn page(number: u64, doi: &str) -> Page {
    let mut works = vec![WorkId::Pmid(number)];
    works.extend((!doi.is_empty()).then(|| WorkId::doi(doi).unwrap()));
    Page {
        id: EvidenceId::parse(&format!("p{number}")).unwrap(),
        host: "journal.example".into(),
        url: String::new(),
        title: String::new(),
        works,
    }
}

fn upsert(pages: Vec<Page>) -> Upsert {
    Upsert {
        namespace: Namespace::parse("research").unwrap(),
        pages,
        fragments: Vec::new(),
        claims: Vec::new(),
        edges: Vec::new(),
    }
}

/// Stores pages in a unit of work of their own; returns how many statements that took.
async fn store_pages(store: &SqlStore, pages: Vec<Page>) -> usize {
    let mut tx = Work::begin(store).await.unwrap();
    upsert_sql::upsert(&mut tx, &upsert(pages), None)
        .await
        .unwrap()
        .unwrap();
    let executed = tx.executed;
    UnitOfWork::commit(Box::new(tx)).await.unwrap();
    executed
}

async fn works(store: &SqlStore) -> Vec<(i64, i64)> {
    let mut transaction = store.begin_work().await.unwrap();
    transaction
        .rows(Statement::new(
            "SELECT work, pages FROM evidence_works ORDER BY pages DESC, work",
        ))
        .await
        .unwrap()
}

async fn pages_that_are_added_to_a_work_of_many_get_its_key_and_nothing_else_is_written(
    database: TestDatabase,
) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    begin_installation(&store, &Entropy::system()).await.unwrap();
    let many = (1..=1_000).map(|number| page(number, "10.1000/many")).collect();
    store_pages(&store, many).await;
    let [(key, 1_000)] = works(&store).await[..] else {
        panic!("all are one work")
    };
    // One at a time, as new ones and as works of their own that are joined later: each is read by its own ids, and moved alone.
    for number in 1_001..=1_040 {
        let mut alone = page(number, "10.1000/many");
        if number % 2 == 0 {
            store_pages(&store, vec![page(number, "")]).await;
            alone.works.reverse();
        }
        let statements = store_pages(&store, vec![alone]).await;
        assert!(statements <= 24, "{statements} statements for page {number}");
        let count = i64::try_from(number).unwrap();
        assert_eq!(works(&store).await, [(key, count)], "the large one keeps its key");
    }
    for (query, indexes) in [
        (
            works_of_ids(1, &["doi:10.1000/many", "pmid:7"]),
            &["evidence_identities"][..],
        ),
        (pages_of(&[key]), &["evidence_pages_by_work"]),
        // All pages here are of one work: PostgreSQL may go through the edges, of which there are none.
        (mark_claims_of_work(key), &[]),
        (mark_claims_of_pages(&[7, 8]), &[]),
    ] {
        let text = query.text().to_owned();
        let plan = store.plan(query).await;
        for index in indexes {
            assert!(plan.contains(index), "no {index}: {text}\n{plan}");
        }
        assert!(!plan.contains("Seq Scan"), "{text}\n{plan}");
    }
}

on_both! {
    pages_that_are_added_to_a_work_of_many_get_its_key_and_nothing_else_is_written,
}
