//! The contract of what is read of ratings for prompts: by an index, however many there are of other targets.

use emend_base::Entropy;
use emend_core::{
    AcceptOrder, Candidate, FeedbackId, Kind, Learned, Namespace, OutputTally, Prompt, Rated, RatedId,
    RatedTexts, RatingClass, ResourceKey, ResourceValue, Status,
    candidate::{Proposed, Verdict},
    voter::VoterKey,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    SqlStore, Store as _, begin_installation,
    contests::{
        Named, fixtures,
        sql::{live_candidates, named_candidate},
    },
    outputs::{
        NewRating, RatingWrites,
        improvements::{Arrival, CurrentVersion, OutputStore as _},
        improvements_sql::{
            by_version, counted, counted_for, current_prompts, following, newest, newest_for, newest_of,
            targets_after, version_value, versions,
        },
    },
    testing::{TestDatabase, on_both},
};

/// Versions of a prompt.
const VERSIONS: u32 = 120;
/// Targets, and ratings of each.
const TARGETS: u32 = 40;
const RATINGS: u32 = 250;

fn key(kind: Kind, target: u32) -> ResourceKey {
    let label = if kind == Kind::Prompt { "production" } else { "" };
    ResourceKey::parse("research", Some(kind), &format!("T{target}"), label, "").unwrap()
}

fn rated(target: u32, number: u32) -> Rated {
    let unique = u128::from(target * RATINGS + number) + 1;
    Rated {
        feedback: FeedbackId(Uuid::from_u128(unique)),
        accept_order: AcceptOrder(i64::from(number) + 1),
        voter: VoterKey(Uuid::from_u128(unique)),
        rated: RatedId(Uuid::from_u128(unique)),
        class: RatingClass::ALL[number as usize % 3],
        prompt_version: (number % 150).to_string(),
        received_at: Timestamp::from_second(i64::from(number)).unwrap(),
        excluded: false,
        live: true,
        texts: RatedTexts {
            input: "in".into(),
            ..RatedTexts::default()
        },
    }
}

async fn stored(database: TestDatabase) -> Option<(SqlStore, impl Sized)> {
    let (store, guard) = database.open().await?;
    let mut tx = store.begin().await.unwrap();
    for target in 0..TARGETS {
        let keys = [key(Kind::FewShotSet, target), key(Kind::Prompt, target)];
        let keys: Vec<&ResourceKey> = keys.iter().collect();
        fixtures::store_empty(&mut *tx, &keys).await;
        let contest = key(Kind::FewShotSet, target).contest_id();
        let new = (0..RATINGS).map(|number| NewRating {
            contest,
            rated: rated(target, number),
        });
        let outputs = (0..RATINGS)
            .map(|number| rated(target, number))
            .filter(|rated| rated.class != RatingClass::Neutral)
            .map(|rated| {
                let output = OutputTally {
                    good: u32::from(rated.class == RatingClass::Good),
                    bad: u32::from(rated.class == RatingClass::Bad),
                    place: Some(rated.place()),
                    ..OutputTally::new(rated.rated)
                };
                (contest, output)
            });
        let writes = RatingWrites {
            new: new.collect(),
            outputs: outputs.collect(),
            ..RatingWrites::default()
        };
        tx.ratings().save(&writes).await.unwrap();
    }
    tx.commit().await.unwrap();
    Some((store, guard))
}

async fn what_is_counted_and_read_of_a_target_is_found_by_an_index(database: TestDatabase) {
    let Some((store, _guard)) = stored(database).await else {
        return;
    };
    let window = key(Kind::FewShotSet, 7).contest_id();
    let prompt = key(Kind::Prompt, 7);
    let wanted = RatingClass::ALL.map(|class| (class, 5));
    let all = RatingClass::ALL;
    let after = Some((AcceptOrder(3), FeedbackId(Uuid::nil())));
    let namespace = Namespace::parse("research").unwrap();
    let version = CurrentVersion {
        number: 7,
        since: Arrival(20),
    };
    for (query, index) in [
        (newest(prompt.contest_id()), "improvements"),
        (counted(window, Arrival(20)), "ratings_arrived"),
        (by_version(window, 100), "ratings_by_version"),
        (counted_for(window, version), "ratings_by_version"),
        (newest_for(window, version, &wanted), "ratings_by_version"),
        (targets_after(&namespace, "A", 20), "contests_of_outputs"),
        (newest_of(window, Arrival(20), &wanted), "ratings_arrived"),
        (following(window, &all, after, 32), "rated_outputs_by_class"),
        (versions(&prompt, Some(9), None, 20), "contests_by_key"),
        (
            current_prompts(&namespace, "production", 0, 100),
            "contests_of_prompts",
        ),
    ] {
        let plan = store.plan(query).await;
        assert!(plan.contains(index), "{index}: {plan}");
        let scans = |step: &str| step.contains("Seq Scan on ratings") || step.contains("SCAN r");
        assert!(!plan.lines().any(scans), "{plan}");
    }
}

