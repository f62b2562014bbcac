//! The contract of stored ratings and outputs: what is asked for is what is read, however many there are.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    AcceptOrder, ContestId, FeedbackId, Kind, OutputTally, Rated, RatedId, RatedTexts, RatingClass,
    ResourceKey, ratings::VOICES, voter::VoterKey,
};
use emend_store::sql::Statement;
use jiff::Timestamp;
use uuid::Uuid;

use super::sql::{newest_outputs, of_outputs, of_voters, outputs};
use crate::SqlStore;
use crate::memory::MemoryStore;
use crate::testing::{TestDatabase, on_all_stores, on_both};
use crate::{
    Store, UnitOfWork,
    contests::fixtures::store_empty,
    outputs::{NewRating, OfClass, OfOutput, OfVoter, RatingChange, RatingWrites},
};

/// A store of which it can be told how many ratings have texts.
#[async_trait]
trait Texts: Store {
    async fn rating_texts(&self) -> i64;
}

#[async_trait]
impl Texts for SqlStore {
    async fn rating_texts(&self) -> i64 {
        let mut reader = self.reader().await.unwrap();
        let count = Statement::new("SELECT count(*) FROM rating_texts");
        reader.value(count).await.unwrap()
    }
}

#[async_trait]
impl Texts for MemoryStore {
    async fn rating_texts(&self) -> i64 {
        self.ratings_with_texts()
    }
}

fn key() -> ResourceKey {
    ResourceKey::parse("research", Some(Kind::FewShotSet), "INTERPRET", "", "").unwrap()
}

fn contest() -> ContestId {
    key().contest_id()
}

/// The output with this number: so many ratings say that it is good, so many that it is bad.
fn output(number: u32, good: u32, bad: u32) -> OutputTally {
    let mut output = OutputTally {
        good,
        bad,
        ..OutputTally::new(RatedId(Uuid::from_u128(number.into())))
    };
    if output.class().is_some() {
        let feedback = FeedbackId(Uuid::from_u128(u128::from(number) + 1));
        output.place = Some((AcceptOrder(i64::from(number)), feedback));
    }
    output
}

async fn store_outputs(store: &impl Store, outputs: Vec<OutputTally>) {
    let mut tx = locked(store).await;
    let writes = RatingWrites {
        outputs: outputs.into_iter().map(|output| (contest(), output)).collect(),
        ..RatingWrites::default()
    };
    tx.ratings().save(&writes).await.unwrap();
    tx.commit().await.unwrap();
}

/// The rating with this number: by one of 100 voters, of one of 10 outputs.
fn rated(number: u32) -> Rated {
    Rated {
        feedback: FeedbackId(Uuid::from_u128(u128::from(number) + 1)),
        accept_order: AcceptOrder(i64::from(number) + 1),
        voter: VoterKey(Uuid::from_u128(u128::from(number % 100))),
        rated: RatedId(Uuid::from_u128(u128::from(number / 100 % 10))),
        class: RatingClass::ALL[number as usize % 3],
        prompt_version: (number % 7).to_string(),
        received_at: Timestamp::from_second(i64::from(number)).unwrap(),
        excluded: false,
        live: true,
        texts: RatedTexts {
            input: format!("in {number} 日本語"),
            output: "out".into(),
            issues: vec!["\"one\"".into(), "two".into()],
            corrected: "corrected".into(),
            judgement: String::new(),
        },
    }
}

async fn locked(store: &impl Store) -> Box<dyn UnitOfWork> {
    let mut tx = store.begin().await.unwrap();
    store_empty(&mut *tx, &[&key()]).await;
    tx
}

async fn store_ratings(store: &impl Store, count: u32) {
    let mut tx = locked(store).await;
    let new = (0..count).map(|number| NewRating {
        contest: contest(),
        rated: rated(number),
    });
    let writes = RatingWrites {
        new: new.collect(),
        ..RatingWrites::default()
    };
    tx.ratings().save(&writes).await.unwrap();
    tx.commit().await.unwrap();
}

fn numbers(found: &[(ContestId, Rated)]) -> Vec<i64> {
    found.iter().map(|(_, rated)| rated.accept_order.0 - 1).collect()
}

async fn the_newest_ratings_of_an_output_and_of_a_voter_are_read_with_the_beginning_of_their_texts(
    store: impl Texts,
) {
    store_ratings(&store, 30).await;
    let mut tx = locked(&store).await;
    let ratings = tx.ratings();
    let asked = |class, limit| OfOutput {
        contest: contest(),
        rated: rated(0).rated,
        class,
        limit,
    };
    let found = ratings
        .of_outputs(&[asked(RatingClass::Good, 3), asked(RatingClass::Bad, 1)], 6)
        .await
        .unwrap();
    assert_eq!(numbers(&found), [27, 24, 21, 29]);
    let expected = Rated {
        texts: RatedTexts {
            input: "in 27 ".into(),
            output: "out".into(),
            corrected: "correc".into(),
            ..rated(27).texts
        },
        ..rated(27)
    };
    assert_eq!(found[0], (contest(), expected));
    let of_voter = OfVoter {
        contest: contest(),
        voter: rated(7).voter,
        rated: rated(7).rated,
        limit: 5,
    };
    assert_eq!(numbers(&ratings.of_voters(&[of_voter], 100).await.unwrap()), [7]);
    let known = ratings
        .known(&[rated(3).feedback, rated(999).feedback])
        .await
        .unwrap();
    assert_eq!(known.len(), 1);
    let known = &known[&rated(3).feedback];
    assert_eq!((&known.key, &known.rated.texts), (&key(), &RatedTexts::default()));
}

