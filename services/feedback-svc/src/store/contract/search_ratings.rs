//! What every database must do with ratings of search answers: how they are stored, limited, replaced, labelled and listed.

use std::{collections::BTreeSet, time::Duration};

use emend_core::{
    Caller, Namespace, RequestId,
    search::SearchRating::{self, Down, Neutral, Up},
};
use emend_proto::feedback::v1::Query;
use prost::Message as _;

use super::{
    claim_all, get, listed, orders,
    queries::{acted, clicked, group, query as recorded, record},
    query,
};

use crate::{
    corrections::feedback::{FeedbackQuery, NewFeedback, Submission},
    erasure::{store::Redacted, tests::redaction},
    outbox::entry::DeliveryState,
    ratings::{
        ContextState, LONGEST_WAIT, RatingFilter, RatingState,
        labels::{LabelChange, MAX_TAGS, Tag},
        store::{Labelled, Settled},
    },
    store::{Inserted, Retracted},
    testing::{TestStore, feedback, inserted, namespace, of, retraction, search_rated, stored},
};

contract! {
    a_rating_is_stored_and_delivered_to_nobody
    ; sql
    the_newer_of_two_ratings_of_a_query_replaces_the_older
    a_rater_who_rates_too_often_waits_over_all_replicas
    raters_are_limited_by_reporter_session_key_and_caller
    a_refused_rating_takes_no_request_id_and_a_repeated_one_is_never_refused
    what_a_rater_rated_before_counts_once_however_many_ratings_come_together
    ratings_of_one_rater_at_the_same_time_are_counted_one_by_one
    labels_are_set_and_cleared
    a_rating_takes_its_context_from_its_query_and_from_nobody_else
    a_query_that_comes_late_completes_its_ratings_and_one_that_does_not_come_is_missing
    what_is_known_of_a_query_outlives_it_and_is_erased_with_the_rating
    clicks_are_known_for_as_long_as_the_rating_whenever_they_come
    clicks_are_erased_with_the_rating_and_with_its_query
    redacting_a_rating_erases_the_copies_that_others_have_of_its_query_and_session
    a_rating_that_is_stored_while_its_query_is_erased_keeps_no_copy
    ratings_of_search_answers_are_listed_by_what_is_known_of_them
}

const JANE: [&str; 3] = ["jane", "", ""];

async fn a_rating_is_stored_and_delivered_to_nobody(database: &TestStore) {
    let (rating, other) = (search_rated(JANE, "q1", Down), feedback("a"));
    let group = [rating.clone(), other.clone(), search_rated(JANE, "q2", Up)];
    orders(&inserted(&*database.store, &group, None).await);
    let found = get(database, rating.id).await;
    assert_eq!(found.submission, rating.submission);
    assert_eq!(found.delivery, DeliveryState::Delivered);
    let claimed = claim_all(database).await;
    let events: Vec<_> = claimed.into_iter().map(|claimed| claimed.event_id).collect();
    assert_eq!(events, [other.event.id]);
    assert!(get(database, other.id).await.search_rating.is_none());

    let retracted = database.store.retract(&retraction(rating.id, "oops"), None).await;
    let Ok(Retracted::Now {
        is_delivered,
        has_reason,
        ..
    }) = retracted
    else {
        panic!("{retracted:?}");
    };
    assert!(!is_delivered && has_reason);
    let found = get(database, rating.id).await;
    assert_eq!(found.delivery, DeliveryState::Delivered);
    assert_eq!(found.retraction.unwrap().reason, "oops");
    let again = database.store.retract(&retraction(rating.id, "oops"), None).await;
    assert!(matches!(again, Ok(Retracted::Before)));
}

async fn state(database: &TestStore, new: &NewFeedback) -> RatingState {
    get(database, new.id).await.search_rating.expect("it is a rating")
}

async fn the_newer_of_two_ratings_of_a_query_replaces_the_older(database: &TestStore) {
    let store = &*database.store;
    let first = search_rated(JANE, "q1", Down);
    stored(store, &first, None).await;
    assert_eq!(state(database, &first).await, RatingState::new());
    let (other_query, other_rater) = (
        search_rated(JANE, "q2", Down),
        search_rated(["", "s", ""], "q1", Down),
    );
    // Within one group, too.
    let (second, third) = (search_rated(JANE, "q1", Neutral), search_rated(JANE, "q1", Up));
    let group = [other_query, other_rater, second, third];
    orders(&inserted(store, &group, None).await);
    assert!(state(database, &first).await.replaced);
    let [other_query, other_rater, second, third] = &group;
    for (rating, replaced) in [
        (other_query, false),
        (other_rater, false),
        (second, true),
        (third, false),
    ] {
        assert_eq!(state(database, rating).await.replaced, replaced, "{rating:?}");
    }
}

