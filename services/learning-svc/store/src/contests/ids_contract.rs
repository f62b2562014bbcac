//! What holds where candidates of two contests have one id, on both databases.

use emend_core::{
    Caller, Candidate, CandidateId, ContestId, Kind, Learned, ResourceKey, ResourceValue, Revision, Status,
    decide::Cause,
};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::testing::{TestDatabase, on_both};
use crate::{
    Store as _, UnitOfWork,
    actor::Actor,
    contests::{
        CandidateWrite, ContestStore as _, ContestWrite, StoredContest, TransitionWrite, VoteWrites, fixtures,
    },
    log::LogStore as _,
};

/// Contests whose ids begin and end alike, so that a candidate's may be of either.
const ALIKE: [&str; 2] = ["phrase 683084", "phrase 1495594"];

fn key(phrase: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), phrase, "", "").unwrap()
}

/// As if the hash of both candidates were this.
fn write(key: &ResourceKey, id: CandidateId, version: i64) -> CandidateWrite {
    let value = ResourceValue::new(key.key.as_str(), Learned::Entity(format!("what {} is", key.key)));
    let candidate = Candidate {
        id,
        status: Status::Pending,
        ..fixtures::put(key, value)
    };
    fixtures::write(key, candidate, version)
}

fn transition(key: &ResourceKey, candidate: CandidateId, version: i64) -> (ContestId, TransitionWrite) {
    let write = TransitionWrite {
        candidate,
        sequence: version - 1,
        from: (version > 1).then_some(Status::Pending),
        to: Status::Pending,
        cause: Cause::Operator,
        reason: String::new(),
        actor: Actor::caller(Caller::anonymous()),
        at: Timestamp::UNIX_EPOCH,
        revision: Revision::default(),
        policy_version: 0,
    };
    (key.contest_id(), write)
}

async fn loaded(tx: &mut dyn UnitOfWork, keys: &[&ResourceKey]) -> Vec<StoredContest> {
    tx.contests().create(keys, Timestamp::UNIX_EPOCH).await.unwrap();
    let locked = tx.contests().lock(keys).await.unwrap();
    tx.contests().load(locked).await.unwrap()
}

async fn candidates_with_one_id_stay_apart_and_are_not_found_by_it(database: TestDatabase) {
    let Some((store, _database)) = database.open().await else {
        return;
    };
    let epoch = emend_core::Epoch(uuid::Uuid::from_u128(1));
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store.create_head(epoch, installation).await.unwrap();
    let mut keys = ALIKE.map(key);
    keys.sort_by_key(ResourceKey::contest_id);
    let [first, second] = &keys;
    let id = write(first, CandidateId(uuid::Uuid::nil()), 1)
        .candidate
        .value
        .candidate_id(first.contest_id());
    assert!(id.may_be_of(second.contest_id()));
    for version in [1, 2] {
        let mut tx = store.begin().await.unwrap();
        loaded(&mut *tx, &[first, second]).await;
        let votes = VoteWrites {
            contests: keys.iter().cloned().map(ContestWrite::first).collect(),
            ..VoteWrites::default()
        };
        tx.contests().save_votes(&votes).await.unwrap();
        let candidates = keys.each_ref().map(|key| write(key, id, version));
        let transitions = keys.each_ref().map(|key| transition(key, id, version));
        tx.contests()
            .save_candidates(&candidates, &transitions)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let mut tx = store.begin().await.unwrap();
    for contest in loaded(&mut *tx, &[first, second]).await {
        let own = write(&contest.state.key, id, 2);
        assert_eq!(contest.state.candidates, [own.candidate]);
        assert_eq!(contest.kept[&id], own.kept);
    }
    let found = tx.contests().contest_of(id).await;
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
    drop(tx);
    let found = store.candidate(id).await;
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
    assert_eq!(
        store.transitions(id, 10).await.unwrap().len(),
        4,
        "each has its own two"
    );
}

on_both! {
    candidates_with_one_id_stay_apart_and_are_not_found_by_it,
}
