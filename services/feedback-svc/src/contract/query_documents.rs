//! What every database must do with queries that come as several documents: they are one query, as if they had come together.

use std::time::Duration;

use emend_core::{
    Caller, QueryId,
    search::{SearchRating::Down, terms},
};
use emend_proto::feedback::v1 as pb;
use feedback_store::{
    ports::{ErasureStore, Group, QueryStore as _},
    records::{
        documents::NamedResults,
        queries::{KEPT_RESULTS, KeptCounts, New, Query, QueryResult},
    },
    testing::{TestStore, feedback, namespace, search_rated, stored},
};
use jiff::Timestamp;
use prost::Message as _;

use crate::{
    contract::{
        queries::{acted, clicked, found, group, on_both, query, record},
        search_ratings::{JANE, state},
    },
    erasure::tests::redaction,
};

on_both! {
    documents_of_a_query_are_one_query_in_whatever_order_they_come
    a_rating_keeps_what_documents_add_to_its_query_later
    what_was_recorded_whole_or_by_another_caller_stays_as_it_is
    a_document_brings_back_nothing_that_was_erased
    of_equal_interactions_the_earliest_counts
    what_is_done_again_later_changes_nothing
    more_results_than_are_told_apart_are_read_again
    only_the_day_and_the_names_of_a_query_are_counted_anew
    a_query_whose_day_is_no_longer_counted_is_not_counted_again
}

fn day(number: i64) -> Timestamp {
    Timestamp::from_second(number * 86_400).unwrap()
}

/// A document of a query of that day; none: it does not say what was found.
fn document(id: &str, on: i64, text: &str, found: Option<&[&str]>, session: &str) -> New<Query> {
    let result = |id: &&str| QueryResult {
        title: String::new(),
        score: 0.0,
        object_id: (*id).to_owned(),
    };
    let named = found.unwrap_or_default();
    New {
        namespace: namespace(),
        caller: Caller::parse("web").unwrap(),
        item: Query {
            id: QueryId::parse(id).unwrap(),
            query_text: text.into(),
            answer_text: String::new(),
            query_type: String::new(),
            classification: String::new(),
            top_results: named.iter().take(KEPT_RESULTS).map(result).collect(),
            namespaces: Vec::new(),
            min_score: None,
            embedding_version: String::new(),
            index_version: String::new(),
            client_version: String::new(),
            build: String::new(),
            variant: String::new(),
            session_id: session.into(),
            hit_count: found.map(|found| u32::try_from(found.len()).unwrap()),
            named_results: Some(NamedResults::of(named.iter().copied())),
        },
        at: Some(day(on)),
        waited: Duration::ZERO,
    }
}

fn posted(documents: Vec<New<Query>>) -> Group {
    let counted = |new: New<Query>| {
        let words = terms(&new.item.query_text);
        (new, words)
    };
    Group {
        queries: documents.into_iter().map(counted).collect(),
        ..Group::default()
    }
}

/// The texts of a query and its session, and the ids of its results.
async fn told(database: &TestStore, id: &str) -> ([String; 2], Vec<String>) {
    let query = found(database, id).await.unwrap().query;
    let results = query.top_results.into_iter().map(|result| result.object_id);
    ([query.query_text, query.session_id], results.collect())
}

