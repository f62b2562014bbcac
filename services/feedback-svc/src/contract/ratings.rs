//! What every store must do with ratings: how they are listed.

use feedback_store::{
    records::feedback::FeedbackQuery,
    testing::{TestStore, feedback, rated, stored},
};
use jiff::{SignedDuration, Timestamp, ToSpan, civil::Date};

use crate::{
    contract::{listed, query},
    corrections::day,
};

contract! {
    ratings_are_listed_by_target_and_value
    ; sql
    a_day_has_exactly_its_ratings_wherever_it_is
    ratings_are_found_by_an_index_whatever_is_asked
}

fn rated_so(target: &str, rating: &str) -> FeedbackQuery {
    FeedbackQuery {
        target: Some(target.to_owned()),
        rating: (!rating.is_empty()).then(|| rating.to_owned()),
        ..query()
    }
}

async fn ratings_are_listed_by_target_and_value(database: &TestStore) {
    let mut orders = Vec::new();
    for new in [
        rated("INTERPRET", "GOOD"),
        feedback("a"),
        rated("interpret", "GOOD"),
        rated("INTERPRET", "BAD"),
        rated("TRIAGE", "GOOD"),
        rated("INTERPRET", "GOOD"),
    ] {
        orders.push(stored(&*database.store, &new, None).await);
    }
    let at = |places: &[usize]| places.iter().map(|place| orders[*place]).collect::<Vec<_>>();
    assert_eq!(listed(database, rated_so("INTERPRET", "")).await, at(&[5, 3, 0]));
    assert_eq!(listed(database, rated_so("INTERPRET", "GOOD")).await, at(&[5, 0]));
    assert_eq!(listed(database, rated_so("INTERPRET", "good")).await, [0; 0]);
    assert_eq!(listed(database, rated_so("TRIAGE", "")).await, at(&[4]));
    let kind = Some(emend_core::Kind::FewShotSet);
    assert_eq!(
        listed(database, FeedbackQuery { kind, ..query() }).await,
        at(&[5, 4, 3, 2, 0])
    );
    let behind = FeedbackQuery {
        kind,
        after: Some(emend_core::AcceptOrder(orders[5])),
        limit: 1,
        ..rated_so("INTERPRET", "")
    };
    assert_eq!(listed(database, behind).await, at(&[3]));
    let of_other_kind = FeedbackQuery {
        kind: Some(emend_core::Kind::InvocationPhrase),
        ..rated_so("INTERPRET", "")
    };
    assert_eq!(listed(database, of_other_kind).await, [0; 0]);
}

/// The days to look at: with and without a change of the clocks, which may skip or repeat midnight.
const DAYS: [(&str, &str); 7] = [
    ("2026-03-01", "Asia/Tokyo"),
    ("2026-03-08", "America/New_York"),
    ("2026-11-01", "America/New_York"),
    ("2018-11-04", "America/Sao_Paulo"),
    ("2018-02-17", "America/Sao_Paulo"),
    ("2018-02-18", "America/Sao_Paulo"),
    ("2025-11-02", "America/Havana"),
];

async fn a_day_has_exactly_its_ratings_wherever_it_is(database: &TestStore) {
    for (date, name) in DAYS {
        let (date, zone): (Date, _) = (day::date(date).unwrap(), day::time_zone(name).unwrap());
        let (from, before) = day::bounds(date, &zone).unwrap();
        let target = format!("{date} {name}");
        // Each hour of three days and more, and the microseconds around both ends.
        let hours = (-30..60).map(|hours| from + SignedDuration::from_hours(hours));
        let ends = [from, before].map(|end| [end - 1.microsecond(), end]);
        let mut times: Vec<Timestamp> = hours.chain(ends.into_iter().flatten()).collect();
        times.sort_unstable();
        times.dedup();
        let mut expected = Vec::new();
        for at in times {
            database.set_clock(at).await;
            let order = stored(&*database.store, &rated(&target, "BAD"), None).await;
            if at.to_zoned(zone.clone()).date() == date {
                expected.insert(0, order);
            }
        }
        let asked = FeedbackQuery {
            from: Some(from),
            before: Some(before),
            limit: 1_000,
            ..rated_so(&target, "BAD")
        };
        assert_eq!(listed(database, asked.clone()).await, expected, "{date} {name}");
        // Page by page it is the same.
        let mut paged = Vec::new();
        loop {
            let page = FeedbackQuery {
                after: paged.last().map(|last| emend_core::AcceptOrder(*last)),
                limit: 7,
                ..asked.clone()
            };
            let page = listed(database, page).await;
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, expected, "{date} {name}");
    }
}

async fn ratings_are_found_by_an_index_whatever_is_asked(database: &TestStore) {
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    database.set_clock(now).await;
    for number in 0..30 {
        stored(&*database.store, &feedback(&number.to_string()), None).await;
    }
    for new in [
        rated("INTERPRET", "GOOD"),
        rated("INTERPRET", "BAD"),
        rated("TRIAGE", "RIGHT"),
    ] {
        stored(&*database.store, &new, None).await;
    }
    database.multiply(1_000).await;
    let day = |query: FeedbackQuery| FeedbackQuery {
        from: Some(now + SignedDuration::from_secs(500)),
        before: Some(now + SignedDuration::from_secs(550)),
        ..query
    };
    let ratings = FeedbackQuery {
        kind: Some(emend_core::Kind::FewShotSet),
        ..query()
    };
    for (asked, index) in [
        (rated_so("INTERPRET", ""), "ratings_by_target"),
        (rated_so("INTERPRET", "BAD"), "ratings_by_value"),
        (day(ratings), "ratings_by_time"),
        (day(rated_so("INTERPRET", "")), "ratings_by_time"),
        (day(rated_so("INTERPRET", "BAD")), "ratings_by_time"),
    ] {
        for after in [None, Some(emend_core::AcceptOrder(i64::MAX))] {
            let asked = FeedbackQuery {
                after,
                ..asked.clone()
            };
            let plan = database.plan(&asked).await;
            assert!(plan.contains(index), "{asked:?}\n{plan}");
        }
    }
}
