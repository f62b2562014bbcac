//! The statistics of random ratings are what anybody computes from their export, on both databases.

use std::collections::BTreeMap;

use emend_base::Entropy;
use emend_core::search::SearchRating;
use feedback_store::{
    ports::{ErasureStore, RatingStore},
    records::{
        feedback::{FeedbackQuery, NewFeedback},
        labels::{LabelChange, Tag},
        ratings::RatingFilter,
        stats::{Compared, Dimension, Share, StatsFilter},
    },
    testing::{TestStore, inserted, namespace, retraction, search_rated},
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::{
    contract::{
        queries::{group, on_both, query as recorded, record},
        query,
    },
    erasure::tests::redaction,
    ratings::{
        LONGEST_WAIT, Ratings,
        export::{Export, Format},
    },
    testing::{queries, ratings},
};

on_both! {
    statistics_are_what_is_recomputed_from_the_export
}

/// Counts of ratings of one name: all, negative, positive.
type Counts = (u64, u64, u64);

/// Draws what happens.
struct Chance(Entropy);

impl Chance {
    fn below(&self, bound: usize) -> usize {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small numbers"
        )]
        let drawn = (self.0.fraction() * bound as f64) as usize;
        drawn.min(bound - 1)
    }

    fn of<'a>(&self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn once_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// What was recorded of a query: when, and under which names, in the order of [`Dimension::ALL`] without the week.
type Recorded = (Timestamp, [String; 4]);

/// Ratings and queries of some weeks, with everything that can become of them. Returns the queries.
async fn record_weeks(database: &TestStore, chance: &Chance) -> Vec<Recorded> {
    let (store, labels) = (&*database.store, database.sql());
    let erasures = database.sql();
    let mut now: Timestamp = "2026-01-04T20:00:00Z".parse().unwrap();
    let mut all: Vec<NewFeedback> = Vec::new();
    let mut recordings = Vec::new();
    for number in 0..80 {
        now += jiff::SignedDuration::from_secs(i64::try_from(chance.below(60_000)).unwrap());
        database.set_clock(now).await;
        let id = format!("q{number}");
        let mut asked = recorded(&id, "cards");
        asked.query_type = chance.of(&["SEMANTIC", "HYBRID", "GREETING", ""]).into();
        asked.embedding_version = chance.of(&["e5", "e6"]).into();
        asked.index_version = chance.of(&["7", "8", ""]).into();
        asked.variant = chance.of(&["A", "B", "B", ""]).into();
        asked.session_id = format!("s{}", chance.below(20));
        let names = [
            &asked.query_type,
            &asked.embedding_version,
            &asked.index_version,
            &asked.variant,
        ]
        .map(Clone::clone);
        let mut searched = group(vec![asked], vec![]);
        searched.queries[0].0.at = Some(now);
        // Recorded before the ratings, while they wait, or never.
        let when = chance.below(4);
        if when < 2 {
            record(database, &searched).await;
        }
        let ratings: Vec<_> = (0..chance.below(6))
            .map(|_| {
                // At times of an earlier query, and of one person twice.
                let query = if chance.once_in(5) {
                    chance.below(number + 1)
                } else {
                    number
                };
                let rater = format!("r{}", chance.below(8));
                let session = format!("s{}", chance.below(20));
                let value = [SearchRating::Down, SearchRating::Neutral, SearchRating::Up][chance.below(3)];
                search_rated([&rater, &session, ""], &format!("q{query}"), value)
            })
            .collect();
        inserted(store, &ratings, None).await;
        all.extend(ratings);
        if when == 2 {
            record(database, &searched).await;
        }
        if when < 3 {
            recordings.push((now, names));
        }
        if all.is_empty() {
            continue;
        }
        let any = &all[chance.below(all.len())];
        let chosen = chance.below(6);
        if chosen == 0 {
            erasures.redact(&[redaction(any.id)]).await.unwrap();
        } else if chosen == 1 {
            store.retract(&retraction(any.id, "a slip"), None).await.unwrap();
        } else if chosen < 4 {
            let labels_set = LabelChange {
                namespace: namespace(),
                id: any.id,
                set: [Tag::parse("low_recall").unwrap()].into(),
                clear: [].into(),
                processed: Some(chance.once_in(2)),
            };
            labels.label(&labels_set).await.unwrap();
        }
    }
    database.advance(60).await;
    labels.settle_contexts(LONGEST_WAIT, 1_000).await.unwrap();
    recordings
}

/// The exported ratings, as whoever gets them reads them.
async fn exported(ratings: &Ratings, filter: &StatsFilter) -> Vec<Value> {
    let export = Export {
        query: FeedbackQuery {
            search_ratings: Some(RatingFilter {
                query_type: filter.query_type.clone(),
                only_counting: true,
                ..RatingFilter::default()
            }),
            from: filter.from,
            before: filter.before,
            ..query()
        },
        format: Format::Jsonl,
        mark_processed: false,
    };
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let part = ratings.export(&export, after).await.unwrap();
        rows.extend(part.text.lines().map(|line| serde_json::from_str(line).unwrap()));
        after = part.last;
        if !part.more {
            return rows;
        }
    }
}

/// The Monday of the week of a time, in UTC.
fn monday(at: Timestamp) -> String {
    let date = at.to_zoned(TimeZone::UTC).date();
    let days = i64::from(date.weekday().to_monday_zero_offset());
    date.checked_sub(jiff::Span::new().days(days))
        .unwrap()
        .to_string()
}