async fn documents_of_a_query_are_one_query_in_whatever_order_they_come(database: &TestStore) {
    let of = |id: &str, number: usize| match number {
        1 => document(id, 1, "wipe", Some(&["a", "b", "c"]), ""),
        2 => document(id, 2, "purge", None, "s-1"),
        _ => document(id, 3, "sweep", Some(&["c", "d", "e", "f", "g", "h"]), "s-1"),
    };
    let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    for (place, order) in orders.into_iter().enumerate() {
        let (apart, together) = (format!("apart-{place}"), format!("together-{place}"));
        for number in order {
            // What is sent twice changes nothing.
            for _ in 0..2 {
                record(database, &posted(vec![of(&apart, number)])).await;
            }
        }
        let all = order.map(|number| of(&together, number)).to_vec();
        assert_eq!(record(database, &posted(all)).await, (1, 0));
        for id in [apart, together] {
            let stored = found(database, &id).await.unwrap();
            assert_eq!(stored.searched_at, day(1), "{order:?}");
            assert_eq!(stored.query.hit_count, Some(8), "{order:?}");
            let (texts, results) = told(database, &id).await;
            assert_eq!(texts, ["wipe", "s-1"], "{order:?}");
            assert_eq!(results, ["a", "b", "c", "d", "e"], "{order:?}");
        }
    }
    let all = i64::try_from(2 * orders.len()).unwrap();
    for (counted, expected) in [
        ("SELECT queries FROM query_terms WHERE term = 'wipe'", all),
        ("SELECT count(*) FROM query_terms", 1),
        ("SELECT count(*) FROM query_days", 1),
        (
            "SELECT CAST(sum(queries) AS BIGINT) FROM query_days WHERE day = 1 AND zero_hits = 0 AND unknown_hits = 0",
            all,
        ),
    ] {
        assert_eq!(database.number(counted).await, expected, "{counted}");
    }
    assert_eq!(database.findings().await, []);
}

async fn a_rating_keeps_what_documents_add_to_its_query_later(database: &TestStore) {
    let later = document("q-1", 3, "sweep", Some(&[]), "s-1");
    let mut first = posted(vec![later]);
    first.interactions = vec![clicked("q-1", "b")];
    record(database, &first).await;
    let rating = search_rated(JANE, "q-1", Down);
    stored(&*database.store, &rating, None).await;
    let copy = async || {
        let copy = state(database, &rating).await.query.unwrap();
        pb::Query::decode(copy.0).unwrap()
    };
    assert_eq!(
        (&*copy().await.query_text, copy().await.hit_count),
        ("sweep", Some(0))
    );
    // Clicks are kept with a rating beyond the clicks themselves.
    database.execute("DELETE FROM query_interactions").await.unwrap();
    let earlier = document("q-1", 1, "wipe", Some(&["a", "b"]), "");
    record(database, &posted(vec![earlier])).await;
    let renewed = copy().await;
    assert_eq!((&*renewed.query_text, renewed.hit_count), ("wipe", Some(2)));
    assert_eq!((&*renewed.session_id, renewed.interactions.len()), ("s-1", 1));
    assert_eq!(database.findings().await, []);
    assert_eq!(
        database
            .sql()
            .redact(&[redaction(rating.id)])
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(told(database, "q-1").await.0, [""; 2]);
}

async fn what_was_recorded_whole_or_by_another_caller_stays_as_it_is(database: &TestStore) {
    record(database, &group(vec![query("q-1", "whole")], vec![])).await;
    record(
        database,
        &posted(vec![document("q-2", 2, "theirs", Some(&["a"]), "")]),
    )
    .await;
    let mut others = document("q-2", 1, "mine", Some(&["b"]), "s-9");
    others.caller = Caller::parse("other").unwrap();
    let documents = vec![document("q-1", 1, "part", Some(&["b"]), "s-9"), others];
    assert_eq!(record(database, &posted(documents)).await, (0, 0));
    assert_eq!(found(database, "q-1").await.unwrap().query, query("q-1", "whole"));
    let ([text, session], results) = told(database, "q-2").await;
    assert_eq!([&*text, &session, &results.concat()], ["theirs", "", "a"]);
    // Nor does a whole one add to documents.
    let before = found(database, "q-2").await;
    record(database, &group(vec![query("q-2", "whole")], vec![])).await;
    assert_eq!(found(database, "q-2").await, before);
}

async fn a_document_brings_back_nothing_that_was_erased(database: &TestStore) {
    let of = |id: &str, on: i64, session: &str| document(id, on, "her cards", Some(&["a"]), session);
    // The feedback is on query-1, in session-1.
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    record(
        database,
        &posted(vec![
            of("query-1", 2, "session-1"),
            of("q-2", 2, ""),
            of("q-3", 2, ""),
        ]),
    )
    .await;
    let copied = search_rated(JANE, "q-2", Down);
    stored(&*database.store, &copied, None).await;
    database.sql().redact(&[redaction(given.id)]).await.unwrap();
    assert_eq!(
        told(database, "q-2").await.0[0],
        "her cards",
        "nobody knows yet whose it is"
    );
    record(
        database,
        &posted(vec![
            of("query-1", 1, ""),
            of("q-2", 1, "session-1"),
            of("q-3", 3, "session-1"),
        ]),
    )
    .await;
    for (id, on) in [("query-1", 1), ("q-2", 1), ("q-3", 2)] {
        assert_eq!(told(database, id).await.0, [""; 2], "{id}");
        assert_eq!(found(database, id).await.unwrap().searched_at, day(on), "{id}");
    }
    for (number, expected) in [
        ("SELECT count(*) FROM search_ratings WHERE length(query) > 0", 0),
        // What was counted stays.
        ("SELECT queries FROM query_terms WHERE term = 'cards'", 3),
    ] {
        assert_eq!(database.number(number).await, expected, "{number}");
    }
    assert_eq!(database.findings().await, []);
}

async fn of_equal_interactions_the_earliest_counts(database: &TestStore) {
    let clicked = |on: i64| {
        let mut click = acted("q-1", "a", "click", 1);
        click.at = Some(day(on));
        click
    };
    record(database, &posted(vec![document("q-1", 1, "wipe", None, "")])).await;
    for (days, new, earliest) in [([7, 5], 1, 5), ([3, 6], 0, 3)] {
        let again = group(vec![], days.map(clicked).to_vec());
        assert_eq!(record(database, &again).await, (0, new));
        let found = found(database, "q-1").await.unwrap().interactions;
        let acted_at: Vec<_> = found.iter().map(|one| one.acted_at).collect();
        assert_eq!(acted_at, [day(earliest)]);
    }
}

async fn what_is_done_again_later_changes_nothing(database: &TestStore) {
    let clicked = |position: u32, on: i64| {
        let mut click = acted("q-1", "a", "click", position);
        click.at = Some(day(on));
        click
    };
    record(database, &posted(vec![document("q-1", 1, "wipe", None, "")])).await;
    record(database, &group(vec![], vec![clicked(1, 5)])).await;
    // At another position it is not the same.
    let more = group(vec![], vec![clicked(1, 7), clicked(2, 3)]);
    assert_eq!(record(database, &more).await, (0, 1));
    let found = found(database, "q-1").await.unwrap().interactions;
    let mut found: Vec<_> = found
        .iter()
        .map(|one| (one.interaction.position, one.acted_at))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(1, day(5)), (2, day(3))]);
}

