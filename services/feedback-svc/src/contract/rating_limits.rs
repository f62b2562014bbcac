//! What every database must do with ratings of somebody who rates too often.

use std::time::Duration;

use emend_core::{
    Caller, Namespace, RequestId,
    search::SearchRating::{Down, Up},
};
use feedback_store::{
    ports::Inserted,
    records::feedback::{NewFeedback, Submission},
    testing::{TestStore, inserted, new_feedback, search_rated, stored},
};

use crate::contract::{orders, queries::on_both, search_ratings::JANE};

on_both! {
    a_rater_who_rates_too_often_waits_over_all_replicas
    a_replacement_within_five_minutes_counts_apart_over_all_replicas
    raters_are_limited_by_reporter_session_key_and_caller
    a_refused_rating_takes_no_request_id_and_a_repeated_one_is_never_refused
    what_a_rater_rated_before_counts_once_however_many_ratings_come_together
    ratings_of_one_rater_at_the_same_time_are_counted_one_by_one
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
        assert!(is_stored(rate(100 + number).await), "{number}");
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

async fn a_replacement_within_five_minutes_counts_apart_over_all_replicas(database: &TestStore) {
    let replicas = [database.replica().await, database.replica().await];
    let rate = async |replica: usize, number: usize| {
        let new = search_rated(JANE, &format!("q{number}"), Down);
        inserted(&*replicas[replica], &[new], None).await.remove(0)
    };
    let is_stored = |inserted: Inserted| matches!(inserted, Inserted::Stored(_));
    for number in 0..10 {
        assert!(is_stored(rate(0, number).await));
    }
    let in_a_minute = Inserted::TooOften(Duration::from_mins(1));
    assert_eq!(rate(1, 10).await, in_a_minute);
    for number in 0..10 {
        assert!(is_stored(rate(1, number).await), "it replaces one");
    }
    assert_eq!(rate(0, 0).await, in_a_minute, "more replacements than ratings");
    // Ten replacements have passed by; each rating after five minutes is one more.
    database.advance(301).await;
    for number in 0..10 {
        assert!(is_stored(rate(number % 2, number).await));
    }
    assert_eq!(rate(1, 10).await, in_a_minute);
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
    stored(
        store,
        &new_feedback(another, &Caller::parse("web").unwrap()),
        None,
    )
    .await;
}

fn with_request_id(new: NewFeedback, request_id: &str) -> NewFeedback {
    let submission = Submission {
        request_id: Some(RequestId::parse(request_id).unwrap()),
        ..new.submission
    };
    new_feedback(submission, &new.caller)
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