async fn a_rater_who_rates_too_often_waits_over_all_replicas(database: &TestStore) {
    let replicas = [database.replica().await, database.replica().await];
    let rate = async |number: usize| {
        let new = search_rated(JANE, &format!("q{number}"), Down);
        let store = &*replicas[number % 2];
        inserted(store, &[new], None).await.remove(0)
    };
    let is_stored = |inserted: Inserted| matches!(inserted, Inserted::Stored(_));
    for number in 0..10 {
        assert!(is_stored(rate(number).await));
        database.advance(1).await;
    }
    // The first was 10 seconds ago.
    let seconds = |wait| Inserted::TooOften(Duration::from_secs(wait));
    for number in 10..12 {
        assert_eq!(rate(number).await, seconds(50));
    }
    database.advance(50).await;
    assert!(is_stored(rate(12).await));
    assert_eq!(rate(13).await, seconds(1));
    // 89 more in this hour.
    for number in 0..89 {
        database.advance(20).await;
        assert!(is_stored(rate(number).await), "{number}");
    }
    database.advance(60).await;
    let elapsed = 60 + 89 * 20 + 60;
    assert_eq!(rate(0).await, seconds(3_600 - elapsed));
    database.advance(i64::try_from(3_600 - elapsed).unwrap()).await;
    assert!(is_stored(rate(0).await));
    assert_eq!(rate(1).await, seconds(1));
    for replica in replicas {
        replica.close().await;
    }
}

async fn raters_are_limited_by_reporter_session_key_and_caller(database: &TestStore) {
    let store = &*database.store;
    for rater in [JANE, ["", "session", ""], ["", "", "key"], ["", "", ""]] {
        let group: Vec<_> = (0..11)
            .map(|number| search_rated(rater, &format!("q{number}"), Up))
            .collect();
        let answers = inserted(store, &group, None).await;
        orders(&answers[..10]);
        assert_eq!(
            answers[10],
            Inserted::TooOften(Duration::from_mins(1)),
            "{rater:?}"
        );
    }
    let another = Submission {
        namespace: Namespace::parse("other").unwrap(),
        ..search_rated(JANE, "q1", Up).submission
    };
    stored(store, &of(another, &Caller::parse("web").unwrap()), None).await;
}

fn with_request_id(new: NewFeedback, request_id: &str) -> NewFeedback {
    let submission = Submission {
        request_id: Some(RequestId::parse(request_id).unwrap()),
        ..new.submission
    };
    of(submission, &new.caller)
}

async fn a_refused_rating_takes_no_request_id_and_a_repeated_one_is_never_refused(database: &TestStore) {
    let store = &*database.store;
    let rating = |number: usize| {
        let new = search_rated(JANE, &format!("q{number}"), Down);
        with_request_id(new, &format!("r{number}"))
    };
    let mut group: Vec<_> = (0..9).map(rating).collect();
    // The same request twice counts once.
    group.push(with_request_id(group[0].clone(), "r0"));
    group.extend([rating(9), rating(10)]);
    let answers = inserted(store, &group, None).await;
    orders(&answers[..9]);
    assert_eq!(answers[9], Inserted::Replayed(group[0].id));
    orders(&answers[10..11]);
    assert!(matches!(answers[11], Inserted::TooOften(_)));
    let again = inserted(
        store,
        &[rating(3), rating(10), rating(10), rating(11), rating(11)],
        None,
    )
    .await;
    assert_eq!(again[0], Inserted::Replayed(group[3].id));
    // One that was refused is no repetition of itself.
    assert!(
        again[1..]
            .iter()
            .all(|answer| matches!(answer, Inserted::TooOften(_))),
        "{again:?}"
    );
    database.advance(60).await;
    orders(&inserted(store, &[rating(10)], None).await);
}

async fn what_a_rater_rated_before_counts_once_however_many_ratings_come_together(database: &TestStore) {
    let store = &*database.store;
    let rated = |range: std::ops::Range<usize>| -> Vec<_> {
        range
            .map(|number| search_rated(JANE, &format!("q{number}"), Down))
            .collect()
    };
    orders(&inserted(store, &rated(0..3), None).await);
    orders(&inserted(store, &rated(3..10), None).await);
    let refused = inserted(store, &rated(10..13), None).await;
    assert!(
        refused
            .iter()
            .all(|answer| matches!(answer, Inserted::TooOften(_))),
        "{refused:?}"
    );
}

