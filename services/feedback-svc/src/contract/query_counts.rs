//! What every database must do with what is counted of queries.

use emend_core::QueryId;
use feedback_store::{
    ports::QueryStore,
    records::queries::{KeptCounts, Pruned, Query},
    testing::{TestStore, namespace},
};
use jiff::{SignedDuration, Timestamp};

use crate::contract::queries::{clicked, found, group, on_both, query, record};

on_both! {
    a_query_counts_once_however_often_it_is_recorded
    counts_are_bounded_and_what_is_pruned_is_said
    days_that_are_pruned_before_their_queries_leave_the_database_sound
    a_large_group_is_stored_whole
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

async fn counts_are_bounded_and_what_is_pruned_is_said(database: &TestStore) {
    let store = database.sql();
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
        recorded.queries[4].0.item.id = QueryId::parse(&format!("{day}-again")).unwrap();
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
    assert_eq!(database.findings().await, []);
}

async fn days_that_are_pruned_before_their_queries_leave_the_database_sound(database: &TestStore) {
    let store = database.sql();
    let mut long_ago = group(
        vec![query("q-1", "old cards"), query("q-2", "new cards")],
        vec![clicked("q-1", "card-1")],
    );
    let now = database.number("SELECT now FROM database_clock").await;
    let now = Timestamp::from_microsecond(now).unwrap();
    long_ago.queries[0].0.at = Some(now - SignedDuration::from_hours(3 * 366 * 24));
    assert_eq!(record(database, &long_ago).await, (2, 1));
    let pruned = store.prune_counts(KeptCounts::SET).await.unwrap();
    assert_eq!((pruned.words, pruned.rows), (0, 1));
    let days = "SELECT CAST(sum(queries) AS BIGINT) FROM query_days";
    assert_eq!(database.number(days).await, 1);
    assert!(found(database, "q-1").await.is_some(), "it is kept for a day");
    assert_eq!(database.findings().await, []);
    let counted = store.term_counts(&namespace(), &["cards"]).await.unwrap();
    assert_eq!((counted.by_term["cards"], counted.queries), (2, 2));

    // Counts that are too low are found still.
    database
        .execute("UPDATE query_counts_pruned SET queries = queries - 1")
        .await
        .unwrap();
    let wrong = database.findings().await;
    let codes: Vec<_> = wrong.iter().map(|finding| finding.check.code).collect();
    assert_eq!(codes, ["QUERY_COUNT", "QUERY_COUNT"], "{wrong:?}");
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