async fn more_results_than_are_told_apart_are_read_again(database: &TestStore) {
    for page in 0..2 {
        let ids: Vec<String> = (0..60).map(|result| format!("{page}-{result}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let page = document("q-1", page, "wipe", Some(&ids), "");
        record(database, &posted(vec![page])).await;
    }
    assert_eq!(found(database, "q-1").await.unwrap().query.hit_count, Some(120));
}

async fn only_the_day_and_the_names_of_a_query_are_counted_anew(database: &TestStore) {
    let mut whole = group(vec![query("q-1", "whole")], vec![]);
    whole.queries[0].0.at = Some(day(1));
    record(database, &whole).await;
    for (id, found) in [
        ("q-2", None),
        ("q-3", Some(&["b"][..])),
        ("q-2", Some(&["a"][..])),
    ] {
        record(database, &posted(vec![document(id, 1, "wipe", found, "")])).await;
    }
    let known = "SELECT CAST(sum(queries) AS BIGINT) FROM query_days WHERE unknown_hits = 0";
    assert_eq!(database.number(known).await, 3);
}

async fn a_query_whose_day_is_no_longer_counted_is_not_counted_again(database: &TestStore) {
    record(database, &posted(vec![document("q-1", 2, "wipe", None, "")])).await;
    let pruned = database.sql().prune_counts(KeptCounts::SET).await.unwrap();
    assert_eq!(pruned.rows, 1);
    record(
        database,
        &posted(vec![document("q-1", 1, "wipe", Some(&["a"]), "")]),
    )
    .await;
    assert_eq!(found(database, "q-1").await.unwrap().searched_at, day(1));
    assert_eq!(database.number("SELECT count(*) FROM query_days").await, 0);
    assert_eq!(database.findings().await, []);
}
