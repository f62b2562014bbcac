//! What every database must do with what ratings take over from their queries: when it is taken, what clicks add, and how it is
//! erased.

use emend_core::{
    Namespace,
    search::SearchRating::{Down, Up},
};
use emend_proto::feedback::v1::Query;
use feedback_store::{
    ports::{Connected, CorrectionStore, ErasureStore, QueryStore, RatingStore, Redacted, Settled},
    records::{
        feedback::{NewFeedback, Submission},
        ratings::{ContextState, RatingState},
    },
    testing::{TestStore, inserted, new_feedback, search_rated, stored},
};
use prost::Message as _;

use crate::{
    contract::{
        get, orders,
        queries::{acted, clicked, group, on_both, query as recorded, record},
        search_ratings::{JANE, state},
    },
    erasure::tests::redaction,
    ratings::LONGEST_WAIT,
};

on_both! {
    a_rating_takes_its_context_from_its_query_and_from_nobody_else
    a_query_that_comes_late_completes_its_ratings_and_one_that_does_not_come_is_missing
    a_rating_that_waits_is_counted_by_who_settles_it_and_by_nobody_else
    a_rating_whose_query_comes_as_it_is_given_up_is_counted_once
    what_is_known_of_a_query_outlives_it_and_is_erased_with_the_rating
    redacting_a_rating_erases_the_copies_that_others_have_of_its_query_and_session
    a_rating_that_is_stored_while_its_query_is_erased_keeps_no_copy
    clicks_are_known_for_as_long_as_the_rating_whenever_they_come
    clicks_are_erased_with_the_rating_and_with_its_query
}

/// The text of a rating's query, its type and its titles.
fn known(state: &RatingState) -> Option<(String, String, Vec<String>)> {
    let query = Query::decode(state.query.clone()?.0).unwrap();
    let titles = query.top_results.into_iter().map(|result| result.title);
    Some((query.query_text, query.query_type, titles.collect()))
}

fn of_card(text: &str) -> (String, String, Vec<String>) {
    (text.into(), "SEMANTIC".into(), vec!["A card".into()])
}

async fn a_rating_takes_its_context_from_its_query_and_from_nobody_else(database: &TestStore) {
    record(database, &group(vec![recorded("q1", "back to the hand")], vec![])).await;
    let rating = search_rated(JANE, "q1", Down);
    assert!(!rating.submission.context.is_empty(), "what is sent of it");
    stored(&*database.store, &rating, None).await;
    let found = get(database, rating.id).await;
    assert!(found.submission.context.is_empty(), "it is ignored");
    let state = found.search_rating.unwrap();
    assert_eq!(
        (state.context, &*state.query_type),
        (ContextState::Complete, "SEMANTIC")
    );
    assert_eq!(
        [&*state.embedding_version, &*state.index_version, &*state.variant],
        ["e5", "7", "B"]
    );
    assert!(state.is_known_at_once);
    assert_eq!(known(&state), Some(of_card("back to the hand")));
    let states = database
        .sql()
        .rating_states(&[found.accepted.order])
        .await
        .unwrap();
    assert_eq!(states[&found.accepted.order], state);

    let elsewhere = Submission {
        namespace: Namespace::parse("other").unwrap(),
        ..rating.submission.clone()
    };
    let elsewhere = new_feedback(elsewhere, &rating.caller);
    stored(&*database.store, &elsewhere, None).await;
    let found = database
        .store
        .feedback(&elsewhere.submission.namespace, elsewhere.id)
        .await;
    let found = found.unwrap().unwrap();
    assert_eq!(
        found.search_rating.unwrap(),
        RatingState::pending(),
        "another namespace's id gives nothing"
    );
    assert_eq!(found.submission.context, elsewhere.submission.context);
}

