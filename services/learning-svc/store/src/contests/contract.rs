//! The contract of a unit of work: what it promises, and that rows are parsed, not trusted. It holds for both databases and for
//! the store in memory used by the simulation.

use std::collections::HashMap;

use emend_core::{Correction, Epoch, EventId, FeedbackId, Namespace, ResourceKey, Revision, Roles};
use emend_store::{MayConflict as _, StoreError};
use jiff::Timestamp;

use crate::{
    Store, UnitOfWork,
    actor::Actor,
    contests::{damage::Damage, fixtures::store_empty},
    ingest::{Mark, Marks},
    policies::{PolicyKey, PolicyWrite},
    testing::on_all_stores,
};

async fn create_head(store: &impl Store) {
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store
        .create_head(Epoch(uuid::Uuid::from_u128(1)), installation)
        .await
        .unwrap();
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn namespace() -> Namespace {
    Namespace::parse("fund-admin").unwrap()
}

fn correction(phrase: &str) -> Correction {
    Correction::parse_entity(phrase, "", "entity").unwrap()
}

fn key(phrase: &str) -> ResourceKey {
    correction(phrase).effects(&namespace(), None).remove(0).key
}

async fn create(tx: &mut dyn UnitOfWork, keys: &[&ResourceKey]) {
    tx.contests().create(keys, NOW).await.unwrap();
}

async fn what_is_not_committed_never_was(store: impl Damage) {
    create_head(&store).await;
    let contest = key("a");
    let mut tx = store.begin().await.unwrap();
    create(&mut *tx, &[&contest]).await;
    assert_eq!(tx.contests().lock(&[&contest]).await.unwrap().len(), 1);
    assert_eq!(tx.log().advance_head(3).await.unwrap().revision, Revision(3));
    drop(tx);
    let mut tx = store.begin().await.unwrap();
    assert_eq!(tx.log().advance_head(0).await.unwrap().revision, Revision(0));
    assert!(
        tx.contests().lock(&[&contest]).await.is_err(),
        "it was not created"
    );
}

async fn the_head_moves_by_what_was_written_and_tells_the_databases_time(store: impl Damage) {
    create_head(&store).await;
    let mut tx = store.begin().await.unwrap();
    let first = tx.log().advance_head(2).await.unwrap();
    let second = tx.log().advance_head(1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((first.revision, second.revision), (Revision(2), Revision(3)));
    let since_2020 = Timestamp::from_microsecond(first.now).unwrap() > Timestamp::constant(1_577_836_800, 0);
    assert!(since_2020 && first.now <= second.now);
}

async fn contests_come_back_in_the_order_in_which_they_were_asked_for(store: impl Damage) {
    create_head(&store).await;
    let mut keys: Vec<ResourceKey> = (0..150).map(|n| key(&format!("phrase {n}"))).collect();
    keys.sort_by_key(ResourceKey::contest_id);
    let keys: Vec<&ResourceKey> = keys.iter().collect();
    let mut tx = store.begin().await.unwrap();
    create(&mut *tx, &keys).await;
    create(&mut *tx, &keys).await;
    let locked = tx.contests().lock(&keys).await.unwrap();
    let found: Vec<&ResourceKey> = locked.iter().map(|row| &row.key).collect();
    assert_eq!(found, keys);
    let loaded = tx.contests().load(locked).await.unwrap();
    assert!(
        loaded
            .iter()
            .map(|contest| &contest.state.key)
            .eq(keys.iter().copied())
    );
}

async fn a_stored_key_that_does_not_give_its_id_is_a_corrupt_row(store: impl Damage) {
    create_head(&store).await;
    let contest = key("a");
    let mut tx = store.begin().await.unwrap();
    store_empty(&mut *tx, &[&contest]).await;
    tx.commit().await.unwrap();
    store.rename_all_contests("b").await;
    let mut tx = store.begin().await.unwrap();
    let error = tx.contests().lock(&[&contest]).await.unwrap_err();
    let StoreError::Corrupt(row) = error else {
        panic!("a corrupt row: {error}");
    };
    assert_eq!(
        (row.table, row.column, row.id),
        ("contests", "key", contest.contest_id().to_string())
    );
}

async fn a_policy_version_is_stored_once(store: impl Damage) {
    create_head(&store).await;
    let scope = PolicyKey {
        namespace: namespace(),
        kind: emend_core::Kind::EntityAlias,
    };
    let mut policy = emend_core::Policy::default_for(scope.kind);
    policy.version = 1;
    let write = PolicyWrite {
        key: scope.clone(),
        policy,
        actor: Actor::caller(emend_core::Caller::system()),
        reason: String::new(),
        updated_at: NOW,
    };
    let mut tx = store.begin().await.unwrap();
    tx.policies().save(&write).await.unwrap();
    assert!(tx.policies().save(&write).await.unwrap_err().is_conflict());
    drop(tx);
    assert_eq!(store.policy(&scope).await.unwrap().policy.version, 0);
}

async fn marks_are_seen_and_kept_once(store: impl Damage) {
    create_head(&store).await;
    let (feedback, other) = (
        FeedbackId(uuid::Uuid::from_u128(1)),
        FeedbackId(uuid::Uuid::from_u128(2)),
    );
    let roles = |names: &[&str]| Roles::parse(names.iter().copied()).unwrap();
    let mark = |feedback, sender: &[&str]| Mark {
        feedback,
        event: EventId(uuid::Uuid::from_u128(3)),
        caller: emend_core::Caller::system(),
        sender: roles(sender),
        at: NOW,
    };
    for sender in [&["reporter"][..], &["reporter", "reviewer"]] {
        let mut tx = store.begin().await.unwrap();
        let marks = Marks {
            retractions: vec![mark(feedback, sender)],
            redactions: vec![mark(other, sender)],
        };
        tx.inbox().save_marks(&marks).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut tx = store.begin().await.unwrap();
    let seen = tx.inbox().seen(&[], &[feedback, other]).await.unwrap();
    assert_eq!(
        seen.retracted,
        HashMap::from([(feedback, roles(&["reporter", "reviewer"]))])
    );
    assert_eq!(seen.redacted, [other]);
}

on_all_stores!(
    what_is_not_committed_never_was,
    the_head_moves_by_what_was_written_and_tells_the_databases_time,
    contests_come_back_in_the_order_in_which_they_were_asked_for,
    a_stored_key_that_does_not_give_its_id_is_a_corrupt_row,
    a_policy_version_is_stored_once,
    marks_are_seen_and_kept_once,
);
