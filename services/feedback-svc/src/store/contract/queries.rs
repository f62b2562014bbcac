//! What every database must do with recorded queries.

use std::time::Duration;

use emend_core::{
    Caller, FeedbackId, Namespace, QueryId,
    search::{SearchRating, terms},
};
use emend_proto::common::v1 as common;
use jiff::{SignedDuration, Timestamp};
use prost::Message as _;

use super::get;
use crate::{
    erasure::tests::redaction,
    queries::{
        Interaction, KeptCounts, New, Pruned, Query, QueryFilter, QueryResult, StoredQuery,
        store::{Group, Written},
    },
    settings::{Change, Settings, SettingsUpdate},
    testing::{TestStore, feedback, namespace, search_rated, stored},
};

macro_rules! on_both {
    ($($scenario:ident)*) => {
        contract!(on_sqlite, Backend::Sqlite, $($scenario)*);
        contract!(on_postgres, Backend::Postgres, $($scenario)*);
    };
}

pub(super) use on_both;

on_both! {
    a_query_is_read_as_it_was_recorded
    a_query_counts_once_however_often_it_is_recorded
    interactions_are_shown_with_their_query_whichever_came_first
    lists_have_conditions_and_pages
    what_is_old_or_too_much_is_forgotten_and_its_counts_stay
    redacting_feedback_erases_the_texts_of_its_query_and_session
    what_is_recorded_of_an_erased_query_or_session_later_is_erased
    a_query_that_is_recorded_while_it_is_erased_keeps_no_texts
    a_large_group_is_stored_whole
    counts_are_bounded_and_what_is_pruned_is_said
    a_rewording_that_worked_is_proposed_once
}

pub(super) fn query(id: &str, text: &str) -> Query {
    Query {
        id: QueryId::parse(id).unwrap(),
        query_text: text.into(),
        answer_text: "an answer".into(),
        query_type: "SEMANTIC".into(),
        classification: "a question".into(),
        top_results: vec![QueryResult {
            title: "A card".into(),
            score: 0.75,
            object_id: "card-1".into(),
        }],
        namespaces: vec!["combined".into()],
        min_score: Some(0.4),
        embedding_version: "e5".into(),
        index_version: "7".into(),
        client_version: "web/4.2".into(),
        build: "abc".into(),
        variant: "B".into(),
        session_id: "session-1".into(),
        hit_count: 12,
    }
}

fn new<T>(what: T) -> New<T> {
    New {
        namespace: namespace(),
        caller: Caller::parse("web").unwrap(),
        what,
        at: None,
        waited: Duration::from_secs(1),
    }
}

pub(super) fn clicked(query_id: &str, object_id: &str) -> New<Interaction> {
    acted(query_id, object_id, "click", 1)
}

pub(super) fn acted(query_id: &str, object_id: &str, action: &str, position: u32) -> New<Interaction> {
    new(Interaction {
        query_id: QueryId::parse(query_id).unwrap(),
        object_id: object_id.into(),
        action: action.into(),
        position,
    })
}

pub(super) fn group(queries: Vec<Query>, interactions: Vec<New<Interaction>>) -> Group {
    let counted = |query: Query| {
        let words = terms(&query.query_text);
        (new(query), words)
    };
    Group {
        queries: queries.into_iter().map(counted).collect(),
        interactions,
    }
}

pub(super) async fn record(database: &TestStore, group: &Group) -> (u64, u64) {
    let store = database.store.queries().unwrap();
    let Written {
        queries,
        interactions,
        rated: _,
    } = store.record(group).await.unwrap();
    (queries, interactions)
}

async fn found(database: &TestStore, id: &str) -> Option<StoredQuery> {
    let store = database.store.queries().unwrap();
    let id = QueryId::parse(id).unwrap();
    store.find_query(&namespace(), &id).await.unwrap()
}

fn all() -> QueryFilter {
    QueryFilter {
        namespace: namespace(),
        query_type: None,
        only_without_hits: false,
        from: None,
        before: None,
        after: None,
        limit: 100,
    }
}

async fn ids(database: &TestStore, filter: &QueryFilter) -> Vec<String> {
    let listed = database.store.queries().unwrap().queries(filter).await.unwrap();
    listed
        .into_iter()
        .map(|stored| stored.query.id.to_string())
        .collect()
}

