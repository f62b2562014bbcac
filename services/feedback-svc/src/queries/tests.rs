//! What becomes of what is recorded: stored in groups, dropped and counted where there is no room.

use std::time::Duration;

use emend_base::Entropy;
use emend_core::{Caller, QueryId};
use emend_serve::fair_semaphore::ClientKey;
use feedback_store::{
    records::queries::{Interaction, New},
    testing::{TestStore, namespace},
};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::{Dropped, QueryMetrics, RatingMetrics},
    queries::record::{Record, RecordWorker, Recorder},
};

fn clicked(number: u32) -> Record {
    Record::Interaction(Box::new(New {
        namespace: namespace(),
        caller: Caller::anonymous(),
        item: Interaction {
            query_id: QueryId::parse("q-1").unwrap(),
            object_id: format!("card-{number}"),
            action: "click".into(),
            position: 0,
        },
        at: None,
        waited: Duration::ZERO,
    }))
}

fn recorder(database: &TestStore, kib: usize, soft: &CancellationToken) -> (Recorder, RecordWorker) {
    Recorder::holding(
        kib,
        database.sql(),
        (QueryMetrics::default(), RatingMetrics::default()),
        Entropy::system(),
        soft.clone(),
    )
}

#[tokio::test]
async fn what_finds_no_room_is_dropped_and_told_and_the_rest_is_stored() {
    let database = TestStore::sqlite().await;
    let (recorder, mut worker) = recorder(&database, 8, &CancellationToken::new());
    let client = ClientKey::Unknown;
    let (dropped, reason) = recorder.record(&client, (0..10).map(clicked).collect::<Vec<_>>().into_iter());
    assert_eq!((dropped, reason), (2, Some(Dropped::QueueFull)));
    assert_eq!(recorder.queued(), 8);
    assert!(worker.run_once().await);
    assert_eq!(recorder.queued(), 0);
    let stored = "SELECT count(*) FROM query_interactions";
    assert_eq!(database.number(stored).await, 8);
    // There is room again, and the last handle's end is the worker's.
    assert_eq!(recorder.record(&client, [clicked(8)].into_iter()), (0, None));
    drop(recorder);
    worker.run().await;
    assert_eq!(database.number(stored).await, 9);
    database.close().await;
}

#[tokio::test]
async fn one_that_the_database_refuses_takes_no_other_with_it() {
    let database = TestStore::sqlite().await;
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON query_interactions WHEN NEW.object_id = 'card-1'
                  BEGIN SELECT RAISE(ABORT, 'no'); END";
    database.execute(refuse).await.unwrap();
    let (recorder, worker) = recorder(&database, 8, &CancellationToken::new());
    recorder.record(&ClientKey::Unknown, [0, 1, 2].map(clicked).into_iter());
    let metrics = recorder.metrics().clone();
    drop(recorder);
    worker.run().await;
    assert_eq!(
        database.number("SELECT count(*) FROM query_interactions").await,
        2
    );
    assert_eq!(metrics.dropped_so_far(Dropped::Refused), 1);
    database.close().await;
}

#[tokio::test]
async fn a_stopping_service_waits_no_longer_for_its_database() {
    let database = TestStore::sqlite().await;
    let soft = CancellationToken::new();
    let (recorder, worker) = recorder(&database, 8, &soft);
    recorder.record(&ClientKey::Unknown, [clicked(0)].into_iter());
    database.store.close().await;
    soft.cancel();
    let metrics = recorder.metrics().clone();
    drop(recorder);
    worker.run().await;
    assert_eq!(metrics.dropped_so_far(Dropped::Database), 1);
}
