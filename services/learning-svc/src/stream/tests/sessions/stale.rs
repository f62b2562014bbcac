//! A replica whose database is away serves what it holds, and says how old that is.

use jiff::SignedDuration;

use super::*;
use crate::stream::testing::silenced;

/// Reads, and checks that a bookmark says that all of this is so old.
fn reads_as_of(subscriber: &mut Subscriber, ago: Duration) {
    subscriber.read();
    assert_eq!(subscriber.client.age, Some(ago));
}

/// For how long the database is away in these tests before anybody subscribes.
const AWAY: Duration = Duration::from_secs(10);

/// A replica at the head of a log with three resources, whose database went away.
async fn cut_off() -> (MemoryLog, Replica) {
    let (log, replica) = with_resources(3).await;
    catch_up(&replica).await;
    log.fail(true);
    tokio::time::advance(AWAY).await;
    replica.tailer().run_once().await.unwrap_err();
    (log, replica)
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_followed_by_how_old_it_is() {
    let (log, replica) = cut_off().await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    reads_as_of(&mut subscriber, AWAY);
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::NoCursor]);
    assert_eq!(subscriber.client.held, model_at(&log, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_at_its_cursor_and_is_told_how_old_it_is() {
    let (log, replica) = with_resources(1).await;
    let mut open = Subscriber::open(&replica, everything()).await;
    let mut closed = Subscriber::open(&replica, everything()).await;
    open.read();
    closed.read();
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    log.fail(true);
    tokio::time::advance(AWAY).await;

    let mut resumed = Subscriber::resume(&replica, everything(), closed.client).await;
    reads_as_of(&mut resumed, AWAY);
    reads_as_of(&mut open, AWAY);
    let mut filtered = Subscriber::resume(
        &replica,
        only("b"),
        Client::at(resumed.client.held, resumed.client.cursor),
    )
    .await;
    reads_as_of(&mut filtered, AWAY);
    assert_eq!((resumed.client.resumed, resumed.client.updates), (1, 1));
    assert_eq!(open.client.held, model_at(&log, 2));
    assert_eq!(filtered.client.snapshots, [SnapshotReason::FilterChanged]);

    log.fail(false);
    commit(&log, &replica, &[write("k", Some("w"))]).await;
    open.read();
    assert_eq!(open.client.held, model_at(&log, 3));
    tokio::time::advance(Duration::from_secs(2)).await;
    catch_up(&replica).await;
    tokio::time::advance(Duration::from_secs(40)).await;
    catch_up(&replica).await;
    reads_as_of(&mut open, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_the_log_no_longer_covers_gets_what_is_held() {
    let (log, replica) = with_resources(3).await;
    let mut old = Subscriber::open(&replica, everything()).await;
    old.read();
    commit(&log, &replica, &[write("k0", None)]).await;
    log.advance(SignedDuration::from_hours(24 * 8));
    replica.retention().run_once().await.unwrap();
    catch_up(&replica).await;
    log.fail(true);
    tokio::time::advance(AWAY).await;
    let mut old = Subscriber::resume(&replica, everything(), old.client).await;
    reads_as_of(&mut old, AWAY);
    assert_eq!(
        old.client.snapshots,
        [SnapshotReason::NoCursor, SnapshotReason::CursorExpired]
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_holds_more_is_sent_elsewhere_and_never_set_back() {
    let (log, silence) = silenced();
    let replica = replica(&log, Settings::default()).await;
    let ahead = |epoch: u128| {
        let cursor = Cursor {
            epoch: Epoch(uuid::Uuid::from_u128(epoch)),
            revision: 2,
            filter_hash: everything().hash(),
        };
        Subscription {
            cursor: Some(cursor),
            ..subscription(everything(), None)
        }
    };
    for epoch in [1, 9] {
        log.fail(true);
        let error = replica.subscribe(by_node(ahead(epoch))).await.unwrap_err();
        assert_eq!(error.reason(), "DATABASE_UNAVAILABLE", "epoch {epoch}");
        log.fail(false);
        silence.send_replace(true);
        let before = Instant::now();
        let error = replica.subscribe(by_node(ahead(epoch))).await.unwrap_err();
        assert_eq!(error.reason(), "REPLICA_BEHIND", "epoch {epoch}");
        assert_eq!(before.elapsed(), Duration::from_secs(5));
        silence.send_replace(false);
    }
}

/// Reads until the stream ends, as it must because of its age, and says when that was.
async fn ends(subscriber: &mut Subscriber) -> Instant {
    while let Some(message) = subscriber.session.next().await {
        subscriber.client.apply(&message.unwrap());
    }
    assert_eq!(subscriber.client.drained.as_deref(), Some("MAX_STREAM_AGE"));
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_stream_on_a_stale_replica_ends_early_so_that_the_node_tries_another() {
    let (log, replica) = with_resources(3).await;
    catch_up(&replica).await;
    let mut before = Subscriber::open(&replica, everything()).await;
    before.read();
    log.fail(true);
    tokio::time::advance(AWAY).await;
    let stale = Instant::now();
    let mut since = Subscriber::open(&replica, everything()).await;
    let (before, since) = tokio::join!(ends(&mut before), ends(&mut since));
    for (at, until) in [(before, 400), (since, 360)] {
        let age = at - stale;
        assert!((240..=until).contains(&age.as_secs()), "{age:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_stays_if_its_replica_was_stale_for_less_than_that() {
    let (log, replica) = cut_off().await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    let opened = Instant::now();
    subscriber.read();
    log.fail(false);
    let current = async {
        loop {
            catch_up(&replica).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let ended = tokio::select! {
        ended = ends(&mut subscriber) => ended,
        () = current => unreachable!("it goes on for ever"),
    };
    let age = ended - opened;
    assert!((2_880..=4_321).contains(&age.as_secs()), "{age:?}");
}