async fn a_query_is_read_as_it_was_recorded(database: &TestStore) {
    let asked = query("q-1", "cards that draw");
    assert_eq!(
        record(database, &group(vec![asked.clone()], vec![])).await,
        (1, 0)
    );
    let stored = found(database, "q-1").await.unwrap();
    assert_eq!(stored.query, asked);
    assert_eq!(
        stored.recorded_at.duration_since(stored.searched_at),
        SignedDuration::from_secs(1),
        "it waited for a second to be stored"
    );
    let elsewhere = Namespace::parse("elsewhere").unwrap();
    let store = database.store.queries().unwrap();
    let id = QueryId::parse("q-1").unwrap();
    assert_eq!(store.find_query(&elsewhere, &id).await.unwrap(), None);

    let long_ago: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut dated = group(vec![query("q-2", "cards")], vec![]);
    dated.queries[0].0.at = Some(long_ago);
    record(database, &dated).await;
    assert_eq!(found(database, "q-2").await.unwrap().searched_at, long_ago);
}

async fn a_query_counts_once_however_often_it_is_recorded(database: &TestStore) {
    let twice = || vec![query("q-1", "first"), query("q-1", "second")];
    assert_eq!(record(database, &group(twice(), vec![])).await, (1, 0));
    assert_eq!(record(database, &group(twice(), vec![])).await, (0, 0));
    assert_eq!(found(database, "q-1").await.unwrap().query.query_text, "first");
    assert_eq!(
        database
            .number("SELECT CAST(sum(queries) AS BIGINT) FROM query_terms")
            .await,
        1
    );
    assert_eq!(
        database
            .number("SELECT CAST(sum(queries) AS BIGINT) FROM query_days")
            .await,
        1
    );
    record(database, &group(vec![query("q-2", "first again")], vec![])).await;
    let of_first = "SELECT queries FROM query_terms WHERE term = 'first'";
    assert_eq!(database.number(of_first).await, 2);
    assert_eq!(
        database
            .number("SELECT CAST(sum(queries) AS BIGINT) FROM query_days")
            .await,
        2
    );
}

async fn interactions_are_shown_with_their_query_whichever_came_first(database: &TestStore) {
    let clicks = || {
        vec![
            clicked("q-1", "card-1"),
            clicked("q-1", "card-2"),
            clicked("q-1", "card-1"),
        ]
    };
    assert_eq!(record(database, &group(vec![], clicks())).await, (0, 2));
    record(
        database,
        &group(vec![query("q-1", "cards"), query("q-2", "cards")], clicks()),
    )
    .await;
    let stored = found(database, "q-1").await.unwrap();
    let objects: Vec<_> = stored
        .interactions
        .iter()
        .map(|one| one.interaction.object_id.as_str())
        .collect();
    assert_eq!(objects, ["card-1", "card-2"]);
    assert_eq!(found(database, "q-2").await.unwrap().interactions, []);
}

async fn lists_have_conditions_and_pages(database: &TestStore) {
    let mut queries: Vec<Query> = (0..5)
        .map(|number| query(&format!("q-{number}"), "cards"))
        .collect();
    queries[1].query_type = "GREETING".into();
    queries[3].hit_count = 0;
    let mut recorded = group(queries, vec![]);
    recorded.queries[4].0.at = Some("2026-01-02T03:04:05Z".parse().unwrap());
    record(database, &recorded).await;
    assert_eq!(ids(database, &all()).await, ["q-4", "q-3", "q-2", "q-1", "q-0"]);
    let first = QueryFilter { limit: 2, ..all() };
    assert_eq!(ids(database, &first).await, ["q-4", "q-3"]);
    let after = Some(found(database, "q-3").await.unwrap().number);
    assert_eq!(
        ids(database, &QueryFilter { after, ..first }).await,
        ["q-2", "q-1"]
    );
    let greetings = QueryFilter {
        query_type: Some("GREETING".into()),
        ..all()
    };
    assert_eq!(ids(database, &greetings).await, ["q-1"]);
    let without_hits = QueryFilter {
        only_without_hits: true,
        ..all()
    };
    assert_eq!(ids(database, &without_hits).await, ["q-3"]);
    let early = QueryFilter {
        before: Some("2026-01-03T00:00:00Z".parse().unwrap()),
        ..all()
    };
    assert_eq!(ids(database, &early).await, ["q-4"]);
    let late = QueryFilter {
        from: Some("2026-01-03T00:00:00Z".parse().unwrap()),
        ..all()
    };
    assert_eq!(ids(database, &late).await.len(), 4);
}

