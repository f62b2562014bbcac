//! What every database must do with recorded queries.

use std::time::Duration;

use emend_core::{Caller, Namespace, QueryId, search::terms};
use emend_proto::common::v1 as common;
use feedback_store::{
    ports::{Group, QueryStore, SettingsStore, Written},
    records::{
        event,
        mining::{NewMined, Unanswered},
        queries::{Interaction, New, Query, QueryFilter, QueryResult, StoredQuery},
        settings::{Change, Settings, SettingsUpdate},
        stats::{KeptSearch, StatsFilter},
    },
    testing::{TestStore, lease, namespace},
};
use jiff::{SignedDuration, Timestamp};
use prost::Message as _;

macro_rules! on_both {
    ($($scenario:ident)*) => {
        contract!(on_sqlite, Backend::Sqlite, $($scenario)*);
        contract!(on_postgres, Backend::Postgres, $($scenario)*);
    };
}

pub(super) use on_both;

on_both! {
    a_query_is_read_as_it_was_recorded
    interactions_are_shown_with_their_query_whichever_came_first
    lists_have_conditions_and_pages
    what_is_old_or_too_much_is_forgotten_and_its_counts_stay
    a_rewording_that_worked_is_proposed_once
    another_spelling_of_what_was_clicked_is_proposed_once
    what_still_finds_nothing_is_told_again_after_an_hour
    what_is_searched_more_often_keeps_no_other_query_from_being_told
    nothing_is_proposed_of_queries_whose_hits_are_not_known
    of_many_interactions_clicks_are_shown_before_impressions
    searches_are_found_by_indexes_among_those_of_others
}

/// 30 searches of a namespace among 30,000 of others, each with a click: of more PostgreSQL would read all of a table this small.
async fn searches_are_found_by_indexes_among_those_of_others(database: &TestStore) {
    let numbers =
        "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 30000)";
    let (bytes, analyze) = if database.sql().is_sqlite() {
        ("x''", "")
    } else {
        ("''", "ANALYZE;")
    };
    let whose = format!(
        "CASE WHEN i % 1000 = 0 THEN '{}' ELSE 'other-' || CAST(i % 50 AS TEXT) END",
        namespace()
    );
    let id = "'q' || CAST(i AS TEXT)";
    database
        .execute(&format!(
            "{numbers} INSERT INTO queries (namespace, query_id, caller, query_type, embedding_version, index_version, variant,
                                            hit_count, details, searched_at, recorded_at)
             SELECT {whose}, {id}, 'web', 'SEMANTIC', '', '', '', 1, {bytes}, i, i FROM n ORDER BY i;
             {numbers} INSERT INTO query_personal (number, namespace, session_id, query_text, answer_text, classification)
             SELECT i, {whose}, '', 'cards', '', '' FROM n;
             {numbers} INSERT INTO query_interactions (namespace, query_id, action, object_id, is_click, position, acted_at,
                                                       recorded_at)
             SELECT {whose}, {id}, 'click', 'card-1', 1, 1, i, i FROM n; {analyze}"
        ))
        .await
        .unwrap();
    let all = StatsFilter {
        namespace: namespace(),
        from: None,
        before: None,
        query_type: None,
    };
    let some = StatsFilter {
        from: Some(Timestamp::UNIX_EPOCH),
        before: Some(Timestamp::from_second(1).unwrap()),
        query_type: Some("SEMANTIC".into()),
        ..all.clone()
    };
    for filter in [all, some] {
        let plan = database.sql().plan_of_searches(&filter).await;
        assert!(
            plan.contains("queries_by_namespace") || plan.contains("queries_namespace_query_id"),
            "{plan}"
        );
        let passes_over = ["Seq Scan", "SCAN queries", "SCAN p", "SCAN i"];
        assert!(!passes_over.iter().any(|scan| plan.contains(scan)), "{plan}");
        let mut found = 0;
        let store: &dyn QueryStore = &*database.sql();
        let mut each = |search: KeptSearch| {
            assert!(search.is_clicked && search.text == "cards");
            found += 1;
        };
        store.kept_searches(&filter, &mut each).await.unwrap();
        assert_eq!(found, 30);
    }
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
        hit_count: Some(12),
        named_results: None,
    }
}