async fn a_query_that_comes_late_completes_its_ratings_and_one_that_does_not_come_is_missing(
    database: &TestStore,
) {
    let store = database.sql();
    let [late, twice, never] = [("q1", "jane"), ("q1", "ken"), ("q2", "jane")]
        .map(|(query, reporter)| search_rated([reporter, "", ""], query, Down));
    inserted(
        &*database.store,
        &[late.clone(), twice.clone(), never.clone()],
        None,
    )
    .await;
    let wait = LONGEST_WAIT;
    let settle = async || store.settle_contexts(wait, 100).await.unwrap();
    assert_eq!(settle().await, Settled::default(), "they may still come");
    database.advance(9).await;
    let store_of_queries = database.sql();
    let written = store_of_queries
        .record(&group(vec![recorded("q1", "late")], vec![]))
        .await
        .unwrap();
    let reported: Vec<_> = written
        .rated
        .iter()
        .map(|rated| (rated.id, rated.rating))
        .collect();
    assert_eq!(reported, [(late.id, Down), (twice.id, Down)]);
    for rating in [&late, &twice] {
        assert!(!state(database, rating).await.is_known_at_once);
        assert_eq!(known(&state(database, rating).await), Some(of_card("late")));
        assert!(get(database, rating.id).await.submission.context.is_empty());
    }
    assert_eq!(settle().await, Settled::default());
    database.advance(1).await;
    let Settled { complete, missing } = settle().await;
    assert_eq!(complete, []);
    let [gone] = &missing[..] else {
        panic!("{missing:?}")
    };
    assert_eq!((gone.id, gone.rating, &*gone.query_type), (never.id, Down, ""));
    assert_eq!(settle().await, Settled::default(), "counted once");
    let missing = state(database, &never).await;
    assert_eq!((missing.context, missing.query), (ContextState::Missing, None));
    record(database, &group(vec![recorded("q2", "too late")], vec![])).await;
    assert_eq!(state(database, &never).await.context, ContextState::Missing);

    // Stored at the same moment by transactions that did not see each other.
    let unseen = search_rated(JANE, "q1", Up);
    stored(&*database.store, &unseen, None).await;
    let undo = "UPDATE search_ratings SET context_state = 1, query_type = '' WHERE replaced_by IS NULL AND rating = 1";
    assert_eq!(database.execute(undo).await.unwrap(), 1);
    database.advance(10).await;
    let Settled { complete, missing } = settle().await;
    assert_eq!(missing, []);
    let titles = vec!["A card".to_owned()];
    assert_eq!((complete[0].id, &complete[0].titles), (unseen.id, &titles));
    assert_eq!(known(&state(database, &unseen).await), Some(of_card("late")));
}

async fn a_rating_that_waits_is_counted_by_who_settles_it_and_by_nobody_else(database: &TestStore) {
    record(database, &group(vec![recorded("q1", "cards")], vec![])).await;
    let [waits, new] = ["jane", "ken"].map(|reporter| search_rated([reporter, "", ""], "q1", Down));
    stored(&*database.store, &waits, None).await;
    // As it is where its transaction did not see the query.
    let undo = "UPDATE search_ratings SET context_state = 1, query_type = '', known_at_once = 0";
    assert_eq!(database.execute(undo).await.unwrap(), 1);
    stored(&*database.store, &new, None).await;
    assert!(state(database, &new).await.is_known_at_once);
    assert_eq!(state(database, &waits).await.context, ContextState::Pending);
    database.advance(10).await;
    let ratings = database.sql();
    let settled = ratings.settle_contexts(LONGEST_WAIT, 100).await.unwrap();
    let complete: Vec<_> = settled.complete.iter().map(|rating| rating.id).collect();
    assert_eq!((&complete[..], &settled.missing[..]), (&[waits.id][..], &[][..]));
    let waited = state(database, &waits).await;
    assert_eq!(
        (waited.context, waited.is_known_at_once),
        (ContextState::Complete, false)
    );
    let again = ratings.settle_contexts(LONGEST_WAIT, 100).await.unwrap();
    assert_eq!(again, Settled::default());
}

async fn a_rating_whose_query_comes_as_it_is_given_up_is_counted_once(database: &TestStore) {
    let replica = database.sql_replica().await;
    let (ratings, queries) = (replica.clone(), database.sql());
    for number in 0..20 {
        let id = format!("q{number}");
        let rating = search_rated([&format!("r{number}"), "", ""], &id, Down);
        stored(&*database.store, &rating, None).await;
        database.advance(10).await;
        let recorded = group(vec![recorded(&id, "cards")], vec![clicked(&id, "card-1")]);
        let (settled, written) = futures::join!(
            ratings.settle_contexts(LONGEST_WAIT, 100),
            queries.record(&recorded)
        );
        let (settled, written) = (settled.unwrap(), written.unwrap());
        let complete = settled.complete.len() + written.rated.len();
        assert_eq!(complete + settled.missing.len(), 1, "{settled:?} {written:?}");
        let is_complete = state(database, &rating).await.context == ContextState::Complete;
        assert_eq!(is_complete, complete == 1, "{settled:?} {written:?}");
    }
    replica.close().await;
}