async fn keep(database: &TestStore, hours: u64, max: Option<u32>) {
    let update = SettingsUpdate {
        namespace: namespace(),
        etag: None,
        personal_retention: Change::Keep,
        rated_targets: Change::Keep,
        query_retention: Change::Keep,
        rating_limits: Change::Keep,
        max_queries: Change::Keep,
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: String::new(),
        reason: String::new(),
    };
    let settings = Settings {
        query_retention: Some(Duration::from_hours(hours)),
        max_queries: max,
        version: 1,
        ..Settings::default_of(namespace())
    };
    database
        .store
        .settings()
        .unwrap()
        .save(&settings, &update)
        .await
        .unwrap();
}

async fn what_is_old_or_too_much_is_forgotten_and_its_counts_stay(database: &TestStore) {
    let store = database.store.queries().unwrap();
    record(
        database,
        &group(vec![query("q-1", "old cards")], vec![clicked("q-1", "card-1")]),
    )
    .await;
    database.advance(23 * 3600).await;
    record(
        database,
        &group(vec![query("q-2", "new cards")], vec![clicked("q-2", "card-1")]),
    )
    .await;
    assert_eq!(store.forget(10).await.unwrap(), 0);
    database.advance(2 * 3600).await;
    assert_eq!(store.forget(10).await.unwrap(), 2, "a day is the default");
    assert_eq!(ids(database, &all()).await, ["q-2"]);
    assert_eq!(database.number("SELECT count(*) FROM query_personal").await, 1);
    assert_eq!(
        database.number("SELECT count(*) FROM query_interactions").await,
        1
    );
    assert_eq!(
        database
            .number("SELECT queries FROM query_terms WHERE term = 'cards'")
            .await,
        2
    );
    assert_eq!(
        database
            .number("SELECT CAST(sum(queries) AS BIGINT) FROM query_days")
            .await,
        2
    );

    keep(database, 1, Some(3)).await;
    assert_eq!(store.forget(10).await.unwrap(), 2, "an hour, by its settings");
    record(
        database,
        &group(
            (0..6)
                .map(|number| query(&format!("r-{number}"), "cards"))
                .collect(),
            vec![],
        ),
    )
    .await;
    assert_eq!(store.forget(2).await.unwrap(), 2, "no more than the limit");
    assert_eq!(store.forget(2).await.unwrap(), 1);
    assert_eq!(store.forget(2).await.unwrap(), 0);
    assert_eq!(ids(database, &all()).await, ["r-5", "r-4", "r-3"]);
}

async fn redacting_feedback_erases_the_texts_of_its_query_and_session(database: &TestStore) {
    // The feedback is on query-1, in session-1.
    let other = Query {
        session_id: "session-2".into(),
        ..query("q-2", "other cards")
    };
    let queries = vec![query("query-1", "her cards"), query("q-1", "more of hers"), other];
    record(database, &group(queries, vec![])).await;
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    redact(database, given.id).await;
    assert!(get(database, given.id).await.redaction.is_some());
    for (id, text) in [("query-1", ""), ("q-1", ""), ("q-2", "other cards")] {
        let found = found(database, id).await.unwrap().query;
        assert_eq!(found.query_text, text, "{id}");
        assert_eq!(found.session_id.is_empty(), text.is_empty(), "{id}");
        assert_eq!(found.hit_count, 12, "{id}");
    }
}

