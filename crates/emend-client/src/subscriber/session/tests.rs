//! How long a server may say nothing, in virtual time.

use super::*;
use crate::{
    Lifecycle, Observed, SubscriberBuilder,
    simulation::{Server, Silent, builder},
};

/// After how long a node leaves the server, and what it says of it.
async fn left(server: Silent, setting: impl FnOnce(SubscriberBuilder) -> SubscriberBuilder) -> Duration {
    let server: Arc<dyn Server> = Arc::new(server);
    let lifecycle = Lifecycle::new();
    let begun = Instant::now();
    let spawned = setting(builder(server, "search-1"))
        .spawn_observed(&lifecycle)
        .await;
    let (node, mut events) = spawned.expect("the settings are valid");
    let reason = loop {
        match events.next().await {
            Some(Observed::Event(event)) => {
                if let SubscriberEvent::Disconnected { reason, .. } = &*event {
                    break reason.clone();
                }
            }
            other => panic!("{other:?}"),
        }
    };
    let took = begun.elapsed();
    assert!(!node.view().staleness().connected);
    assert!(reason.contains("no message for"), "{reason}");
    lifecycle.shutdown(Duration::ZERO).await;
    took
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_left_after_three_bookmarks() {
    let seconds = Duration::from_secs;
    // Where bookmarks come often, it may still wait for its turn to send a long update.
    for (bookmarks, silence) in [(1, 25), (8, 25), (9, 27), (30, 90)] {
        let took = left(Silent::AfterSnapshot, |node| {
            node.bookmark_interval(seconds(bookmarks))
        });
        assert_eq!(took.await.as_secs(), silence, "bookmarks every {bookmarks} s");
    }
    let took = left(Silent::AfterSnapshot, |node| node).await;
    assert_eq!(took.as_secs(), 90);
    let took = left(Silent::AfterSnapshot, |node| node.idle_timeout(seconds(3))).await;
    assert_eq!(took.as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_wait_a_minute_for_its_snapshot() {
    let took = left(Silent::AtOnce, |node| {
        node.bookmark_interval(Duration::from_secs(9))
    })
    .await;
    assert_eq!(took.as_secs(), 60);
}
