//! The contract of the decision store: what a unit of work promises, and that rows are parsed, not trusted. It holds for
//! both databases and for the store in memory used by the simulation.

use crate::{
    actor::Actor,
    capabilities::{Capabilities, Parts},
    contests::store::{CandidateFilter, store_empty},
    decisions::Follower,
    ingest::{
        event::{FeedbackChange, IngestEvent, Recorded},
        store::{Mark, Marks},
    },
    policies::store::{PolicyKey, PolicyWrite},
    resources::{store::ResourceWrites, write::Put},
    store::{Store, UnitOfWork, testing::TestDatabase},
};
use std::{collections::HashMap, sync::Arc};

use super::damage::Damage;
use async_trait::async_trait;
use emend_base::{Entropy, Error, ManualClock};
use emend_core::{
    Correction, Epoch, EventId, FeedbackId, Kind, Namespace, ResourceKey, Revision, Roles, policy::MAX_SCOPES,
};
use emend_store::{MayConflict as _, StoreError};
use jiff::Timestamp;

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

pub(crate) async fn what_is_not_committed_never_was(store: impl Damage) {
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

pub(crate) async fn the_head_moves_by_what_was_written_and_tells_the_databases_time(store: impl Damage) {
    create_head(&store).await;
    let mut tx = store.begin().await.unwrap();
    let first = tx.log().advance_head(2).await.unwrap();
    let second = tx.log().advance_head(1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((first.revision, second.revision), (Revision(2), Revision(3)));
    let since_2020 = Timestamp::from_microsecond(first.now).unwrap() > Timestamp::constant(1_577_836_800, 0);
    assert!(since_2020 && first.now <= second.now);
}

pub(crate) async fn contests_come_back_in_the_order_in_which_they_were_asked_for(store: impl Damage) {
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

pub(crate) async fn a_stored_key_that_does_not_give_its_id_is_a_corrupt_row(store: impl Damage) {
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

pub(crate) async fn a_policy_version_is_stored_once(store: impl Damage) {
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

pub(crate) async fn marks_are_seen_and_kept_once(store: impl Damage) {
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

struct Nobody;

#[async_trait]
impl Follower for Nobody {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

fn app(store: &impl Damage) -> Capabilities {
    let clock = ManualClock::default().shared();
    Capabilities::new(Parts::new(
        Arc::new(store.clone()),
        Arc::new(Nobody),
        clock,
        Entropy::system(),
    ))
}

fn event(order: i64, phrase: &str) -> IngestEvent {
    let entropy = Entropy::system();
    IngestEvent {
        id: EventId(entropy.uuid_v4()),
        feedback: FeedbackId(entropy.uuid_v4()),
        namespace: namespace(),
        accept_order: emend_core::AcceptOrder(order),
        traceparent: String::new(),
        applied_under: None,
        change: FeedbackChange::Recorded(Box::new(Recorded {
            reporter: emend_core::Reporter::parse("ann", "", "", "").unwrap(),
            caller: emend_core::Caller::system(),
            query_id: String::new(),
            reason: String::new(),
            context: std::collections::BTreeMap::new(),
            effects: correction(phrase).effects(&namespace(), None),
            sender: Roles::default(),
            received_at: NOW,
            erased: None,
        })),
    }
}

pub(crate) async fn of_a_group_only_the_culprit_sees_its_error(store: impl Damage) {
    create_head(&store).await;
    let app = app(&store);
    let phrases = ["a", "b", "c"];
    for (order, phrase) in (1..).zip(phrases) {
        app.ingest
            .apply(&[event(order, phrase)])
            .await
            .pop()
            .unwrap()
            .unwrap();
    }
    let corrupt = key("b").contest_id();
    store.corrupt_candidates_of(corrupt).await;
    let group: Vec<_> = (4..)
        .zip(phrases)
        .map(|(order, phrase)| event(order, phrase))
        .collect();
    let results = app.ingest.apply(&group).await;
    let fine: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(fine, [true, false, true]);
    assert!(
        matches!(results[1], Err(Error::Internal(_))),
        "a defect, and its details are for the log"
    );
}

pub(crate) async fn only_the_newest_ballots_are_read_however_many_there_are(store: impl Damage) {
    create_head(&store).await;
    let app = app(&store);
    let events: Vec<_> = (1..=30).map(|order| event(order, "a")).collect();
    for result in app.ingest.apply(&events).await {
        result.unwrap();
    }
    let ballots = store.ballots(key("a").contest_id(), 7).await.unwrap();
    let orders: Vec<_> = ballots.iter().map(|ballot| ballot.accept_order.0).collect();
    assert_eq!(orders, [30, 29, 28, 27, 26, 25, 24]);
}

pub(crate) async fn a_contest_in_which_many_vote_is_read_again_only_where_somebody_else_wrote_to_it(
    store: impl Damage,
) {
    create_head(&store).await;
    let app = app(&store);
    let contest = key("a").contest_id();
    let vote = |order| {
        let mut event = event(order, "a");
        if let FeedbackChange::Recorded(recorded) = &mut event.change {
            recorded.reporter = emend_core::Reporter::parse(&format!("r{order}"), "", "", "").unwrap();
        }
        event
    };
    let events: Vec<_> = (1..=300).map(vote).collect();
    for result in app.ingest.apply(&events).await {
        result.unwrap();
    }
    let reporters = async |order| {
        let outcome = app.ingest.apply(&[vote(order)]).await.pop().unwrap().unwrap();
        outcome.reporter_count
    };
    // Behind the store's back, without leaving a trace.
    store.retract_ballots_of(contest).await;
    assert_eq!(reporters(301).await, 301, "the ballots are not read");
    store.touch_candidates_of(contest).await;
    assert_eq!(reporters(302).await, 2, "now they are");
}

pub(crate) async fn candidates_are_counted_by_kind_and_status(store: impl Damage) {
    create_head(&store).await;
    let app = app(&store);
    assert_eq!(store.count_candidates().await.unwrap(), []);
    let proposing = |order, correction: Correction, phrase: &str| {
        let mut event = event(order, phrase);
        if let FeedbackChange::Recorded(recorded) = &mut event.change {
            recorded.effects = correction.effects(&namespace(), None);
        }
        event
    };
    let entity = |order, phrase: &str| {
        let correction = Correction::parse_entity(phrase, "", "choice").unwrap();
        proposing(order, correction, phrase)
    };
    let events = [
        entity(1, "a"),
        entity(2, "b"),
        proposing(3, Correction::parse_phrase_mapping("a", "choice").unwrap(), "a"),
    ];
    let elsewhere = IngestEvent {
        namespace: Namespace::parse("elsewhere").unwrap(),
        ..entity(4, "a")
    };
    let mut events = events.to_vec();
    events.push(elsewhere);
    for result in app.ingest.apply(&events).await {
        result.unwrap();
    }
    let all = CandidateFilter {
        user: None,
        namespace: namespace(),
        kinds: Vec::new(),
        statuses: Vec::new(),
        keys: Vec::new(),
    };
    let listed = store.list_candidates(&all, None, 10).await.unwrap();
    let status = |kind| {
        let mut of_kind = listed.iter().filter(|record| record.key.kind == kind);
        of_kind.next().unwrap().candidate.status
    };
    let mut counts = store.count_candidates().await.unwrap();
    counts.sort_by_key(|(kind, ..)| *kind);
    let (phrase, alias) = (Kind::InvocationPhrase, Kind::EntityAlias);
    assert_eq!(counts, [(phrase, status(phrase), 1), (alias, status(alias), 2)]);
    assert_ne!(status(phrase), status(alias), "one waits, the others are applied");
}

pub(crate) async fn only_so_many_kinds_in_namespaces_hold_resources(store: impl Damage) {
    create_head(&store).await;
    let key_of = |namespace: &str| ResourceKey {
        namespace: Namespace::parse(namespace).unwrap(),
        ..key("phrase")
    };
    let scopes = (1..MAX_SCOPES).map(|n| (PolicyKey::of(&key_of(&format!("other-{n}"))), 1));
    let full = ResourceWrites {
        counts: scopes.collect(),
        ..ResourceWrites::default()
    };
    let mut tx = store.begin().await.unwrap();
    tx.resources().save(&full).await.unwrap();
    assert_eq!(tx.resources().scopes_in_use().await.unwrap(), MAX_SCOPES - 1);
    tx.commit().await.unwrap();
    let app = app(&store);
    let put_in = |namespace: &str| Put {
        key: key_of(namespace),
        value: correction("phrase")
            .effects(&self::namespace(), None)
            .remove(0)
            .value,
        etag: None,
        reason: None,
        actor: Actor::caller(emend_core::Caller::system()),
    };
    app.resources.put(&put_in("last")).await.unwrap();
    let refused = app.resources.put(&put_in("one-more")).await.unwrap_err();
    assert_eq!(refused.reason(), "RESOURCE_LIMIT");
    // A scope that already holds some may have more.
    app.resources.put(&put_in("other-1")).await.unwrap();
}

pub(crate) async fn a_database_that_is_closed_is_unavailable(store: impl Damage) {
    create_head(&store).await;
    let app = app(&store);
    store.close().await;
    assert!(matches!(store.ping().await, Err(StoreError::Unavailable(_))));
    let results = app.ingest.apply(&[event(1, "a"), event(2, "b")]).await;
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(Error::Unavailable { .. })))
    );
}

/// Runs the suite on what `$open` opens, if it can be opened.
macro_rules! stamp {
    ($open:expr, $($test:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                if let Some((store, _guard)) = $open.await {
                    $crate::contests::store::contract::$test(store).await;
                }
            }
        )*
    };
    ($open:expr) => {
        $crate::contests::store::contract::stamp!(
            $open,
            what_is_not_committed_never_was,
            the_head_moves_by_what_was_written_and_tells_the_databases_time,
            contests_come_back_in_the_order_in_which_they_were_asked_for,
            a_stored_key_that_does_not_give_its_id_is_a_corrupt_row,
            a_policy_version_is_stored_once,
            marks_are_seen_and_kept_once,
            of_a_group_only_the_culprit_sees_its_error,
            only_the_newest_ballots_are_read_however_many_there_are,
            a_contest_in_which_many_vote_is_read_again_only_where_somebody_else_wrote_to_it,
            candidates_are_counted_by_kind_and_status,
            only_so_many_kinds_in_namespaces_hold_resources,
            a_database_that_is_closed_is_unavailable,
        );
    };
}
pub(crate) use stamp;

mod sqlite {
    use super::*;
    stamp!(TestDatabase::Sqlite.open());
}
mod postgres {
    use super::*;
    stamp!(TestDatabase::Postgres.open());
}
