//! What every database must do with ratings of search answers: how they are stored, replaced, labelled and listed.

use std::collections::BTreeSet;

use emend_core::{
    Namespace,
    search::SearchRating::{self, Down, Neutral, Up},
};
use feedback_store::{
    ports::{Labelled, RatingStore, Retracted},
    records::{
        feedback::{FeedbackQuery, NewFeedback},
        labels::{LabelChange, MAX_TAGS, Tag},
        outbox::DeliveryState,
        ratings::{ContextState, RatingFilter, RatingState},
    },
    testing::{TestStore, feedback, inserted, namespace, retraction, search_rated, stored},
};

use crate::contract::{claim_all, get, listed, orders, query};

contract! {
    a_rating_is_stored_and_delivered_to_nobody
    ; sql
    the_newer_of_two_ratings_of_a_query_replaces_the_older
    labels_are_set_and_cleared
    ratings_of_search_answers_are_listed_by_what_is_known_of_them
}

pub(super) const JANE: [&str; 3] = ["jane", "", ""];

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

pub(super) async fn state(database: &TestStore, new: &NewFeedback) -> RatingState {
    get(database, new.id).await.search_rating.expect("it is a rating")
}

async fn the_newer_of_two_ratings_of_a_query_replaces_the_older(database: &TestStore) {
    let store = &*database.store;
    let first = search_rated(JANE, "q1", Down);
    stored(store, &first, None).await;
    assert_eq!(state(database, &first).await, RatingState::pending());
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
    let store = database.sql();
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
    for (labelled, label_change) in [
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
        assert_eq!(
            store.label(&label_change).await.unwrap(),
            labelled,
            "{label_change:?}"
        );
    }
    assert!(
        !state(database, &rating).await.processed,
        "what fails changes nothing"
    );
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
    let labels = database.sql();
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
    .map(|it| it.accepted.at)
    .into();
    let with = |filter: RatingFilter| FeedbackQuery {
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
    let all = with(RatingFilter::default());
    for (asked, places) in [
        (all.clone(), &[3, 2, 1, 0][..]),
        (with(value(Down)), &[2, 0]),
        (with(value(Neutral)), &[3]),
        (with(tag("a_b")), &[0]),
        (with(tag("a-b")), &[1]),
        (with(tag("x")), &[1]),
        (with(tag("b")), &[]),
        (with(processed(true)), &[1]),
        (with(processed(false)), &[3, 2, 0]),
        (with(query_type("SEMANTIC")), &[]),
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