async fn what_is_recorded_of_an_erased_query_or_session_later_is_erased(database: &TestStore) {
    // The feedback is on query-1, in session-1.
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    redact(database, given.id).await;
    let of = |id: &str, session: &str| Query {
        session_id: session.into(),
        ..query(id, &format!("words of {id}"))
    };
    let texts = async |id: &str| {
        let Query {
            query_text,
            answer_text,
            classification,
            session_id,
            hit_count,
            ..
        } = found(database, id).await.unwrap().query;
        assert_eq!(hit_count, 12, "{id}");
        [query_text, answer_text, classification, session_id]
    };
    let queries = vec![of("query-1", "s-2"), of("q-1", "session-1"), of("q-2", "s-2")];
    let clicks = ["query-1", "q-1", "q-2"].map(|id| clicked(id, "card-1")).to_vec();
    record(database, &group(vec![], vec![clicked("q-1", "card-2")])).await;
    assert_eq!(record(database, &group(queries, clicks)).await, (3, 1));
    for id in ["query-1", "q-1"] {
        assert_eq!(texts(id).await, [""; 4], "{id}");
        assert_eq!(found(database, id).await.unwrap().interactions, [], "{id}");
    }
    assert_eq!(
        texts("q-2").await,
        ["words of q-2", "an answer", "a question", "s-2"]
    );
    let counted = "SELECT queries FROM query_terms WHERE term = 'words'";
    assert_eq!(database.number(counted).await, 1);
    let days = "SELECT CAST(sum(queries) AS BIGINT) FROM query_days";
    assert_eq!(database.number(days).await, 3);
    let mut elsewhere = group(vec![of("query-1", "session-1")], vec![]);
    elsewhere.queries[0].0.namespace = Namespace::parse("other").unwrap();
    assert_eq!(record(database, &elsewhere).await, (1, 0));
    let kept = "SELECT count(*) FROM query_personal WHERE query_text = 'words of query-1'";
    assert_eq!(database.number(kept).await, 1);

    // Once it is forgotten, too; but what is searched later in that session is not what was erased.
    database.advance(25 * 3_600).await;
    while database.store.queries().unwrap().forget(10).await.unwrap() > 0 {}
    let again = vec![
        of("query-1", "s-3"),
        of("q-1", "session-1"),
        of("q-3", "session-1"),
    ];
    assert_eq!(record(database, &group(again, vec![])).await, (3, 0));
    for id in ["query-1", "q-1"] {
        assert_eq!(texts(id).await, [""; 4], "{id}");
    }
    assert_eq!(texts("q-3").await[3], "session-1");
}

async fn a_query_that_is_recorded_while_it_is_erased_keeps_no_texts(database: &TestStore) {
    let replica = database.replica().await;
    for number in 0..20 {
        let id = format!("q-{number}");
        let rated = search_rated([&format!("r-{number}"), "", ""], &id, SearchRating::Down);
        stored(&*database.store, &rated, None).await;
        let redactions = [redaction(rated.id)];
        let recorded = group(vec![query(&id, "her cards")], vec![clicked(&id, "card-1")]);
        let erasures = replica.erasures().unwrap();
        let (erased, _) = futures::join!(erasures.redact(&redactions), record(database, &recorded));
        erased.unwrap();
        let found = found(database, &id).await.unwrap();
        assert_eq!((&*found.query.query_text, &found.interactions[..]), ("", &[][..]));
    }
    replica.close().await;
}

async fn counts_are_bounded_and_what_is_pruned_is_said(database: &TestStore) {
    let store = database.store.queries().unwrap();
    let kept = KeptCounts {
        words: 10,
        days: 30,
        rows: 4,
    };
    let mut queries: Vec<_> = (0..9)
        .map(|number| query(&format!("q-{number}"), &format!("cards often{number}")))
        .collect();
    queries.extend((0..9).map(|number| query(&format!("r-{number}"), &format!("often{number}"))));
    record(database, &group(queries, vec![])).await;
    assert_eq!(store.prune_counts(kept).await.unwrap(), Pruned::default());
    record(
        database,
        &group(vec![query("rare", "rare words of cards")], vec![]),
    )
    .await;
    // Down to nine tenths: also one of those that were twice.
    let words = database
        .number("SELECT count(*) FROM query_terms")
        .await
        .unsigned_abs();
    let pruned = store.prune_counts(kept).await.unwrap();
    assert_eq!((pruned.words, pruned.rows), (words - 9, 0));
    let asked = ["cards", "rare", "often8"];
    let counted = store.term_counts(&namespace(), &asked).await.unwrap();
    assert_eq!(counted.by_term.get("cards"), Some(&10));
    assert_eq!(counted.by_term.get("rare"), None);
    assert_eq!(
        (counted.queries, counted.pruned, counted.undercount),
        (19, words - 9, 2)
    );

    // Days that are too long ago are forgotten, though not how many queries there were; older rows lose their names first.
    database.advance(40 * 86_400).await;
    let of_variants = |day: &str| {
        let queries = (0..4).map(|number| Query {
            variant: format!("v{number}"),
            ..query(&format!("{day}-{number}"), "cards")
        });
        let mut recorded = group(queries.collect(), vec![]);
        recorded.queries.push(recorded.queries[3].clone());
        recorded.queries[4].0.what.id = QueryId::parse(&format!("{day}-again")).unwrap();
        recorded
    };
    record(database, &of_variants("one")).await;
    database.advance(86_400).await;
    record(database, &of_variants("two")).await;
    let pruned = store.prune_counts(kept).await.unwrap();
    assert_eq!((pruned.words, pruned.rows), (0, 1 + 4));
    let number = async |condition: &str| {
        let sql =
            format!("SELECT CAST(COALESCE(sum(queries), 0) AS BIGINT) FROM query_days WHERE {condition}");
        database.number(&sql).await
    };
    assert_eq!(number("variant = ''").await, 5);
    assert_eq!(number("variant = 'v3'").await, 2);
    assert_eq!(number("1 = 1").await, 10);
    assert_eq!(store.prune_counts(kept).await.unwrap(), Pruned::default());
    let counted = store.term_counts(&namespace(), &asked).await.unwrap();
    assert_eq!(counted.queries, 29);
}

