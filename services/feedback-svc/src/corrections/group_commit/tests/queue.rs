//! The queue: how long and how much may wait, and each client's fair share.

use emend_core::Caller;

use crate::corrections::group_commit::tests::*;

#[tokio::test]
async fn a_batch_whose_caller_left_the_queue_is_not_stored() {
    let mut fixture = Fixture::new(CommitConfig {
        group_items: 2,
        queue_bytes: 3 * MIN_COST,
        ..CommitConfig::default()
    })
    .await;
    let gone = ["a", "b", "c"].map(|phrase| fixture.begin(vec![feedback(phrase)]));
    assert!(fixture.begin(vec![feedback("no room")]).await.is_err());
    drop(gone);
    // They still hold their permits, and release them without a group of their own.
    let idle = fixture.worker.run_once().now_or_never();
    assert_eq!(idle, None, "there is nothing to store");
    let staying = [
        fixture.begin(vec![feedback("here")]),
        fixture.begin(vec![feedback("here too")]),
    ];
    assert!(fixture.worker.run_once().await);
    for answer in join_all(staying).await {
        assert!(answer.is_ok());
    }
    assert_eq!((fixture.stored().await, fixture.delivery_queue.len()), (2, 2));
}

#[tokio::test]
async fn a_batch_in_progress_is_stored_although_its_caller_left() {
    let Fixture {
        database,
        delivery_queue,
        committer,
        mut worker,
    } = Fixture::new(CommitConfig::default()).await;
    let mut leaving = Box::pin(committer.store(ClientKey::Unknown, vec![feedback("a")]));
    assert!((&mut leaving).now_or_never().is_none());
    let mut step = Box::pin(worker.run_once());
    assert!((&mut step).now_or_never().is_none(), "it is being stored");
    drop(leaving);
    assert!(step.await);
    assert_eq!(delivery_queue.len(), 1);
    database.close().await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_reported_as_stuck_until_it_does() {
    let mut fixture = Fixture::new(CommitConfig::default()).await;
    let waiting = fixture.begin(vec![feedback("a")]);
    let storing = fixture.worker.storing().clone();
    tokio::time::pause();
    tokio::time::advance(STALL).await;
    assert!(!storing.is_stuck(), "nothing is asked of it yet");
    let mut step = Box::pin(fixture.worker.run_once());
    assert!((&mut step).now_or_never().is_none(), "it is being stored");
    tokio::time::advance(STALL.checked_sub(Duration::from_millis(1)).unwrap()).await;
    assert!(!storing.is_stuck());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(storing.is_stuck());
    tokio::time::resume();
    assert!(step.await);
    assert!(!storing.is_stuck());
    drop(waiting);
}

/// What callers are told decides whether it counts as a fault of the service or as too much of theirs.
#[tokio::test]
async fn a_queue_that_stands_still_because_of_the_database_says_so() {
    let mut fixture = Fixture::new(CommitConfig {
        queue_bytes: 2 * MIN_COST,
        ..CommitConfig::default()
    })
    .await;
    let queue_time = CommitConfig::default().queue_time;
    tokio::time::pause();
    let waiting = [
        fixture.begin(vec![feedback("a")]),
        fixture.begin(vec![feedback("b")]),
    ];
    let refused = async |fixture: &Fixture| {
        let answer = fixture.begin(vec![feedback("c")]).now_or_never();
        answer.expect("it is refused at once").unwrap_err().code()
    };
    assert_eq!(
        refused(&fixture).await,
        Code::ResourceExhausted,
        "nothing is asked of the database"
    );
    let asked = fixture.worker.storing().clone();
    let asking = asked.begin();
    assert_eq!(
        refused(&fixture).await,
        Code::ResourceExhausted,
        "it may answer soon"
    );
    tokio::time::advance(queue_time).await;
    assert_eq!(refused(&fixture).await, Code::Unavailable, "it has not answered");
    asking.answered(&Err::<(), _>(StoreError::Unavailable(sqlx::Error::PoolTimedOut)));
    assert_eq!(refused(&fixture).await, Code::Unavailable, "it was away");
    tokio::time::resume();
    assert!(fixture.worker.run_once().await);
    for answer in join_all(waiting).await {
        assert!(answer.is_ok());
    }
    let _full = fixture.begin(vec![feedback("d"), feedback("e")]);
    assert_eq!(refused(&fixture).await, Code::ResourceExhausted, "it is back");
}

#[tokio::test]
async fn a_batch_that_waits_too_long_is_refused_and_not_stored() {
    let mut fixture = Fixture::new(CommitConfig::default()).await;
    tokio::time::pause();
    let late = fixture.begin(vec![feedback("late")]);
    tokio::time::advance(CommitConfig::default().queue_time + Duration::from_millis(1)).await;
    let refused = late.now_or_never().expect("it is refused").unwrap_err();
    assert!(
        matches!(
            refused,
            Error::ResourceExhausted {
                retry_after: Some(_),
                ..
            }
        ),
        "{refused}"
    );
    tokio::time::resume();
    let next = fixture.begin(vec![feedback("next")]);
    assert!(fixture.worker.run_once().await);
    assert!(next.await.is_ok());
    assert_eq!((fixture.stored().await, fixture.delivery_queue.len()), (1, 1));
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_accepts_again_later() {
    let mut fixture = Fixture::new(CommitConfig {
        queue_bytes: 8 * 1024,
        ..CommitConfig::default()
    })
    .await;
    let waiting = [
        fixture.begin(vec![feedback("a")]),
        fixture.begin(vec![feedback("b")]),
    ];
    let refused = fixture.begin(vec![feedback("c")]).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::ResourceExhausted {
                retry_after: Some(_),
                ..
            }
        ),
        "{refused}"
    );
    assert!(fixture.worker.run_once().await);
    join_all(waiting).await;
    let later = fixture.begin(vec![feedback("d")]);
    assert!(fixture.worker.run_once().await);
    assert!(later.await.is_ok());
}

