//! What awaits review is listed by votes and by controversy, page by page, and by indexes.

use emend_core::{Candidate, Kind, Learned, Namespace, ResourceKey, ResourceValue, Status, decide::Cause};
use jiff::Timestamp;

use super::{
    CandidateFilter, CandidateOrder, CandidatePosition, Listing, TransitionWrite, fixtures,
    lists_sql::{listed, waiting_in},
};
use crate::{
    Store,
    actor::Actor,
    testing::{TestDatabase, on_all_stores, on_both},
};

fn key(phrase: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), phrase, "", "").unwrap()
}

/// Writes the candidate of a phrase, which moves from one status to another.
async fn write(store: &impl Store, phrase: &str, (from, to): (Option<Status>, Status), figures: (u64, i64)) {
    let key = key(phrase);
    let value = ResourceValue::new(phrase, Learned::Entity("job description".to_owned()));
    let candidate = Candidate {
        status: to,
        reporters: figures.0,
        net: figures.1,
        ..fixtures::put(&key, value)
    };
    let mut tx = store.begin().await.unwrap();
    fixtures::store_empty(&mut *tx, &[&key]).await;
    let locked = tx.contests().lock(&[&key]).await.unwrap();
    tx.contests().load(locked).await.unwrap();
    let transition = TransitionWrite {
        candidate: candidate.id,
        sequence: i64::from(from.is_some()),
        from,
        to,
        cause: Cause::Votes,
        reason: String::new(),
        actor: Actor::caller(emend_core::Caller::anonymous()),
        at: Timestamp::UNIX_EPOCH,
        revision: emend_core::Revision::default(),
        policy_version: 0,
    };
    let moved: Vec<_> = (from != Some(to))
        .then(|| (key.contest_id(), transition))
        .into_iter()
        .collect();
    let write = fixtures::write(&key, candidate, i64::try_from(figures.0).unwrap());
    tx.contests().save_candidates(&[write], &moved).await.unwrap();
    tx.commit().await.unwrap();
}

fn waiting() -> CandidateFilter {
    CandidateFilter {
        reviewed: crate::contests::Involvement::default(),
        namespace: Namespace::parse("fund-admin").unwrap(),
        kinds: Vec::new(),
        statuses: vec![Status::AwaitingReview],
        keys: Vec::new(),
        user: None,
    }
}

async fn phrases(store: &impl Store, order: CandidateOrder) -> Vec<String> {
    let listing = Listing {
        order,
        ..Listing::default()
    };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .list_candidates(&waiting(), &listing, after, 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { return found };
        after = Some(CandidatePosition::by(order, last));
        found.extend(page.iter().map(|record| record.key.key.as_str().to_owned()));
    }
}

async fn what_awaits_review_is_listed_by_votes_and_by_controversy(store: impl Store) {
    let epoch = emend_core::Epoch(uuid::Uuid::from_u128(1));
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store.create_head(epoch, installation).await.unwrap();
    let waits = (None, Status::AwaitingReview);
    for (phrase, figures) in [
        ("few", (2, 2)),
        ("close", (5, -1)),
        ("clear", (7, 4)),
        ("decided", (9, 0)),
    ] {
        write(&store, phrase, waits, figures).await;
    }
    write(&store, "gathers", (None, Status::Pending), (8, 1)).await;
    // Another vote comes, and one is decided.
    write(
        &store,
        "few",
        (Some(Status::AwaitingReview), Status::AwaitingReview),
        (6, 6),
    )
    .await;
    write(
        &store,
        "decided",
        (Some(Status::AwaitingReview), Status::Rejected),
        (9, 0),
    )
    .await;
    assert_eq!(
        phrases(&store, CandidateOrder::MostVotes).await,
        ["clear", "few", "close"]
    );
    assert_eq!(
        phrases(&store, CandidateOrder::MostControversial).await,
        ["close", "clear", "few"]
    );
    let mut by_age = phrases(&store, CandidateOrder::OldestFirst).await;
    let newest = phrases(&store, CandidateOrder::NewestFirst).await;
    by_age.reverse();
    assert_eq!(by_age, newest);
    let found = store.waiting(&waiting().namespace).await.unwrap();
    assert_eq!(found, [(Kind::EntityAlias, 3, Timestamp::UNIX_EPOCH)]);
    let second = Timestamp::constant(0, 1_000);
    for (listing, expected) in [
        ((Some(Timestamp::UNIX_EPOCH), Some(second)), 3),
        ((Some(second), None), 0),
        ((None, Some(Timestamp::UNIX_EPOCH)), 0),
    ] {
        let listing = Listing {
            order: CandidateOrder::OldestFirst,
            created_after: listing.0,
            created_before: listing.1,
        };
        let page = store
            .list_candidates(&waiting(), &listing, None, 10)
            .await
            .unwrap();
        assert_eq!(page.len(), expected, "{listing:?}");
    }
}

async fn every_order_is_read_from_an_index(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let mut reader = store.reader().await.unwrap();
    if matches!(database, TestDatabase::Postgres) {
        reader.execute_text("SET enable_seqscan = off").await.unwrap();
    }
    let after = CandidatePosition {
        place: 7,
        id: emend_core::CandidateId(uuid::Uuid::nil()),
    };
    let created = Some(Timestamp::UNIX_EPOCH);
    for (order, index) in [
        (CandidateOrder::NewestFirst, "candidates_listed"),
        (CandidateOrder::OldestFirst, "candidates_listed"),
        (CandidateOrder::MostVotes, "waiting_by_votes"),
        (CandidateOrder::MostControversial, "waiting_by_controversy"),
    ] {
        let of_kind = CandidateFilter {
            kinds: vec![Kind::EntityAlias],
            ..waiting()
        };
        let of_any_status = CandidateFilter {
            statuses: Vec::new(),
            ..waiting()
        };
        let filters = [waiting(), of_kind, of_any_status];
        let pages = [(None, None), (None, Some(after)), (created, Some(after))];
        for (filter, (created, after)) in filters.iter().flat_map(|filter| pages.map(|page| (filter, page))) {
            let listing = Listing {
                order,
                created_after: created,
                created_before: created,
            };
            let plan = reader.plan(listed(filter, &listing, after, 50)).await;
            // Of a period, what waits may be found by its age and sorted.
            let is_of_period = created.is_some() && plan.contains("waiting_by_age");
            assert!(plan.contains(index) || is_of_period, "{order:?}: {plan}");
            assert!(!plan.contains("Seq Scan"), "{order:?}: {plan}");
            for table in ["n", "k", "c"] {
                let scans = |step: &str| format!("{step} ").contains(&format!("SCAN {table} "));
                assert!(!plan.lines().any(scans), "{order:?}: {plan}");
            }
        }
    }
    let plan = reader.plan(waiting_in(&waiting().namespace)).await;
    assert!(
        plan.contains("waiting_by_") && !plan.contains("Seq Scan"),
        "{plan}"
    );
}

mod all {
    use super::*;
    on_all_stores!(what_awaits_review_is_listed_by_votes_and_by_controversy);
}

mod plans {
    use super::*;
    on_both! { every_order_is_read_from_an_index }
}
