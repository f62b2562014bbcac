use emend_base::{reload::Reload as _, telemetry::Metrics};
use emend_serve::auth::{Authenticator, TokenHash, testing::access_of};
use emend_stream::metrics::StreamMetrics;
use learning_store::{log::LogStore as _, nodes::NodeStore as _};

use super::*;

#[tokio::test(start_paused = true)]
async fn at_shutdown_every_stream_gets_what_was_committed_a_bookmark_and_a_jittered_drain() {
    let (log, replica) = with_resources(3).await;
    let mut subscribers = Vec::new();
    for n in 0..200 {
        let mut subscriber = Subscriber::open(&replica, everything()).await;
        if n < 100 {
            subscriber.read();
        }
        subscribers.push(subscriber);
    }
    commit(&log, &replica, &[write("last", Some("v"))]).await;
    replica.0.streams.audiences().drain();
    // Anything committed from now on is for the next connection.
    commit(&log, &replica, &[write("later", Some("v"))]).await;
    for (n, subscriber) in subscribers.iter_mut().enumerate() {
        subscriber.read();
        assert_eq!(subscriber.client.drained.as_deref(), Some("SHUTDOWN"), "{n}");
        // A stream that had sent nothing yet has nothing whole to bookmark, and drains at once.
        if n < 100 {
            assert_eq!(subscriber.client.bookmarks, 1);
            assert_eq!(
                subscriber.client.held,
                model_at(&log, subscriber.client.revision())
            );
            assert!(subscriber.client.revision() >= 2);
        }
        assert!(subscriber.session.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_is_woken_to_drain() {
    let (_log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    let reading = tokio::spawn(async move {
        while let Some(message) = subscriber.session.next().await {
            subscriber.client.apply(&message.unwrap());
        }
        subscriber.client.drained
    });
    tokio::task::yield_now().await;
    replica.0.streams.audiences().drain();
    assert_eq!(reading.await.unwrap().as_deref(), Some("SHUTDOWN"));
}

#[tokio::test(start_paused = true)]
async fn streams_end_at_a_jittered_age() {
    let (_log, replica) = with_resources(1).await;
    let opened = Instant::now();
    let mut ages = Vec::new();
    for _ in 0..5 {
        let opened_at = Instant::now();
        catch_up(&replica).await;
        let mut subscriber = Subscriber::open(&replica, everything()).await;
        loop {
            tokio::select! {
                message = subscriber.session.next() => match message {
                    Some(message) => subscriber.client.apply(&message.unwrap()),
                    None => break,
                },
                // The replica stays fresh.
                () = tokio::time::sleep(Duration::from_secs(1)) => catch_up(&replica).await,
            }
        }
        assert_eq!(subscriber.client.drained.as_deref(), Some("MAX_STREAM_AGE"));
        ages.push(opened_at.elapsed());
    }
    for age in &ages {
        assert!((2_880..=4_321).contains(&age.as_secs()), "{age:?}");
    }
    ages.dedup();
    assert_eq!(ages.len(), 5);
    assert!(opened.elapsed() > Duration::from_mins(4 * 48));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_at_jittered_intervals_unless_updates_are() {
    let (log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    let mut times = Vec::new();
    for _ in 0..5 {
        let before = Instant::now();
        let message = subscriber.session.next().await.unwrap().unwrap();
        subscriber.client.apply(&message);
        times.push(before.elapsed());
    }
    assert_eq!(subscriber.client.bookmarks, 5);
    for time in times {
        assert!((27..=34).contains(&time.as_secs()), "{time:?}");
    }
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(5)).await;
        commit(&log, &replica, &[write("k", Some("v"))]).await;
        subscriber.read();
    }
    assert_eq!((subscriber.client.bookmarks, subscriber.client.updates), (5, 100));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_replica_ends_its_streams_and_records_that() {
    let log = MemoryLog::default();
    log.create_head(
        Epoch(uuid::Uuid::from_u128(1)),
        emend_core::InstallationId(uuid::Uuid::from_u128(2)),
    )
    .await
    .unwrap();
    let lifecycle = emend_base::Lifecycle::new();
    let replica = Replica::start(
        Arc::new(log.clone()),
        crate::stream::Wake::local(),
        Settings::default(),
        emend_base::ManualClock::default().shared(),
        Entropy::seeded(1),
        &lifecycle,
    );
    replica.readiness().wait_for(|ready| *ready).await.unwrap();
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    let reading = tokio::spawn(async move {
        while let Some(message) = subscriber.session.next().await {
            subscriber.client.apply(&message.unwrap());
        }
        subscriber.client
    });
    log.append(&[write("k", Some("v"))]).await;
    replica.wake();
    replica.wait_for(1, None).await.unwrap();
    let shutdown = lifecycle.shutdown(Duration::from_secs(10)).await;
    assert_eq!(shutdown, emend_base::lifecycle::Shutdown::Graceful);
    assert_eq!(reading.await.unwrap().held, model_at(&log, 1));
    let page = log
        .list_nodes(None, 10, jiff::SignedDuration::from_hours(1))
        .await
        .unwrap();
    assert_eq!(page.nodes.len(), 1);
    assert!(!page.nodes[0].connected);
}

#[tokio::test(start_paused = true)]
async fn a_stream_above_the_limit_is_refused_until_another_ends() {
    let log = MemoryLog::default();
    let settings = Settings {
        max_streams: 2,
        ..Settings::default()
    };
    let replica = replica(&log, settings).await;
    let held = [
        Subscriber::open(&replica, everything()).await,
        Subscriber::open(&replica, everything()).await,
    ];
    let refused = replica
        .subscribe(by_node(subscription(everything(), None)))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "TOO_MANY_STREAMS");
    drop(held);
    assert!(
        replica
            .subscribe(by_node(subscription(everything(), None)))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn ended_streams_are_counted_by_reason() {
    const METHOD: &str = "/emend.learning.v1.SubscriptionService/Subscribe";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.toml");
    let write = |namespaces: &str| {
        let grants = format!("grants = [{{ roles = [\"subscriber\"], namespaces = {namespaces} }}]");
        let token = TokenHash::of("secret");
        let text = format!("[[principals]]\nname = \"node\"\ntoken_sha256 = [\"{token}\"]\n{grants}\n");
        std::fs::write(&file, text).unwrap();
    };
    write("\"*\"");
    let authenticator = Arc::new(Authenticator::load(&file).unwrap());
    let shown = Metrics::new();
    let settings = Settings {
        metrics: StreamMetrics::register(&shown),
        ..Settings::default()
    };
    let replica = replica(&MemoryLog::default(), settings).await;
    let open = async || {
        let subscription = Subscription {
            access: access_of(&authenticator, &crate::roles::RULES, METHOD, "secret").await,
            ..subscription(everything(), None)
        };
        replica.subscribe(by_node(subscription)).await.unwrap()
    };
    let (left, lost) = (open().await, open().await);
    drop(left);
    write("[\"shop\"]");
    assert!(authenticator.reload_if_changed());
    drop(lost);
    let shown = shown.render();
    for why in ["client_gone", "access_lost"] {
        let line = format!("emend_streams_ended_total{{reason=\"{why}\"}} 1");
        assert!(shown.lines().any(|shown| shown == line), "{line}:\n{shown}");
    }
}