/// An authenticated client.
fn called(name: &str) -> ClientKey {
    ClientKey::of(Some(&Caller::parse(name).unwrap()), None)
}

#[tokio::test]
async fn one_caller_can_fill_only_three_quarters_of_the_queue() {
    // Twelve messages of the largest size.
    let queue_bytes = 12 * LEAST_SHARE;
    let fixture = Fixture::new(CommitConfig {
        queue_bytes,
        ..CommitConfig::default()
    })
    .await;
    let (greedy, modest) = (called("greedy"), called("modest"));
    let filled = fixture
        .committer
        .queue
        .places()
        .try_acquire_many(greedy.clone(), 9 * LEAST_SHARE / 1024);
    assert!(filled.is_some(), "three quarters");
    let refused = fixture.begin_for(greedy, vec![feedback("a")]).await.unwrap_err();
    assert_eq!(refused.reason(), "TOO_MANY_SUBMISSIONS");
    let taken = fixture.begin_for(modest, vec![feedback("b")]);
    assert!(taken.now_or_never().is_none(), "it waits");
}

#[tokio::test]
async fn callers_with_many_batches_take_turns_with_others() {
    let mut fixture = Fixture::new(CommitConfig {
        group_items: 2,
        ..CommitConfig::default()
    })
    .await;
    let (greedy, modest) = (called("greedy"), called("modest"));
    let mut many: Vec<_> = ["a", "b", "c", "d"]
        .map(|phrase| Box::pin(fixture.begin_for(greedy.clone(), vec![feedback(phrase)])))
        .into();
    let one = fixture.begin_for(modest, vec![feedback("e")]);
    assert!(fixture.worker.run_once().await);
    assert!(one.await.is_ok(), "it is in the first group of two");
    assert!(many.remove(0).await.is_ok());
    assert!(many[0].as_mut().now_or_never().is_none(), "it waits for the next");
    while fixture.stored().await < 5 {
        assert!(fixture.worker.run_once().await);
    }
    for answer in join_all(many).await {
        assert!(answer.is_ok());
    }
}

#[tokio::test]
async fn abandoned_batches_cost_a_caller_no_turn() {
    let mut fixture = Fixture::new(CommitConfig {
        group_items: 2,
        ..CommitConfig::default()
    })
    .await;
    let (leaving, busy) = (called("leaving"), called("busy"));
    let gone: Vec<_> = ["a", "b", "c"]
        .map(|phrase| Box::pin(fixture.begin_for(leaving.clone(), vec![feedback(phrase)])))
        .into();
    let staying = fixture.begin_for(leaving, vec![feedback("d")]);
    let many = ["e", "f", "g"].map(|phrase| fixture.begin_for(busy.clone(), vec![feedback(phrase)]));
    drop(gone);
    assert!(fixture.worker.run_once().await);
    assert!(staying.await.is_ok(), "it is in the first group of two");
    while fixture.stored().await < 4 {
        assert!(fixture.worker.run_once().await);
    }
    for answer in join_all(many).await {
        assert!(answer.is_ok());
    }
}

#[tokio::test]
async fn the_worker_stores_the_queue_and_ends_once_all_committers_are_dropped() {
    let fixture = Fixture::new(CommitConfig::default()).await;
    let asked = fixture.begin(vec![feedback("a")]);
    let Fixture {
        database,
        committer,
        mut worker,
        ..
    } = fixture;
    drop(committer);
    assert!(worker.run_once().await);
    assert!(asked.await.is_ok());
    assert!(!worker.run_once().await);
    database.advance(3_600).await;
    assert_eq!(database.store.claim(9, lease()).await.unwrap().len(), 1);
    let none = DeadLetterQuery {
        namespace: None,
        after: None,
        limit: 1,
    };
    assert!(database.store.dead_letters(&none).await.unwrap().is_empty());
}