async fn what_is_known_of_a_query_outlives_it_and_is_erased_with_the_rating(database: &TestStore) {
    record(database, &group(vec![recorded("q1", "back to the hand")], vec![])).await;
    let rating = search_rated(JANE, "q1", Down);
    stored(&*database.store, &rating, None).await;
    database.advance(25 * 3_600).await;
    assert_eq!(database.sql().forget(10).await.unwrap(), 1);
    assert_eq!(
        known(&state(database, &rating).await),
        Some(of_card("back to the hand"))
    );
    let erased = database.sql().redact(&[redaction(rating.id)]).await;
    assert_eq!(erased.unwrap(), [Redacted::Undelivered]);
    let state = state(database, &rating).await;
    assert_eq!((state.query, &*state.query_type), (None, "SEMANTIC"));
    let hidden =
        "UPDATE search_ratings SET processed = 1 WHERE query_id = '' AND rater IS NULL AND length(query) = 0";
    assert_eq!(database.execute(hidden).await.unwrap(), 1);
}

async fn redacting_a_rating_erases_the_copies_that_others_have_of_its_query_and_session(
    database: &TestStore,
) {
    let mut other_session = recorded("q3", "third");
    other_session.session_id = "session-2".into();
    let queries = vec![recorded("q1", "first"), recorded("q2", "second"), other_session];
    record(database, &group(queries, vec![])).await;
    let mut elsewhere = group(vec![recorded("q1", "elsewhere")], vec![]);
    elsewhere.queries[0].0.namespace = Namespace::parse("other").unwrap();
    record(database, &elsewhere).await;
    let hers = search_rated(["jane", "session-1", ""], "q1", Down);
    let [first, second, third] = ["q1", "q2", "q3"].map(|id| search_rated(["ken", "", ""], id, Down));
    let submission = Submission {
        namespace: Namespace::parse("other").unwrap(),
        ..first.submission.clone()
    };
    let elsewhere = new_feedback(submission, &first.caller);
    let all = [hers, first, second, third, elsewhere];
    orders(&inserted(&*database.store, &all, None).await);
    let [hers, first, second, third, _] = all;
    let copies = "SELECT count(*) FROM search_ratings WHERE session_id <> '' AND length(query) > 0";
    assert_eq!(database.number(copies).await, 5);
    // Of the queries themselves nothing is left.
    database.advance(25 * 3_600).await;
    assert_eq!(database.sql().forget(10).await.unwrap(), 4);
    let erasures = database.sql();
    let erased = erasures.redact(&[redaction(hers.id)]).await;
    assert_eq!(erased.unwrap(), [Redacted::Undelivered]);
    for (rating, copy) in [
        (&hers, None),
        (&first, None),
        (&second, None),
        (&third, Some(of_card("third"))),
    ] {
        let state = state(database, rating).await;
        assert_eq!(
            (state.context, &*state.query_type),
            (ContextState::Complete, "SEMANTIC")
        );
        assert_eq!(known(&state), copy, "{rating:?}");
    }
    assert_eq!(database.number(copies).await, 2);
    let left = "SELECT count(*) FROM search_ratings WHERE session_id <> '' OR length(query) > 0";
    assert_eq!(database.number(left).await, 2);
}

async fn a_rating_that_is_stored_while_its_query_is_erased_keeps_no_copy(database: &TestStore) {
    let replica = database.sql_replica().await;
    let erasures = replica.clone();
    for number in 0..20 {
        let [id, jane, ken] = ["q", "jane", "ken"].map(|name| format!("{name}{number}"));
        record(database, &group(vec![recorded(&id, "hers")], vec![])).await;
        let hers = search_rated([&jane, "", ""], &id, Down);
        let others: Vec<_> = (0..3)
            .map(|it| search_rated([&format!("{ken}-{it}"), "", ""], &id, Up))
            .collect();
        stored(&*database.store, &hers, None).await;
        let redactions = [redaction(hers.id)];
        let store = async {
            for other in &others {
                stored(&*database.store, other, None).await;
            }
        };
        let (erased, ()) = futures::join!(erasures.redact(&redactions), store);
        assert_eq!(erased.unwrap(), [Redacted::Undelivered]);
        for other in &others {
            let text = known(&state(database, other).await).map(|(text, ..)| text);
            assert_eq!(text.unwrap_or_default(), "");
        }
    }
    let sessions = "SELECT count(*) FROM search_ratings WHERE session_id <> ''";
    assert_eq!(database.number(sessions).await, 0);
    replica.close().await;
}

