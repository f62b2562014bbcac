//! Who has a candidate open, on both databases.

use emend_core::{Caller, CandidateId};
use emend_store::sql::Statement;

use super::{MAX_LEASES, QueueStore as _, sql};
use crate::{
    SqlStore,
    actor::Actor,
    testing::{TestDatabase, on_both},
};

fn id(number: u128) -> CandidateId {
    CandidateId(uuid::Uuid::from_u128(number))
}

fn person(name: &str) -> Actor {
    Actor {
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: name.to_owned(),
    }
}

async fn run(store: &SqlStore, sql: String) {
    let mut transaction = store.begin_write().await.unwrap();
    transaction.execute(Statement::new(sql)).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn a_candidate_is_open_for_one_person_until_that_expires(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let opens = async |name: &str| store.acquire_lease(id(1), &person(name)).await.unwrap().unwrap();
    let first = opens("jane").await;
    assert_eq!(first.actor, person("jane"));
    assert_eq!(opens("tom").await, first, "it is jane's");
    let again = opens("jane").await;
    assert!(again.actor == person("jane") && again.expires_at >= first.expires_at);

    store.release_lease(id(1), &person("tom")).await.unwrap();
    let found = store.leases(&[id(1), id(2)]).await.unwrap();
    assert_eq!(found, [(id(1), again)].into());
    run(
        &store,
        "UPDATE review_leases SET expires_at = expires_at - 61000000".to_owned(),
    )
    .await;
    assert!(store.leases(&[id(1)]).await.unwrap().is_empty());
    assert_eq!(opens("tom").await.actor, person("tom"));
    store.release_lease(id(1), &person("tom")).await.unwrap();
    assert!(store.leases(&[id(1)]).await.unwrap().is_empty());
}

async fn there_are_only_so_many_leases_and_none_that_has_expired_counts(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let into = "INSERT INTO review_leases (candidate_id, caller, on_behalf_of, expires_at) \
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ";
    let bytes = match database {
        TestDatabase::Sqlite => "CAST('00000000' || (10000000 + i) AS BLOB)",
        TestDatabase::Postgres => "convert_to('00000000' || (10000000 + i), 'UTF8')",
    };
    run(
        &store,
        format!("{into}{MAX_LEASES}) SELECT {bytes}, 'console', '', now + 60000000 FROM n, database_clock"),
    )
    .await;
    assert_eq!(store.acquire_lease(id(1), &person("jane")).await.unwrap(), None);
    run(
        &store,
        "UPDATE review_leases SET expires_at = expires_at - 61000000".to_owned(),
    )
    .await;
    let lease = store.acquire_lease(id(1), &person("jane")).await.unwrap();
    assert_eq!(lease.unwrap().actor, person("jane"));
    let left: i64 = store
        .reader()
        .await
        .unwrap()
        .value(Statement::new("SELECT count(*) FROM review_leases"))
        .await
        .unwrap();
    assert_eq!(left, 1);
}

async fn leases_are_found_by_their_candidates(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let mut reader = store.reader().await.unwrap();
    if matches!(database, TestDatabase::Postgres) {
        reader.execute_text("SET enable_seqscan = off").await.unwrap();
    }
    let plan = reader.plan(sql::leases_on(&[id(1), id(2)])).await;
    assert!(
        !plan.contains("SCAN review_leases") && !plan.contains("Seq Scan"),
        "{plan}"
    );
}

on_both! {
    a_candidate_is_open_for_one_person_until_that_expires,
    there_are_only_so_many_leases_and_none_that_has_expired_counts,
    leases_are_found_by_their_candidates,
}