fn new<T>(item: T) -> New<T> {
    New {
        namespace: namespace(),
        caller: Caller::parse("web").unwrap(),
        item,
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
    let store = database.sql();
    let Written {
        queries,
        interactions,
        rated: _,
    } = store.record(group).await.unwrap();
    (queries, interactions)
}

pub(super) async fn found(database: &TestStore, id: &str) -> Option<StoredQuery> {
    let store = database.sql();
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
    let listed = database.sql().queries(filter).await.unwrap();
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
    let store = database.sql();
    let id = QueryId::parse("q-1").unwrap();
    assert_eq!(store.find_query(&elsewhere, &id).await.unwrap(), None);

    let long_ago: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut dated = group(vec![query("q-2", "cards")], vec![]);
    dated.queries[0].0.at = Some(long_ago);
    record(database, &dated).await;
    assert_eq!(found(database, "q-2").await.unwrap().searched_at, long_ago);
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
    queries[2].hit_count = None;
    queries[3].hit_count = Some(0);
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
    database.sql().save(&settings, &update).await.unwrap();
}

async fn what_is_old_or_too_much_is_forgotten_and_its_counts_stay(database: &TestStore) {
    let store = database.sql();
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

/// A session in which so much was found for one wording, and a result of the other was clicked.
fn reworded(session: &str, (failed, found): (&str, Option<u32>), worked: &str) -> Group {
    let searched = |id: String, text: &str, hit_count| Query {
        session_id: session.into(),
        hit_count,
        ..query(&id, text)
    };
    let (nothing, something) = (format!("{session}-1"), format!("{session}-2"));
    let click = clicked(&something, "card-1");
    group(
        vec![
            searched(nothing, failed, found),
            searched(something, worked, Some(3)),
        ],
        vec![click],
    )
}

fn miner(database: &TestStore) -> crate::queries::mining::Miner {
    crate::queries::mining::Miner {
        store: database.sql(),
        dispatch: crate::testing::dispatch(&crate::outbox::delivery_queue::DeliveryQueue::new(10)),
        ids: crate::testing::ids(),
        metrics: crate::metrics::QueryMetrics::default(),
        entropy: emend_base::Entropy::system(),
    }
}

async fn nothing_is_proposed_of_queries_whose_hits_are_not_known(database: &TestStore) {
    for name in ["s-1", "s-2", "s-3"] {
        record(database, &reworded(name, ("red shoes", None), "blue shoes")).await;
        // In the same session something else found nothing, and its rewording led to no click.
        let mut failed = query(&format!("{name}-3"), "a hat");
        (failed.session_id, failed.hit_count) = (name.into(), Some(0));
        record(database, &group(vec![failed], vec![])).await;
    }
    let stored = found(database, "s-1-1").await.unwrap();
    assert_eq!(stored.query.hit_count, None);
    let without_hits = QueryFilter {
        only_without_hits: true,
        ..all()
    };
    assert_eq!(ids(database, &without_hits).await, ["s-3-3", "s-2-3", "s-1-3"]);
    let worker = miner(database);
    assert_eq!(
        worker.run_once().await.unwrap(),
        1,
        "the hat, of which it is known"
    );
    assert_eq!(worker.metrics.mined_so_far(), 0, "no rewording worked");
}

async fn of_many_interactions_clicks_are_shown_before_impressions(database: &TestStore) {
    let mut shown: Vec<_> = (1..=120)
        .map(|place| acted("q-1", &format!("card-{place}"), "impression", place))
        .collect();
    shown.push(acted("q-1", "card-120", "click", 120));
    record(database, &group(vec![query("q-1", "cards")], shown)).await;
    let stored = found(database, "q-1").await.unwrap();
    assert_eq!(stored.interactions.len(), 100);
    let clicks = stored
        .interactions
        .iter()
        .filter(|one| one.interaction.is_click());
    assert_eq!(clicks.count(), 1);
}

async fn a_rewording_that_worked_is_proposed_once(database: &TestStore) {
    let worker = miner(database);
    for name in ["s-1", "s-2"] {
        record(
            database,
            &reworded(name, ("Bounce a card", Some(0)), "return a card"),
        )
        .await;
        record(
            database,
            &reworded(&format!("{name}-b"), ("once", Some(0)), "twice"),
        )
        .await;
    }
    assert_eq!(worker.run_once().await.unwrap(), 0, "two sessions are too few");
    record(
        database,
        &reworded("s-3", ("bounce a card", Some(0)), "return a card"),
    )
    .await;
    assert_eq!(worker.run_once().await.unwrap(), 2);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert_eq!(worker.metrics.mined_so_far(), 1);

    let [event, unanswered] = &super::claim_all(database).await[..] else {
        panic!("a rewording is proposed, and a query that found nothing is told of");
    };
    let told = emend_proto::learning::v1::Event::decode(unanswered.payload.clone()).unwrap();
    let Some(emend_proto::learning::v1::event::Event::Unanswered(told)) = told.event else {
        panic!("{told:?}");
    };
    assert_eq!(told.query_text, "Bounce a card");
    assert_eq!(
        (told.query_count, told.session_count, told.click_count),
        (3, 3, 3)
    );
    super::delivered(database, unanswered.event_id, "done").await;
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

/// What found nothing in three sessions.
async fn record_unanswered(database: &TestStore, round: &str, text: &str) {
    for session in ["s-1", "s-2", "s-3"] {
        let mut failed = query(&format!("{round}-{session}"), text);
        (failed.session_id, failed.hit_count) = (format!("{round}-{session}"), Some(0));
        record(database, &group(vec![failed], vec![])).await;
    }
}

/// A result of it was clicked in these sessions.
async fn record_clicked(database: &TestStore, text: &str, hit_count: Option<u32>, sessions: &[&str]) {
    for session in sessions {
        let id = format!("{text} {session}");
        let searched = Query {
            session_id: (*session).into(),
            hit_count,
            ..query(&id, text)
        };
        record(database, &group(vec![searched], vec![clicked(&id, "card-1")])).await;
    }
}

async fn another_spelling_of_what_was_clicked_is_proposed_once(database: &TestStore) {
    let worker = miner(database);
    // As often as it must be, but not in three sessions; found nothing, as a click that came by another way says nothing of; no click.
    record_clicked(database, "lightning blot", Some(2), &["a", "a2", ""]).await;
    record_clicked(database, "lightning balt", Some(0), &["b", "b2", "b3"]).await;
    for session in ["c", "c2", "c3"] {
        let mut unclicked = query(&format!("unclicked {session}"), "lightening bolts");
        (unclicked.session_id, unclicked.hit_count) = (session.into(), Some(4));
        record(database, &group(vec![unclicked], vec![])).await;
    }
    record_unanswered(database, "first", "Lightening bolt").await;
    let told = worker.run_once().await.unwrap();
    assert_eq!(told, 2, "what found nothing is told: both of them");
    assert_eq!(worker.metrics.mined_so_far(), 0, "nothing was clicked enough");

    // It is clicked at other times: what finds nothing now and then is no slip.
    record_unanswered(database, "outage", "lighting bolt").await;
    record_clicked(database, "Lighting Bolt", Some(2), &["e"]).await;
    record_clicked(database, "Lightning bolt", None, &["d", "d2"]).await;
    record_clicked(database, "lightning bolt", Some(3), &["d3", "d"]).await;
    assert_eq!(
        worker.run_once().await.unwrap(),
        2,
        "a spelling, and what finds nothing now and then is told"
    );
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert_eq!(worker.metrics.mined_so_far(), 1);
    let mut proposed = Vec::new();
    for claimed in super::claim_all(database).await {
        let sent = emend_proto::learning::v1::Event::decode(claimed.payload.clone()).unwrap();
        if let Some(emend_proto::learning::v1::event::Event::Mined(mined)) = sent.event {
            proposed.push(mined);
        }
    }
    let [mined] = &proposed[..] else {
        panic!("{proposed:?}");
    };
    let Some(common::correction::Correction::Term(term)) =
        mined.correction.as_ref().unwrap().correction.as_ref()
    else {
        panic!("it is a term");
    };
    assert_eq!(
        (&*term.term, &*term.equivalents[0], term.equivalents.len()),
        ("Lightning", "Lightening", 1)
    );
    let respelling = mined.respelling.unwrap();
    assert_eq!((respelling.query_count, mined.session_count), (3, 3));
    assert_eq!((respelling.click_count, respelling.clicked_session_count), (0, 3));
}

async fn what_still_finds_nothing_is_told_again_after_an_hour(database: &TestStore) {
    let worker = miner(database);
    record_unanswered(database, "first", "a hat").await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
    database.advance(2 * 3600).await;
    assert_eq!(worker.run_once().await.unwrap(), 0, "it is still on its way");
    let lease = lease();
    let token = lease.token;
    let told = database.store.claim(10, lease).await.unwrap();
    assert_eq!(told.len(), 1);
    let letter = super::dead(told[0].event_id, token);
    database.store.settle(&[letter]).await.unwrap();
    assert_eq!(
        worker.run_once().await.unwrap(),
        0,
        "a dead letter is sent again by a person"
    );
    database.execute("DELETE FROM outbox").await.unwrap();

    for _ in 0..2 {
        assert_eq!(
            worker.run_once().await.unwrap(),
            1,
            "what is near to it may be learned now"
        );
        assert_eq!(worker.run_once().await.unwrap(), 0, "an hour has not passed");
        let told = super::claim_all(database).await;
        super::delivered(database, told[0].event_id, "nothing is near").await;
        assert_eq!(worker.run_once().await.unwrap(), 0, "an hour has not passed");
        assert_eq!(database.number("SELECT count(*) FROM mined_rewrites").await, 1);
        database.advance(3600).await;
    }
    // Nobody searches for it any more.
    database.advance(25 * 3600).await;
    database.sql().forget(10).await.unwrap();
    record_unanswered(database, "second", "a scarf").await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
    assert_eq!(
        database
            .number("SELECT count(*) FROM mined_rewrites WHERE failed = 'a hat'")
            .await,
        0,
        "what is told again anyway is not kept"
    );
}

async fn what_is_searched_more_often_keeps_no_other_query_from_being_told(database: &TestStore) {
    let ids = crate::testing::ids();
    let new = |text: &str| NewMined {
        namespace: namespace(),
        failed: text.into(),
        worked: String::new(),
        event: event::unanswered(
            ids.event(),
            &namespace(),
            &Unanswered {
                text: text.into(),
                queries: 3,
                sessions: 3,
                clicks: 0,
            },
        ),
    };
    let queries = ["a", "b", "c"].map(new);
    let hour = Duration::from_hours(1);
    let (store, namespace) = (database.sql(), namespace());
    let tell = || store.tell(&namespace, &queries, hour, 2);
    assert_eq!(tell().await.unwrap(), 2);
    assert_eq!(tell().await.unwrap(), 1, "the third, which is the rarest");
    assert_eq!(tell().await.unwrap(), 0);
}