async fn redact(database: &TestStore, id: FeedbackId) {
    let caller = Caller::parse("console").unwrap();
    let event_id = emend_core::EventId(emend_base::Entropy::system().uuid_v4());
    let redaction = crate::erasure::NewRedaction {
        namespace: namespace(),
        id,
        caller: caller.clone(),
        event: crate::outbox::event::redacted(event_id, id, &namespace(), &caller, ""),
    };
    database
        .store
        .erasures()
        .unwrap()
        .redact(&[redaction])
        .await
        .unwrap();
}

async fn a_large_group_is_stored_whole(database: &TestStore) {
    let queries: Vec<Query> = (0..700)
        .map(|number| query(&format!("q-{number}"), &format!("word{number} cards")))
        .collect();
    let clicks = (0..700)
        .map(|number| clicked(&format!("q-{number}"), "card-1"))
        .collect();
    assert_eq!(record(database, &group(queries, clicks)).await, (700, 700));
    assert_eq!(database.number("SELECT count(*) FROM query_terms").await, 701);
    assert_eq!(
        database
            .number("SELECT queries FROM query_terms WHERE term = 'cards'")
            .await,
        700
    );
}

/// A session in which nothing was found for one wording, and a result of the other was clicked.
fn reworded(session: &str, failed: &str, worked: &str) -> Group {
    let of = |id: String, text: &str, hit_count| Query {
        session_id: session.into(),
        hit_count,
        ..query(&id, text)
    };
    let (nothing, something) = (format!("{session}-1"), format!("{session}-2"));
    let click = clicked(&something, "card-1");
    group(
        vec![of(nothing, failed, 0), of(something, worked, 3)],
        vec![click],
    )
}

async fn a_rewording_that_worked_is_proposed_once(database: &TestStore) {
    let worker = crate::queries::mining::Miner {
        use_cases: crate::testing::use_cases(&database.store),
        metrics: crate::metrics::QueryMetrics::default(),
        entropy: emend_base::Entropy::system(),
    };
    for name in ["s-1", "s-2"] {
        record(database, &reworded(name, "Bounce a card", "return a card")).await;
        record(database, &reworded(&format!("{name}-b"), "once", "twice")).await;
    }
    assert_eq!(worker.run_once().await.unwrap(), 0, "two sessions are too few");
    record(database, &reworded("s-3", "bounce a card", "return a card")).await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert_eq!(worker.metrics.mined_so_far(), 1);

    let [event] = &super::claim_all(database).await[..] else {
        panic!("one event is proposed");
    };
    let sent = emend_proto::learning::v1::Event::decode(event.payload.clone()).unwrap();
    let Some(emend_proto::learning::v1::event::Event::Mined(mined)) = sent.event else {
        panic!("{sent:?}");
    };
    assert_eq!((sent.feedback_id.as_str(), mined.session_count), ("", 3));
    let Some(common::correction::Correction::Term(term)) = mined.correction.unwrap().correction else {
        panic!("it is a term");
    };
    assert_eq!(
        (term.term.as_str(), &term.equivalents[..]),
        ("return", &["Bounce".to_owned()][..])
    );
    assert_eq!(term.relation(), common::SynonymRelation::OneWay);
    super::delivered(database, event.event_id, "done").await;
    assert_eq!(super::claim_all(database).await.len(), 0, "it was delivered");
}