async fn what_is_excluded_is_found_by_its_feedback_alone_and_has_no_texts(store: impl Texts) {
    store_ratings(&store, 2).await;
    let mut tx = locked(&store).await;
    let writes = RatingWrites {
        new: vec![NewRating {
            contest: contest(),
            rated: Rated {
                excluded: true,
                live: false,
                ..rated(3)
            },
        }],
        changed: vec![RatingChange {
            feedback: rated(0).feedback,
            live: false,
            excluded: true,
        }],
        ..RatingWrites::default()
    };
    tx.ratings().save(&writes).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store.rating_texts().await, 1);
    let mut tx = locked(&store).await;
    let ratings = tx.ratings();
    let good = OfOutput {
        contest: contest(),
        rated: rated(0).rated,
        class: RatingClass::Good,
        limit: 9,
    };
    assert_eq!(ratings.of_outputs(&[good], 9).await.unwrap(), []);
    let known = ratings
        .known(&[rated(0).feedback, rated(3).feedback])
        .await
        .unwrap();
    assert!(known.len() == 2 && known.values().all(|known| known.rated.excluded));
}

async fn outputs_are_read_by_their_ids_and_the_newest_of_each_class_and_are_written_over(store: impl Texts) {
    let first = vec![output(1, 2, 1), output(2, 0, 3), output(3, 1, 1), output(4, 1, 0)];
    store_outputs(&store, first.clone()).await;
    let mut tx = locked(&store).await;
    let ratings = tx.ratings();
    let wanted: Vec<(ContestId, RatedId)> = (1..=5)
        .map(|number| (contest(), output(number, 0, 0).rated))
        .collect();
    let mut found = ratings.outputs(&wanted).await.unwrap();
    found.sort_unstable_by_key(|(_, output)| output.rated);
    let of_contest = |outputs: Vec<OutputTally>| -> Vec<(ContestId, OutputTally)> {
        outputs.into_iter().map(|output| (contest(), output)).collect()
    };
    assert_eq!(found, of_contest(first));
    let asked = |class, limit| OfClass {
        contest: contest(),
        class,
        limit,
    };
    let newest = [asked(RatingClass::Good, 1), asked(RatingClass::Bad, 9)];
    let found = ratings.newest_outputs(&newest).await.unwrap();
    assert_eq!(found, of_contest(vec![output(4, 1, 0), output(2, 0, 3)]));
    drop(tx);
    store_outputs(&store, vec![output(4, 1, 2), output(2, 1, 1)]).await;
    let mut tx = locked(&store).await;
    let found = tx.ratings().newest_outputs(&newest).await.unwrap();
    assert_eq!(found, of_contest(vec![output(1, 2, 1), output(4, 1, 2)]));
}

async fn ten_thousand_ratings_of_an_output_or_outputs_of_a_target_cost_no_more_to_decide_on_than_ten(
    database: TestDatabase,
) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    store_ratings(&store, 10_000).await;
    store_outputs(&store, (0..10_000).map(|number| output(number, 1, 0)).collect()).await;
    let contests = HashMap::from([(contest(), 1_i64)]);
    let of_output = [(RatingClass::Good, 2), (RatingClass::Bad, VOICES + 1)].map(|(class, limit)| OfOutput {
        contest: contest(),
        rated: rated(7).rated,
        class,
        limit,
    });
    let by_output = store.plan(of_outputs(&of_output, &contests, 2_000)).await;
    let voter = OfVoter {
        contest: contest(),
        voter: rated(7).voter,
        rated: rated(7).rated,
        limit: 2,
    };
    let by_voter = store.plan(of_voters(&[voter], &contests, 2_000)).await;
    let newest = [RatingClass::Good, RatingClass::Bad].map(|class| OfClass {
        contest: contest(),
        class,
        limit: 6,
    });
    let by_class = store.plan(newest_outputs(&newest, &contests)).await;
    let by_key = store
        .plan(outputs(&[(contest(), rated(7).rated)], &contests))
        .await;
    // Found by an index in the order that is asked for: nothing is sorted, so reading ends at the limit.
    for (plan, indexes) in [
        (by_output, &["ratings_of_output"][..]),
        (by_voter, &["ratings_by_voter"]),
        (by_class, &["rated_outputs_by_class"]),
        (by_key, &["rated_outputs_pkey", "PRIMARY KEY"]),
    ] {
        assert!(indexes.iter().any(|index| plan.contains(index)), "{plan}");
        assert!(!plan.contains("Sort") && !plan.contains("TEMP B-TREE"), "{plan}");
        let scans = ["SCAN r", "SCAN o", "Seq Scan"];
        assert!(!scans.iter().any(|scan| plan.contains(scan)), "{plan}");
    }
    let mut tx = locked(&store).await;
    let ratings = tx.ratings();
    let found = ratings.of_outputs(&of_output, 2_000).await.unwrap();
    assert_eq!(found.len(), 2 + 17);
    let found = ratings.newest_outputs(&newest).await.unwrap();
    assert_eq!(found.len(), 6);
}

on_all_stores! {
    the_newest_ratings_of_an_output_and_of_a_voter_are_read_with_the_beginning_of_their_texts,
    what_is_excluded_is_found_by_its_feedback_alone_and_has_no_texts,
    outputs_are_read_by_their_ids_and_the_newest_of_each_class_and_are_written_over,
}

mod plans {
    use super::*;

    on_both! {
        ten_thousand_ratings_of_an_output_or_outputs_of_a_target_cost_no_more_to_decide_on_than_ten,
    }
}
