//! What is kept of a decision to undo it comes back as it was, until it is forgotten.

use emend_core::{
    CandidateId, Hold, Kind, Learned, Reason, ResourceKey, ResourceValue, Status, UndoableDecision,
    candidate::Verdict,
    decide::{CandidateBefore, ChangedCandidate},
};
use jiff::{SignedDuration, Timestamp};

use super::UndoableRecord;
use crate::{Store, UnitOfWork, actor::Actor, contests::fixtures::store_empty, testing::on_all_stores};

fn key() -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), "jd", "", "").unwrap()
}

fn record(number: u64) -> UndoableRecord {
    let id = |number| CandidateId(uuid::Uuid::from_u128(number));
    let before = CandidateBefore {
        status: Status::AwaitingReview,
        reason: Some(Reason::HighRisk),
        hold: Some(Hold::PersonalData),
        decision_reason: Some("not now".to_owned()),
        applied_threshold: Some(3),
        value: Some(ResourceValue::new(
            "JD",
            Learned::Entity("job description".to_owned()),
        )),
        approved: true,
        verdict: Some((Verdict::Open, Some(Timestamp::constant(7, 0)))),
    };
    UndoableRecord {
        contest: key().contest_id(),
        decision: UndoableDecision {
            candidate: id(1),
            subject: id(2),
            number,
            pinned: true,
            occurrences: 8,
            policy_version: 4,
            changed: vec![
                ChangedCandidate {
                    id: id(1),
                    status: Status::Superseded,
                    before: Some(before),
                },
                ChangedCandidate {
                    id: id(2),
                    status: Status::Applied,
                    before: None,
                },
            ],
        },
        actor: Actor {
            caller: emend_core::Caller::parse("console").unwrap(),
            on_behalf_of: "jane".to_owned(),
        },
        made_at: Timestamp::constant(1_000, 0),
    }
}

async fn locked(store: &impl Store) -> Box<dyn UnitOfWork> {
    let mut tx = store.begin().await.unwrap();
    let key = key();
    tx.contests()
        .create(&[&key], Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    tx.contests().lock(&[&key]).await.unwrap();
    tx
}

async fn the_newest_decision_is_kept_until_it_is_forgotten(store: impl Store) {
    let contest = key().contest_id();
    let mut tx = store.begin().await.unwrap();
    store_empty(&mut *tx, &[&key()]).await;
    tx.commit().await.unwrap();

    let mut tx = locked(&store).await;
    assert_eq!(tx.contests().undoable(contest).await.unwrap(), None);
    for number in [5, 6] {
        tx.contests().save_undoable(&record(number)).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut tx = locked(&store).await;
    assert_eq!(tx.contests().undoable(contest).await.unwrap(), Some(record(6)));
    tx.contests().forget_undoable(contest).await.unwrap();
    assert_eq!(tx.contests().undoable(contest).await.unwrap(), None);
    drop(tx);

    let an_age = SignedDuration::from_hours(200 * 365 * 24);
    assert_eq!(store.forget_undoable_after(an_age).await.unwrap(), 0);
    let not_yet = SignedDuration::from_secs(-10_000);
    assert_eq!(store.forget_undoable_after(not_yet).await.unwrap(), 1);
    let mut tx = locked(&store).await;
    assert_eq!(tx.contests().undoable(contest).await.unwrap(), None);
}

on_all_stores!(the_newest_decision_is_kept_until_it_is_forgotten);
