//! The contract of the decision store: what a unit of work promises, and that rows are parsed, not trusted. It holds for
//! both databases and for the store in memory used by the simulation.

use std::sync::Arc;

use async_trait::async_trait;
use emend_base::{Entropy, Error, ManualClock};
use emend_core::{
    Correction, Epoch, EventId, FeedbackId, Kind, Namespace, ReporterId, ResourceKey, Revision, Roles,
    UserId, policy::MAX_SCOPES,
};
use emend_store::StoreError;
use jiff::{SignedDuration, Timestamp};
use learning_store::{
    Store,
    actor::Actor,
    contests::{CandidateFilter, Listing, damage::Damage},
    log::RevisionFilter,
    policies::PolicyKey,
    resources::ResourceWrites,
    testing::on_all_stores,
};

use crate::{
    capabilities::{CoreCapabilities, Parts},
    decisions::Follower,
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
    resources::write::Put,
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

struct Nobody;

#[async_trait]
impl Follower for Nobody {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

fn app(store: &impl Damage) -> CoreCapabilities {
    let clock = ManualClock::default().shared();
    CoreCapabilities::new(Parts::new(
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

async fn of_a_group_only_the_culprit_sees_its_error(store: impl Damage) {
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

async fn what_a_user_had_alone_is_erased_and_in_the_end_the_log_names_a_pseudonym(store: impl Damage) {
    create_head(&store).await;
    let app = app(&store);
    let ann = UserId::parse("ann").unwrap();
    let own = |order, phrase: &str| {
        let mut event = event(order, phrase);
        if let FeedbackChange::Recorded(recorded) = &mut event.change {
            recorded.effects = correction(phrase).effects(&namespace(), Some(&ann));
        }
        event
    };
    let erased = IngestEvent {
        feedback: FeedbackId::none(),
        change: FeedbackChange::ReporterErased {
            caller: emend_core::Caller::system(),
            reporter: ReporterId::parse("ann").unwrap(),
        },
        ..event(3, "a")
    };
    for event in [own(1, "a"), own(2, "b"), erased, own(2, "late"), event(4, "c")] {
        app.ingest.apply(&[event]).await.pop().unwrap().unwrap();
    }
    let contents = store.contents().await.unwrap();
    let left: Vec<_> = contents.ballots.iter().map(|ballot| ballot.contest).collect();
    assert_eq!(left, [key("c").contest_id()], "and what came late is not learned");

    let users = async || {
        let all = RevisionFilter {
            namespace: namespace(),
            kind: None,
            keys: Vec::new(),
            operation: None,
        };
        let (revisions, _) = store.list_revisions(&all, None, 100).await.unwrap();
        let changes = revisions.into_iter().flat_map(|revision| revision.changes);
        let own = changes.filter(|change| change.key.user.is_some());
        own.map(|change| {
            (
                change.key.user == Some(ann.clone()),
                change.before.is_some(),
                change.after.is_some(),
            )
        })
        .collect::<Vec<_>>()
    };
    assert!(!users().await.is_empty() && users().await.iter().all(|(is_ann, ..)| *is_ann));
    assert_eq!(
        store.forget_erased(100).await.unwrap(),
        0,
        "the deletions have not expired"
    );
    store
        .raise_horizon(SignedDuration::from_hours(1), 0)
        .await
        .unwrap();
    let named = users().await.len();
    assert_eq!(store.forget_erased(100).await.unwrap(), 2);
    assert_eq!(users().await, vec![(false, false, false); named]);
    assert_eq!(store.forget_erased(100).await.unwrap(), 0);
}

async fn only_the_newest_ballots_are_read_however_many_there_are(store: impl Damage) {
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

async fn a_contest_in_which_many_vote_is_read_again_only_where_somebody_else_wrote_to_it(store: impl Damage) {
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

async fn candidates_are_counted_by_kind_and_status(store: impl Damage) {
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
        reviewed: learning_store::contests::Involvement::default(),
        user: None,
        namespace: namespace(),
        kinds: Vec::new(),
        statuses: Vec::new(),
        keys: Vec::new(),
    };
    let listed = store
        .list_candidates(&all, &Listing::default(), None, 10)
        .await
        .unwrap();
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

async fn only_so_many_kinds_in_namespaces_hold_resources(store: impl Damage) {
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

async fn a_database_that_is_closed_is_unavailable(store: impl Damage) {
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

on_all_stores!(
    what_a_user_had_alone_is_erased_and_in_the_end_the_log_names_a_pseudonym,
    of_a_group_only_the_culprit_sees_its_error,
    only_the_newest_ballots_are_read_however_many_there_are,
    a_contest_in_which_many_vote_is_read_again_only_where_somebody_else_wrote_to_it,
    candidates_are_counted_by_kind_and_status,
    only_so_many_kinds_in_namespaces_hold_resources,
    a_database_that_is_closed_is_unavailable,
);
