use jiff::SignedDuration;

use super::*;

/// A client at the head whose stream is closed.
async fn away(replica: &Replica, filter: Filter) -> Client {
    let mut subscriber = Subscriber::open(replica, filter).await;
    subscriber.read();
    subscriber.client.snapshots.clear();
    subscriber.client
}

#[tokio::test(start_paused = true)]
async fn a_foreign_epoch_gets_a_snapshot() {
    let (log, replica) = with_resources(2).await;
    let mut client = away(&replica, everything()).await;
    client.cursor.as_mut().unwrap().epoch = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into();
    let mut subscriber = Subscriber::resume(&replica, everything(), client).await;
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::ForeignEpoch]);
    assert_eq!(subscriber.client.held, model_at(&log, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_truly_ahead_of_the_database_gets_a_snapshot() {
    let (_log, replica) = with_resources(2).await;
    let mut client = away(&replica, everything()).await;
    client.cursor.as_mut().unwrap().revision = 99;
    let mut subscriber = Subscriber::resume(&replica, everything(), client).await;
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::CursorAhead]);
    assert_eq!(subscriber.client.revision(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_moved_to_a_replica_that_lags_gets_no_snapshot() {
    let (log, at_head) = with_resources(2).await;
    let lagging = replica(&log, Settings::default()).await;
    commit(&log, &at_head, &[write("new", Some("v"))]).await;
    let client = away(&at_head, everything()).await;
    assert_eq!((client.revision(), lagging.state().unwrap().revision()), (2, 1));
    let resuming = Subscriber::resume(&lagging, everything(), client);
    let (mut subscriber, ()) = tokio::join!(resuming, async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        catch_up(&lagging).await;
    });
    commit(&log, &lagging, &[write("newer", Some("v"))]).await;
    subscriber.read();
    assert_eq!(
        (subscriber.client.resumed, subscriber.client.snapshots.len()),
        (1, 0)
    );
    assert_eq!(subscriber.client.held, model_at(&log, 3));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_for_too_long_asks_the_node_to_come_back() {
    let (log, at_head) = with_resources(2).await;
    let lagging = replica(&log, Settings::default()).await;
    commit(&log, &at_head, &[write("new", Some("v"))]).await;
    let client = away(&at_head, everything()).await;
    let before = Instant::now();
    let error = lagging
        .subscribe(by_node(subscription(everything(), client.cursor)))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "REPLICA_BEHIND");
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_saw_a_new_epoch_waits_for_the_replica_to_see_it() {
    let (log, one) = with_resources(2).await;
    let other = replica(&log, Settings::default()).await;
    commit(&log, &other, &[write("lost", Some("v"))]).await;
    catch_up(&one).await;
    log.lose_above(1).await;
    other.tailer().run_once().await.unwrap();
    let client = away(&other, everything()).await;
    let resuming = Subscriber::resume(&one, everything(), client);
    let (mut subscriber, ()) = tokio::join!(resuming, async {
        one.tailer().run_once().await.unwrap();
    });
    subscriber.read();
    assert_eq!(
        (subscriber.client.resumed, subscriber.client.snapshots.len()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_for_a_foreign_epoch_is_not_older_than_the_database() {
    let (log, at_head) = with_resources(2).await;
    let lagging = replica(&log, Settings::default()).await;
    commit(&log, &at_head, &[write("new", Some("v"))]).await;
    let mut client = away(&at_head, everything()).await;
    client.cursor.as_mut().unwrap().epoch = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into();
    let resuming = Subscriber::resume(&lagging, everything(), client);
    let (mut subscriber, ()) = tokio::join!(resuming, async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        catch_up(&lagging).await;
    });
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::ForeignEpoch]);
    assert_eq!(subscriber.client.held, model_at(&log, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_older_than_the_tombstones_gets_a_snapshot_and_one_at_the_horizon_does_not() {
    let (log, replica) = with_resources(3).await;
    let old = away(&replica, everything()).await;
    commit(&log, &replica, &[write("k0", None)]).await;
    let at_horizon = away(&replica, everything()).await;
    log.advance(SignedDuration::from_hours(24 * 8));
    replica.retention().run_once().await.unwrap();
    commit(&log, &replica, &[write("k1", None)]).await;
    assert_eq!(replica.state().unwrap().horizon(), 2);

    let mut subscriber = Subscriber::resume(&replica, everything(), old).await;
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::CursorExpired]);
    assert_eq!(subscriber.client.held, model_at(&log, 3));
    let mut subscriber = Subscriber::resume(&replica, everything(), at_horizon).await;
    subscriber.read();
    assert_eq!(
        (subscriber.client.resumed, subscriber.client.snapshots.len()),
        (1, 0)
    );
    assert_eq!(subscriber.client.held, model_at(&log, 3));
}

#[tokio::test(start_paused = true)]
async fn another_filter_gets_a_snapshot() {
    let (log, replica) = with_resources(2).await;
    commit(&log, &replica, &[write("k", Some("v")).of_kind("b", 1)]).await;
    let client = away(&replica, only("a")).await;
    let mut subscriber = Subscriber::resume(&replica, only("b"), client).await;
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::FilterChanged]);
    assert_eq!(subscriber.held(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_overtaken_by_the_horizon_gets_a_snapshot() {
    let (log, replica) = with_resources(3).await;
    let mut stalled = Subscriber::open(&replica, everything()).await;
    stalled.read();
    commit(&log, &replica, &[write("k0", None)]).await;
    log.advance(SignedDuration::from_hours(24 * 8));
    replica.retention().run_once().await.unwrap();
    commit(&log, &replica, &[write("k1", None)]).await;
    stalled.read();
    assert_eq!(
        stalled.client.snapshots,
        [SnapshotReason::NoCursor, SnapshotReason::CursorExpired]
    );
    assert_eq!(stalled.client.held, model_at(&log, 3));
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_overtaken_by_the_horizon_needs_no_snapshot() {
    let (log, replica) = with_resources(3).await;
    let mut quiet = Subscriber::open(&replica, only("a")).await;
    quiet.read();
    for value in [Some("v"), None] {
        commit(&log, &replica, &[write("k", value).of_kind("busy", 1)]).await;
        quiet.read();
    }
    log.advance(SignedDuration::from_hours(24 * 8));
    replica.retention().run_once().await.unwrap();
    commit(&log, &replica, &[write("k1", None)]).await;
    assert_eq!(
        (replica.state().unwrap().horizon(), quiet.client.revision()),
        (3, 1)
    );
    quiet.read();
    assert_eq!((quiet.client.snapshots.len(), quiet.client.updates), (1, 1));
    assert_eq!(quiet.client.revision(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_goes_backwards_gives_open_streams_a_snapshot_of_the_new_epoch() {
    let (log, replica) = with_resources(2).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    commit(&log, &replica, &[write("lost", Some("v"))]).await;
    subscriber.read();
    log.lose_above(1).await;
    replica.tailer().run_once().await.unwrap();
    subscriber.client.cursor.as_mut().unwrap().revision = 0;
    subscriber.read();
    assert_eq!(
        subscriber.client.snapshots,
        [SnapshotReason::NoCursor, SnapshotReason::NewEpoch]
    );
    assert_eq!(subscriber.client.held, model_at(&log, 1));
}