async fn ratings_of_one_rater_at_the_same_time_are_counted_one_by_one(database: &TestStore) {
    let replicas = [database.replica().await, database.replica().await];
    let each = (0..20).map(|number| {
        let store = &replicas[number % 2];
        async move {
            let new = search_rated(["", "", "k"], &format!("q{number}"), Down);
            inserted(&**store, &[new], None).await.remove(0)
        }
    });
    let answers = futures::future::join_all(each).await;
    let stored = answers
        .iter()
        .filter(|answer| matches!(answer, Inserted::Stored(_)));
    assert_eq!(stored.count(), 10);
    for replica in replicas {
        replica.close().await;
    }
}

fn tags(names: &[&str]) -> BTreeSet<Tag> {
    names.iter().map(|name| Tag::parse(name).unwrap()).collect()
}

fn change(new: &NewFeedback, set: &[&str], clear: &[&str], processed: Option<bool>) -> LabelChange {
    LabelChange {
        namespace: namespace(),
        id: new.id,
        set: tags(set),
        clear: tags(clear),
        processed,
    }
}

async fn labels_are_set_and_cleared(database: &TestStore) {
    let (rating, other) = (search_rated(JANE, "q1", Down), feedback("a"));
    inserted(&*database.store, &[rating.clone(), other.clone()], None).await;
    let store = database.store.ratings().unwrap();
    for (set, clear, processed, after) in [
        (
            &["synonym_miss", "low_recall"][..],
            &[][..],
            None,
            (&["low_recall", "synonym_miss"][..], false),
        ),
        (
            &["low_recall"],
            &["synonym_miss", "absent"],
            Some(true),
            (&["low_recall"], true),
        ),
        (&[], &[], Some(false), (&["low_recall"], false)),
    ] {
        let done = store.label(&change(&rating, set, clear, processed)).await;
        assert_eq!(done.unwrap(), Labelled::Done);
        let state = state(database, &rating).await;
        let named: Vec<_> = state.tags.iter().map(Tag::as_str).collect();
        assert_eq!((&*named, state.processed), after);
    }
    let many: Vec<_> = (0..MAX_TAGS).map(|number| format!("t{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (labelled, of) in [
        (Labelled::TooMany, change(&rating, &many, &[], Some(true))),
        (Labelled::NotARating, change(&other, &["a"], &[], None)),
        (Labelled::NotFound, change(&feedback("b"), &["a"], &[], None)),
        (
            Labelled::NotFound,
            LabelChange {
                namespace: Namespace::parse("other").unwrap(),
                ..change(&rating, &["a"], &[], None)
            },
        ),
    ] {
        assert_eq!(store.label(&of).await.unwrap(), labelled, "{of:?}");
    }
    assert!(
        !state(database, &rating).await.processed,
        "what fails changes nothing"
    );
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
        .store
        .ratings()
        .unwrap()
        .states(&[found.accepted.order])
        .await
        .unwrap();
    assert_eq!(states[&found.accepted.order], state);

    let elsewhere = Submission {
        namespace: Namespace::parse("other").unwrap(),
        ..rating.submission.clone()
    };
    let elsewhere = of(elsewhere, &rating.caller);
    stored(&*database.store, &elsewhere, None).await;
    let found = database
        .store
        .feedback(&elsewhere.submission.namespace, elsewhere.id)
        .await;
    let found = found.unwrap().unwrap();
    assert_eq!(
        found.search_rating.unwrap(),
        RatingState::new(),
        "another namespace's id gives nothing"
    );
    assert_eq!(found.submission.context, elsewhere.submission.context);
}

async fn a_query_that_comes_late_completes_its_ratings_and_one_that_does_not_come_is_missing(
    database: &TestStore,
) {
    let store = database.store.ratings().unwrap();
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
    let store_of_queries = database.store.queries().unwrap();
    let written = store_of_queries
        .record(&group(vec![recorded("q1", "late")], vec![]))
        .await
        .unwrap();
    let told: Vec<_> = written
        .rated
        .iter()
        .map(|rated| (rated.id, rated.rating))
        .collect();
    assert_eq!(told, [(late.id, Down), (twice.id, Down)]);
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

async fn what_is_known_of_a_query_outlives_it_and_is_erased_with_the_rating(database: &TestStore) {
    record(database, &group(vec![recorded("q1", "back to the hand")], vec![])).await;
    let rating = search_rated(JANE, "q1", Down);
    stored(&*database.store, &rating, None).await;
    database.advance(25 * 3_600).await;
    assert_eq!(database.store.queries().unwrap().forget(10).await.unwrap(), 1);
    assert_eq!(
        known(&state(database, &rating).await),
        Some(of_card("back to the hand"))
    );
    let erased = database
        .store
        .erasures()
        .unwrap()
        .redact(&[redaction(rating.id)])
        .await;
    assert_eq!(erased.unwrap(), [Redacted::Undelivered]);
    let state = state(database, &rating).await;
    assert_eq!((state.query, &*state.query_type), (None, "SEMANTIC"));
    let hidden =
        "UPDATE search_ratings SET processed = 1 WHERE query_id = '' AND rater IS NULL AND length(query) = 0";
    assert_eq!(database.execute(hidden).await.unwrap(), 1);
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
    while database.store.queries().unwrap().forget(100).await.unwrap() > 0 {}
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
    let erasures = database.store.erasures().unwrap();
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
    let elsewhere = of(submission, &first.caller);
    let all = [hers, first, second, third, elsewhere];
    orders(&inserted(&*database.store, &all, None).await);
    let [hers, first, second, third, _] = all;
    let copies = "SELECT count(*) FROM search_ratings WHERE session_id <> '' AND length(query) > 0";
    assert_eq!(database.number(copies).await, 5);
    // Of the queries themselves nothing is left.
    database.advance(25 * 3_600).await;
    assert_eq!(database.store.queries().unwrap().forget(10).await.unwrap(), 4);
    let erasures = database.store.erasures().unwrap();
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
    let replica = database.replica().await;
    let erasures = replica.erasures().unwrap();
    for number in 0..20 {
        let [id, jane, ken] = ["q", "jane", "ken"].map(|name| format!("{name}{number}"));
        record(database, &group(vec![recorded(&id, "hers")], vec![])).await;
        let hers = search_rated([&jane, "", ""], &id, Down);
        let others: Vec<_> = (0..3)
            .map(|of| search_rated([&format!("{ken}-{of}"), "", ""], &id, Up))
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

async fn ratings_of_search_answers_are_listed_by_what_is_known_of_them(database: &TestStore) {
    let store = &*database.store;
    let mut orders = Vec::new();
    let mut ratings = Vec::new();
    for (rater, value) in [("jane", Down), ("ken", Up), ("jane", Down), ("ken", Neutral)] {
        stored(store, &feedback("a"), None).await;
        let new = search_rated([rater, "", ""], &format!("q{}", orders.len()), value);
        orders.push(stored(store, &new, None).await);
        ratings.push(new);
        database.advance(100).await;
    }
    let labels = store.ratings().unwrap();
    labels
        .label(&change(&ratings[0], &["a_b"], &[], None))
        .await
        .unwrap();
    labels
        .label(&change(&ratings[1], &["a-b", "x"], &[], Some(true)))
        .await
        .unwrap();
    let times: Vec<_> = [
        get(database, ratings[1].id).await,
        get(database, ratings[3].id).await,
    ]
    .map(|of| of.accepted.at)
    .into();
    let of = |filter: RatingFilter| FeedbackQuery {
        search_ratings: Some(filter),
        ..query()
    };
    let value = |value: SearchRating| RatingFilter {
        value: Some(value),
        ..RatingFilter::default()
    };
    let tag = |tag: &str| RatingFilter {
        tag: Some(Tag::parse(tag).unwrap()),
        ..RatingFilter::default()
    };
    let processed = |processed| RatingFilter {
        processed: Some(processed),
        ..RatingFilter::default()
    };
    let query_type = |name: &str| RatingFilter {
        query_type: Some(name.to_owned()),
        ..RatingFilter::default()
    };
    let all = of(RatingFilter::default());
    for (asked, places) in [
        (all.clone(), &[3, 2, 1, 0][..]),
        (of(value(Down)), &[2, 0]),
        (of(value(Neutral)), &[3]),
        (of(tag("a_b")), &[0]),
        (of(tag("a-b")), &[1]),
        (of(tag("x")), &[1]),
        (of(tag("b")), &[]),
        (of(processed(true)), &[1]),
        (of(processed(false)), &[3, 2, 0]),
        (of(query_type("SEMANTIC")), &[]),
        (
            FeedbackQuery {
                reporter: Some(emend_core::ReporterId::parse("jane").unwrap()),
                ..all.clone()
            },
            &[2, 0],
        ),
        (
            FeedbackQuery {
                from: Some(times[0]),
                before: Some(times[1]),
                ..all.clone()
            },
            &[2, 1],
        ),
        (
            FeedbackQuery {
                after: Some(emend_core::AcceptOrder(orders[2])),
                limit: 1,
                ..all.clone()
            },
            &[1],
        ),
        (
            FeedbackQuery {
                delivery: Some(DeliveryState::Pending),
                ..all
            },
            &[],
        ),
    ] {
        let expected: Vec<_> = places.iter().map(|place: &usize| orders[*place]).collect();
        assert_eq!(listed(database, asked.clone()).await, expected, "{asked:?}");
    }
    assert_eq!(state(database, &ratings[0]).await.context, ContextState::Pending);
}
