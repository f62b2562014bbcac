//! What is stored together, and the result of each item.

use crate::corrections::group_commit::tests::*;

#[tokio::test]
async fn waiting_batches_are_stored_as_one_group_and_queued_for_delivery() {
    let mut fixture = Fixture::new(CommitConfig::default()).await;
    let waiting: Vec<_> = (0..50)
        .map(|n| fixture.begin(vec![feedback(&n.to_string())]))
        .collect();
    assert!(fixture.worker.run_once().await);
    assert_eq!(fixture.stored().await, 50);
    assert_eq!(fixture.delivery_queue.len(), 50);
    for answer in join_all(waiting).await {
        assert!(matches!(answer.unwrap()[..], [Ok((_, Inserted::Stored(_)))]));
    }
}

#[tokio::test]
async fn a_group_is_bounded_in_items_and_bytes_and_larger_batches_are_stored_alone() {
    let mut fixture = Fixture::new(CommitConfig {
        group_items: 4,
        ..CommitConfig::default()
    })
    .await;
    let waiting =
        [3, 2, 10, 1].map(|count| fixture.begin((0..count).map(|n| feedback(&n.to_string())).collect()));
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let before = fixture.stored().await;
        assert!(fixture.worker.run_once().await);
        sizes.push(fixture.stored().await - before);
    }
    assert_eq!(sizes, [3, 2, 10, 1]);
    drop(waiting);

    let mut fixture = Fixture::new(CommitConfig {
        group_bytes: 1,
        ..CommitConfig::default()
    })
    .await;
    let _waiting = ["a", "b"].map(|phrase| fixture.begin(vec![feedback(phrase)]));
    assert!(fixture.worker.run_once().await);
    assert_eq!(fixture.stored().await, 1);
}

#[tokio::test]
async fn an_error_reaches_only_the_batch_that_caused_it() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        if let Some(database) = TestStore::open(backend).await {
            let fixture = Fixture::on(database, CommitConfig::default());
            expect_an_error_for_the_culprit_alone(fixture).await;
        }
    }
}

async fn expect_an_error_for_the_culprit_alone(mut fixture: Fixture) {
    let culprit = feedback("there already");
    stored(&*fixture.database.store, &culprit, None).await;
    let waiting: Vec<_> = [
        vec![feedback("a"), feedback("b")],
        vec![feedback("c"), culprit, feedback("d")],
        vec![feedback("e")],
    ]
    .into_iter()
    .map(|items| fixture.begin(items))
    .collect();
    assert!(fixture.worker.run_once().await);
    let answers: Vec<Vec<_>> = join_all(waiting)
        .await
        .into_iter()
        .map(|answer| {
            answer
                .unwrap()
                .iter()
                .map(|item| item.as_ref().map(|_| ()).map_err(Error::code))
                .collect()
        })
        .collect();
    assert_eq!(
        answers,
        [
            vec![Ok(()); 2],
            vec![Ok(()), Err(Code::Internal), Ok(())],
            vec![Ok(())]
        ]
    );
    assert_eq!(fixture.stored().await, 6);
    assert_eq!(fixture.delivery_queue.len(), 5);
    fixture.database.close().await;
}

#[tokio::test]
async fn a_failed_repeat_does_not_keep_its_group_from_delivery() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        if let Some(database) = TestStore::open(backend).await {
            let fixture = Fixture::on(database, CommitConfig::default());
            expect_an_error_for_the_repeat_alone(fixture).await;
        }
    }
}

async fn expect_an_error_for_the_repeat_alone(mut fixture: Fixture) {
    stored(&*fixture.database.store, &with_request_id("a", "r"), None).await;
    fixture.database.corrupt_request_ids().await;
    let waiting = [
        fixture.begin(vec![with_request_id("a", "r")]),
        fixture.begin(vec![feedback("b")]),
    ];
    assert!(fixture.worker.run_once().await);
    let answers = join_all(waiting).await;
    assert!(matches!(answers[0].as_deref().unwrap(), [Err(_)]), "{answers:?}");
    assert!(
        matches!(answers[1].as_deref().unwrap(), [Ok((_, Inserted::Stored(_)))]),
        "{answers:?}"
    );
    assert_eq!((fixture.stored().await, fixture.delivery_queue.len()), (2, 1));
    fixture.database.close().await;
}

#[tokio::test]
async fn repeated_requests_are_not_delivered_again() {
    let mut fixture = Fixture::new(CommitConfig::default()).await;
    let waiting: Vec<_> = (0..3)
        .map(|_| fixture.begin(vec![with_request_id("a", "r")]))
        .collect();
    assert!(fixture.worker.run_once().await);
    join_all(waiting).await;
    assert_eq!((fixture.stored().await, fixture.delivery_queue.len()), (1, 1));
}