async fn ratings_are_counted_by_version_and_read_in_their_order(database: TestDatabase) {
    let Some((store, _guard)) = stored(database).await else {
        return;
    };
    let window = key(Kind::FewShotSet, 3).contest_id();
    let stats = store.version_stats(window, 100).await.unwrap();
    assert_eq!(stats.len(), 100);
    let newest = &stats[0];
    assert_eq!(newest.prompt_version, "99");
    assert_eq!((newest.first.as_second(), newest.last.as_second()), (99, 249));
    assert_eq!(
        (newest.counts.good, newest.counts.neutral, newest.counts.bad),
        (2, 0, 0)
    );
    // The ratings of each target arrived after those of the one before it.
    let after = Arrival(i64::from(3 * RATINGS) + 247);
    let counts = store.count_ratings(window, after).await.unwrap();
    assert_eq!((counts.good, counts.neutral, counts.bad), (1, 1, 1));
    let orders = |rated: &[Rated]| -> Vec<i64> { rated.iter().map(|of| of.accept_order.0).collect() };
    let wanted = [(RatingClass::Good, 2), (RatingClass::Bad, 1)];
    let newest = store.newest_ratings(window, &wanted).await.unwrap();
    assert_eq!(orders(&newest), [250, 249, 247]);
    assert_eq!(newest[0].texts.input, "in");
    let classes = [RatingClass::Good, RatingClass::Bad];
    let mut after = None;
    let mut read = Vec::new();
    loop {
        let page = store.outputs_after(window, &classes, after, 7).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = last.place;
        for (output, ratings) in &page {
            let [rated] = &ratings[..] else {
                panic!("{output:?} {ratings:?}")
            };
            assert_eq!((Some(rated.place()), &*rated.texts.input), (output.place, "in"));
            read.push(rated.accept_order.0);
        }
    }
    let expected: Vec<i64> = (1..=250).filter(|order| (order - 1) % 3 != 1).collect();
    assert_eq!(read, expected);
}

async fn a_decision_on_a_prompt_reads_what_is_current_and_open_however_many_versions_there_are(
    database: TestDatabase,
) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    begin_installation(&store, &Entropy::system()).await.unwrap();
    let prompt = key(Kind::Prompt, 7);
    let versions = (1..=VERSIONS).map(|number| {
        let text = format!("Version {number}. {}", "x".repeat(2_000));
        let said = Learned::Prompt(Prompt::new(&text, vec![], vec![]).unwrap());
        let value = ResourceValue::new("T7", said);
        let current = number == VERSIONS;
        let candidate = Candidate {
            id: value.candidate_id(prompt.contest_id()),
            status: if current {
                Status::Applied
            } else {
                Status::Superseded
            },
            proposal: Some(Proposed {
                version: number,
                base: number - 1,
                verdict: Verdict::Approved,
                decided_at: Some(Timestamp::UNIX_EPOCH),
            }),
            ..fixtures::put(&prompt, value)
        };
        fixtures::write(&prompt, candidate, 1)
    });
    let versions: Vec<_> = versions.collect();
    let mut tx = store.begin().await.unwrap();
    fixtures::store_empty(&mut *tx, &[&prompt]).await;
    tx.contests().save_candidates(&versions, &[]).await.unwrap();
    tx.commit().await.unwrap();
    let contest = prompt.contest_id();
    let mut tx = store.begin().await.unwrap();
    let locked = tx.contests().lock(&[&prompt]).await.unwrap();
    let read = tx.contests().load(locked).await.unwrap().remove(0).state;
    let number = |of: &Candidate| of.proposal.map(|kept| kept.version);
    let numbers: Vec<_> = read.candidates.iter().map(number).collect();
    assert_eq!(numbers, [Some(VERSIONS)]);
    let named = tx.contests().named(contest, Named::Version(3)).await.unwrap();
    let third = named.unwrap().0;
    assert_eq!(number(&third), Some(3));
    let named = tx
        .contests()
        .named(contest, Named::Candidate(third.id))
        .await
        .unwrap();
    assert_eq!(named.unwrap().0, third);
    let none = tx.contests().named(contest, Named::Version(VERSIONS + 1)).await;
    assert_eq!(none.unwrap(), None);
    drop(tx);
    for (query, index) in [
        // By their statuses, whatever each database calls that index.
        (live_candidates(&[1]), "candidates_"),
        (named_candidate(1, Named::Version(3)), "candidates_by_version"),
        (version_value(contest, 3), "candidates_by_version"),
    ] {
        let plan = store.plan(query).await;
        assert!(plan.contains(index), "{index}: {plan}");
        assert!(plan.contains("status") || plan.contains("version"), "{plan}");
    }
}

on_both! {
    what_is_counted_and_read_of_a_target_is_found_by_an_index,
    ratings_are_counted_by_version_and_read_in_their_order,
    a_decision_on_a_prompt_reads_what_is_current_and_open_however_many_versions_there_are,
}
