//! What changes in the queue is read in the order of its commits, and nothing is missed.

use std::time::Duration;

use emend_core::{
    Caller, CandidateId, Kind, Learned, ResourceKey, ResourceValue, Revision, Status, decide::Cause,
};
use emend_store::sql::Statement;
use jiff::Timestamp;

use super::{QueueChange, QueuePosition, QueueStore as _, changes_sql::changes_after};
use crate::{
    SqlStore, Store as _, UnitOfWork,
    actor::Actor,
    contests::{TransitionWrite, fixtures},
    log::LogStore as _,
    testing::{TestDatabase, on_both},
};

fn key(phrase: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), phrase, "", "").unwrap()
}

fn value(phrase: &str) -> ResourceValue {
    ResourceValue::new(phrase, Learned::Entity("job description".to_owned()))
}

fn id(phrase: &str) -> CandidateId {
    value(phrase).candidate_id(key(phrase).contest_id())
}

fn person(name: &str) -> Actor {
    Actor {
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: name.to_owned(),
    }
}

/// Writes the transitions of a phrase's candidate in a unit of work, which is returned uncommitted.
async fn moved(store: &SqlStore, phrase: &str, statuses: &[(Option<Status>, Status)]) -> Box<dyn UnitOfWork> {
    let mut tx = store.begin().await.unwrap();
    let key = key(phrase);
    fixtures::store_empty(&mut *tx, &[&key]).await;
    let candidate = emend_core::Candidate {
        status: statuses.last().unwrap().1,
        ..fixtures::put(&key, value(phrase))
    };
    let transitions = statuses.iter().zip(10..).map(|((from, to), sequence)| {
        let write = TransitionWrite {
            candidate: candidate.id,
            sequence: sequence + i64::from(from.is_some_and(|from| from != Status::Pending)) * 100,
            from: *from,
            to: *to,
            cause: Cause::Review,
            reason: String::new(),
            actor: person("jane"),
            at: Timestamp::UNIX_EPOCH,
            revision: Revision(7),
            policy_version: 0,
        };
        (key.contest_id(), write)
    });
    let transitions: Vec<_> = transitions.collect();
    let write = fixtures::write(&key, candidate, 1);
    tx.contests()
        .save_candidates(&[write], &transitions)
        .await
        .unwrap();
    tx
}

async fn created(store: &SqlStore) {
    let epoch = emend_core::Epoch(uuid::Uuid::from_u128(1));
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store.create_head(epoch, installation).await.unwrap();
}

async fn read(store: &SqlStore, after: &mut QueuePosition) -> Vec<QueueChange> {
    let page = store.queue_changes(*after, 100).await.unwrap();
    if let Some((last, _)) = page.last() {
        *after = *last;
    }
    page.into_iter()
        .map(|(_, change)| change.unwrap().unwrap())
        .collect()
}