fn name(row: &Value, dimension: Dimension) -> String {
    let text = |field: &str| row[field].as_str().unwrap().to_owned();
    match dimension {
        Dimension::Week => monday(text("receivedAt").parse().unwrap()),
        Dimension::QueryType => text("queryType"),
        Dimension::EmbeddingVersion => text("embeddingVersion"),
        Dimension::IndexVersion => text("indexVersion"),
        Dimension::Variant => text("variant"),
    }
}

fn counted<'a>(rows: impl Iterator<Item = &'a Value>) -> Counts {
    let mut counts = (0, 0, 0);
    for row in rows {
        counts.0 += 1;
        counts.1 += u64::from(row["rating"] == -1);
        counts.2 += u64::from(row["rating"] == 1);
    }
    counts
}

/// Queries by name that were searched on the days of the period.
fn searched(recordings: &[Recorded], filter: &StatsFilter, place: usize) -> BTreeMap<String, u64> {
    let day = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
    let mut counts = BTreeMap::new();
    for (at, names) in recordings {
        let is_asked_for = filter.from.is_none_or(|from| day(from) <= day(*at))
            && filter
                .before
                .is_none_or(|before| day(*at) <= day(before - jiff::SignedDuration::from_micros(1)))
            && filter.query_type.as_ref().is_none_or(|it| *it == names[0]);
        if is_asked_for {
            let name = if place == 0 {
                monday(*at)
            } else {
                names[place - 1].clone()
            };
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

/// The ends of Wilson's interval are the shares that lie 1.96 of their own deviations from the one observed: the roots of
/// (n + z²) p² − (2 n s + z²) p + n s² = 0.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn ends((ratings, negative, _): Counts) -> (f64, f64) {
    let (n, share, z) = (ratings as f64, negative as f64 / ratings as f64, 1.959_964_f64);
    let square = n + z * z;
    let middle = (2.0 * n * share + z * z) / (2.0 * square);
    let half = (middle * middle - n * share * share / square).sqrt();
    (middle - half, middle + half)
}

/// The p-value of two shares being equal: the area of the normal distribution beyond their distance, by Simpson's rule.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn p_value(one: Counts, other: Counts) -> f64 {
    let (n, m) = (one.0 as f64, other.0 as f64);
    let pooled = (one.1 + other.1) as f64 / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    let distance = ((one.1 as f64 / n - other.1 as f64 / m) / deviation).abs();
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (steps, width) = (2_000_u32, distance / 2_000.0);
    let within: f64 = (0..=steps)
        .map(|step| {
            let weight = match step {
                0 | 2_000 => 1.0,
                step if step % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density(f64::from(step) * width)
        })
        .sum::<f64>()
        * width
        / 3.0;
    1.0 - 2.0 * within
}

fn counts_of(share: &Share) -> Counts {
    (share.ratings, share.negative, share.positive)
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

async fn statistics_are_what_is_recomputed_from_the_export(database: &TestStore) {
    let seed = std::env::var("EMEND_TEST_SEED").map_or(20_260_104, |seed| seed.parse().unwrap());
    println!("EMEND_TEST_SEED={seed}");
    let recordings = record_weeks(database, &Chance(Entropy::seeded(seed))).await;
    let all = StatsFilter {
        namespace: namespace(),
        from: None,
        before: None,
        query_type: None,
    };
    let time = |at: &str| Some(at.parse::<Timestamp>().unwrap());
    let (queries, ratings) = (queries(database), ratings(database));
    let mut least = usize::MAX;
    for filter in [
        all.clone(),
        StatsFilter {
            query_type: Some("SEMANTIC".into()),
            ..all.clone()
        },
        StatsFilter {
            from: time("2026-01-10T12:34:56.7890001Z"),
            before: time("2026-01-24T00:00:00Z"),
            ..all
        },
    ] {
        let compared = Compared {
            by: Dimension::Variant,
            one: "A".into(),
            other: "B".into(),
        };
        let stats = queries.stats(&filter, Some(&compared)).await.unwrap();
        let rows = exported(&ratings, &filter).await;
        least = least.min(rows.len());
        assert_eq!(counts_of(&stats.total), counted(rows.iter()));
        for (place, dimension) in Dimension::ALL.into_iter().enumerate() {
            let mut names: BTreeMap<String, (Counts, u64)> = BTreeMap::new();
            for row in &rows {
                let name = name(row, dimension);
                let of_name = rows.iter().filter(|row| self::name(row, dimension) == name);
                names.entry(name.clone()).or_default().0 = counted(of_name);
            }
            for (name, queries) in searched(&recordings, &filter, place) {
                names.entry(name).or_default().1 = queries;
            }
            let reported = stats.by[&dimension].iter();
            let reported: BTreeMap<_, _> = reported
                .map(|share| (share.name.clone(), (counts_of(share), share.queries)))
                .collect();
            assert_eq!(reported, names, "{dimension:?} of {filter:?}");
            for share in &stats.by[&dimension] {
                let Some((negative, interval)) = share.interval() else {
                    assert_eq!(share.ratings, 0);
                    continue;
                };
                let (low, high) = ends(counts_of(share));
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let observed = share.negative as f64 / share.ratings as f64;
                assert!(near(negative, observed));
                assert!(near(interval.low, low) && near(interval.high, high), "{share:?}");
            }
        }
        let counts = |variant: &str| counted(rows.iter().filter(|row| row["variant"] == variant));
        let comparison = stats.comparison.unwrap();
        let p = p_value(counts("A"), counts("B"));
        assert!(near(comparison.p_value.unwrap(), p), "{comparison:?}, {p}");
    }
    assert!(least >= 20, "too few ratings to say anything: {least}");
}