/// What was clicked of a rating's query, and where.
async fn clicks(database: &TestStore, new: &NewFeedback) -> Vec<(String, i32)> {
    let query = state(database, new).await.query.map(|query| query.0);
    let query = Query::decode(query.unwrap_or_default()).unwrap();
    let clicks = query.interactions.into_iter();
    clicks.map(|click| (click.object_id, click.position)).collect()
}

/// Forgets all queries and interactions.
async fn forget_all(database: &TestStore) {
    database.advance(25 * 3_600).await;
    while database.sql().forget(100).await.unwrap() > 0 {}
    assert_eq!(
        database.number("SELECT count(*) FROM query_interactions").await,
        0
    );
}

async fn clicks_are_known_for_as_long_as_the_rating_whenever_they_come(database: &TestStore) {
    let [early, late] = ["early", "late"].map(|id| search_rated(JANE, id, Down));
    let both = |object: &str, action: &str, position: u32| {
        ["early", "late"].map(|id| acted(id, object, action, position))
    };
    record(database, &group(vec![recorded("early", "cards")], vec![])).await;
    // More than anybody would list, and the first click after them.
    for number in 0..200 {
        let hovers = both(&format!("card-{number}"), "item_hover", 0);
        record(database, &group(vec![], hovers.into())).await;
    }
    record(database, &group(vec![], both("card-150", "click", 7).into())).await;
    inserted(&*database.store, &[early.clone(), late.clone()], None).await;
    record(database, &group(vec![], both("card-1", "item_click", 1).into())).await;
    record(
        database,
        &group(vec![], both("card-1", "click_through", 4).into()),
    )
    .await;
    // The query that the rating waits for, and a click in the same group.
    record(
        database,
        &group(vec![recorded("late", "cards")], both("card-2", "click", 2).into()),
    )
    .await;
    let all = [("card-150", 7), ("card-1", 1), ("card-2", 2)].map(|(id, position)| (id.to_owned(), position));
    assert_eq!(clicks(database, &early).await, all);
    assert_eq!(clicks(database, &late).await, all);
    // One that was stored at the same moment as the rating, by transactions that did not see each other.
    database
        .execute(
            "INSERT INTO query_interactions (namespace, query_id, action, is_click, object_id, position, acted_at, recorded_at)
             SELECT namespace, query_id, 'click', 1, 'unseen', 9, acted_at + 1, recorded_at FROM query_interactions
             WHERE query_id = 'early' AND object_id = 'card-2' AND is_click = 1",
        )
        .await
        .unwrap();
    forget_all(database).await;
    assert_eq!(clicks(database, &late).await, all);
    assert_eq!(clicks(database, &early).await[..3], all);
    assert_eq!(clicks(database, &early).await[3], ("unseen".to_owned(), 9));
    // Long after the query is forgotten, too.
    record(database, &group(vec![], vec![clicked("early", "card-3")])).await;
    assert_eq!(clicks(database, &early).await.len(), 5);
}

async fn clicks_are_erased_with_the_rating_and_with_its_query(database: &TestStore) {
    let queries = vec![recorded("q1", "first"), recorded("q2", "of the same session")];
    let on_all = || ["q1", "q2"].map(|id| clicked(id, "card-1")).to_vec();
    record(database, &group(queries, on_all())).await;
    let mine = search_rated(["jane", "session-1", ""], "q1", Down);
    let [same, session] = ["q1", "q2"].map(|id| search_rated(["ken", "", ""], id, Down));
    let all = [mine, same, session];
    inserted(&*database.store, &all, None).await;
    for rating in &all {
        assert_eq!(clicks(database, rating).await, [("card-1".to_owned(), 1)]);
    }
    let erasures = database.sql();
    erasures.redact(&[redaction(all[0].id)]).await.unwrap();
    assert_eq!(
        database.number("SELECT count(*) FROM query_interactions").await,
        0
    );
    record(database, &group(vec![], on_all())).await;
    forget_all(database).await;
    for rating in &all {
        assert_eq!(clicks(database, rating).await, []);
    }
}