/// Reads until there are as many changes: transactions of other tests on the same PostgreSQL hold them back while they run.
async fn await_changes(store: &SqlStore, after: &mut QueuePosition, count: usize) -> Vec<QueueChange> {
    let mut found = Vec::new();
    let all = async {
        while found.len() < count {
            found.extend(read(store, after).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), all).await;
    assert!(in_time.is_ok(), "{count} changes were to come: {found:?}");
    found
}

async fn statuses_and_leases_are_read_as_they_change(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    created(&store).await;
    let mut after = store.queue_position().await.unwrap();
    let pending = [(None, Status::Pending)];
    // What is new and gathers votes is not told: the first change is the next one.
    moved(&store, "new", &pending).await.commit().await.unwrap();

    let applied = [(None, Status::Pending), (Some(Status::Pending), Status::Applied)];
    moved(&store, "jd", &applied).await.commit().await.unwrap();
    let told = QueueChange {
        candidate: id("jd"),
        key: key("jd"),
        status: Status::Applied,
        previous: None,
        decided_by: Some(person("jane")),
        lease: None,
        revision: Revision(7),
    };
    assert_eq!(await_changes(&store, &mut after, 1).await, [told]);

    let lease = store
        .acquire_lease(id("jd"), &person("tom"))
        .await
        .unwrap()
        .unwrap();
    let other = store
        .acquire_lease(id("jd"), &person("jane"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(other, lease);
    let told = QueueChange {
        candidate: id("jd"),
        key: key("jd"),
        status: Status::Applied,
        previous: Some(Status::Applied),
        decided_by: None,
        lease: Some(lease),
        revision: Revision::default(),
    };
    assert_eq!(
        await_changes(&store, &mut after, 1).await,
        std::slice::from_ref(&told)
    );
    // What jane does not have open she does not close: the next change is another one.
    store.release_lease(id("jd"), &person("jane")).await.unwrap();

    let rejected = [(Some(Status::Applied), Status::Rejected)];
    moved(&store, "jd", &rejected).await.commit().await.unwrap();
    let [told] = &await_changes(&store, &mut after, 1).await[..] else {
        panic!("one change is told");
    };
    assert_eq!(
        (told.previous, told.status, &told.lease),
        (Some(Status::Applied), Status::Rejected, &None),
        "deciding ends the lease"
    );
    assert!(store.leases(&[id("jd")]).await.unwrap().is_empty());
}

async fn what_commits_late_is_not_missed(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    created(&store).await;
    let mut after = store.queue_position().await.unwrap();
    let waits = [(None, Status::AwaitingReview)];
    // SQLite has one writer at a time.
    if matches!(database, TestDatabase::Sqlite) {
        moved(&store, "first", &waits).await.commit().await.unwrap();
        moved(&store, "second", &waits).await.commit().await.unwrap();
    } else {
        let first = moved(&store, "first", &waits).await;
        moved(&store, "second", &waits).await.commit().await.unwrap();
        assert_eq!(
            read(&store, &mut after).await,
            [],
            "an older transaction is running"
        );
        first.commit().await.unwrap();
    }
    let told = await_changes(&store, &mut after, 2).await;
    let told: Vec<_> = told.iter().map(|change| change.candidate).collect();
    assert_eq!(told, [id("first"), id("second")]);
}

async fn changes_are_dropped_after_a_while_and_found_by_their_place(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    created(&store).await;
    let mut after = store.queue_position().await.unwrap();
    let waits = [(None, Status::AwaitingReview)];
    moved(&store, "jd", &waits).await.commit().await.unwrap();
    let before = after;
    let read_up_to = store.queue_position().await.unwrap();
    assert_eq!(store.forget_queue_changes(read_up_to).await.unwrap(), 0);
    let age = Statement::new("UPDATE queue_changes SET made_at = made_at - 301000000");
    let mut transaction = store.begin_write().await.unwrap();
    transaction.execute(age).await.unwrap();
    transaction.commit().await.unwrap();
    // As long as it might not have been read, because an older transaction was running, it stays.
    assert_eq!(store.forget_queue_changes(before).await.unwrap(), 0);
    let forgotten = async {
        let mut forgotten = 0;
        while forgotten == 0 {
            let read_up_to = store.queue_position().await.unwrap();
            forgotten = store.forget_queue_changes(read_up_to).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        forgotten
    };
    let forgotten = tokio::time::timeout(Duration::from_mins(1), forgotten).await;
    assert_eq!(forgotten, Ok(1), "transactions of other tests end");
    // A new change never gets the place of one that was dropped.
    let nothing = read(&store, &mut after).await;
    assert_eq!(nothing, []);
    moved(&store, "other", &waits).await.commit().await.unwrap();
    let [told] = &await_changes(&store, &mut after, 1).await[..] else {
        panic!("one change is told");
    };
    assert_eq!(told.candidate, id("other"));

    let mut reader = store.reader().await.unwrap();
    if matches!(database, TestDatabase::Postgres) {
        reader.execute_text("SET enable_seqscan = off").await.unwrap();
    }
    let plan = reader.plan(changes_after(after, 100)).await;
    assert!(
        !plan.contains("Seq Scan") && plan.contains("queue_changes"),
        "{plan}"
    );
    for table in ["queue_changes", "c", "k", "l"] {
        assert!(!plan.contains(&format!("SCAN {table} ")), "{table}: {plan}");
    }
}

on_both! {
    statuses_and_leases_are_read_as_they_change,
    what_commits_late_is_not_missed,
    changes_are_dropped_after_a_while_and_found_by_their_place,
}
