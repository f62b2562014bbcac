use emend_proto::wire::{Message, SubscribeResponse};
use prost::Message as _;

use super::*;

fn encoded(subscriber: &Subscriber) -> u64 {
    subscriber.session.audience().batches.encoded()
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_encoded_once_for_all_streams_of_equal_filter_and_cursor() {
    let (log, replica) = with_resources(3).await;
    let mut subscribers = Vec::new();
    for _ in 0..1_000 {
        let mut subscriber = Subscriber::open(&replica, everything()).await;
        subscriber.read();
        subscribers.push(subscriber);
    }
    let before = encoded(&subscribers[0]);
    for round in 0..20 {
        commit(&log, &replica, &[write("k", Some(&round.to_string()))]).await;
        for subscriber in &mut subscribers {
            subscriber.read();
        }
    }
    assert_eq!(encoded(&subscribers[0]) - before, 20);
    assert!(
        subscribers
            .iter()
            .all(|subscriber| subscriber.client.updates == 20)
    );
}

#[tokio::test(start_paused = true)]
async fn concurrent_snapshots_share_their_parts() {
    let (_log, replica) = with_resources(1_000).await;
    let mut subscribers = Vec::new();
    for _ in 0..8 {
        let subscription = Subscription {
            max_batch_bytes: 1_000,
            ..subscription(everything(), None)
        };
        subscribers.push(Subscriber {
            client: Client::new(),
            session: replica.subscribe(by_node(subscription)).await.unwrap(),
        });
    }
    while subscribers
        .iter_mut()
        .map(Subscriber::read_one)
        .filter(|read| *read)
        .count()
        > 0
    {}
    assert!(subscribers.iter().all(|subscriber| subscriber.held() == 1_000));
    // Once per part, not eight times.
    let parts = encoded(&subscribers[0]);
    assert!((20..80).contains(&parts), "{parts}");
}

/// In key order, of every key of a chunk what it does not leave to the chunk; and what the chunk says.
type Said = (Vec<(String, i32, String)>, (String, i32));

fn said(session: &mut Session) -> Option<Said> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let Poll::Ready(Some(message)) = session.poll_next_unpin(&mut cx) else {
        panic!("a snapshot is sent without a wait");
    };
    let decoded = SubscribeResponse::decode(message.unwrap().message()).unwrap();
    let Some(Message::SnapshotChunk(chunk)) = decoded.message else {
        return None;
    };
    let keys = chunk.resources.into_iter().map(|resource| {
        let key = resource.key.unwrap();
        (key.namespace, key.kind, key.key)
    });
    Some((keys.collect(), (chunk.namespace, chunk.kind)))
}

#[tokio::test(start_paused = true)]
async fn what_the_keys_of_a_chunk_have_in_common_with_the_first_is_sent_once() {
    let (log, replica) = with_resources(1).await;
    let changes = [
        write("x", Some("v")).of_user("jane"),
        write("y", Some("v")).of_kind("a", 99),
        write("z", Some("v")).of_kind("b", 1),
        write("z", Some("v")).of_kind("b", 99),
    ];
    commit(&log, &replica, &changes).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    assert_eq!(subscriber.client.held, model_at(&log, 2));

    let mut session = replica
        .subscribe(by_node(subscription(everything(), None)))
        .await
        .unwrap();
    assert_eq!(said(&mut session), None, "the snapshot begins");
    let key = |namespace: &str, kind, key: &str| (namespace.to_owned(), kind, key.to_owned());
    let keys = vec![
        key("", 0, "k0"),
        key("", 0, "x"),
        key("", 99, "y"),
        key("b", 0, "z"),
        key("b", 99, "z"),
    ];
    assert_eq!(said(&mut session), Some((keys, ("a".to_owned(), 1))));
}

#[tokio::test(start_paused = true)]
async fn a_long_update_is_sent_in_parts_and_applied_as_one() {
    let (log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    let large = "x".repeat(100_000);
    let changes: Vec<_> = (0..60).map(|n| write(&format!("k{n}"), Some(&large))).collect();
    commit(&log, &replica, &changes).await;
    assert!(subscriber.read_one());
    assert!(subscriber.session.is_transferring());
    commit(&log, &replica, &[write("k0", Some("small again"))]).await;
    subscriber.read();
    assert_eq!(subscriber.client.held, model_at(&log, 3));
    assert_eq!((subscriber.client.updates, subscriber.client.parts), (2, 7));
}

#[tokio::test(start_paused = true)]
async fn a_resource_larger_than_the_bound_is_sent_alone() {
    let (log, replica) = with_resources(0).await;
    let subscription = Subscription {
        max_batch_bytes: 64 * 1024,
        ..subscription(everything(), None)
    };
    let mut subscriber = Subscriber {
        client: Client::new(),
        session: replica.subscribe(by_node(subscription)).await.unwrap(),
    };
    subscriber.read();
    let large = "x".repeat(500 * 1024);
    commit(
        &log,
        &replica,
        &[
            write("a", Some("1")),
            write("b", Some(&large)),
            write("c", Some("3")),
        ],
    )
    .await;
    subscriber.read();
    assert_eq!((subscriber.client.updates, subscriber.client.parts), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_a_filter_wakes_none_of_its_streams() {
    let (log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, only("a")).await;
    subscriber.read();
    let count = Arc::new(Count::default());
    let waker = Arc::clone(&count).into();
    let mut cx = Context::from_waker(&waker);
    assert!(subscriber.session.poll_next_unpin(&mut cx).is_pending());
    for _ in 0..10 {
        commit(&log, &replica, &[write("k", Some("v")).of_kind("busy", 1)]).await;
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    subscriber.read();
    assert_eq!(subscriber.client.updates, 1);
}

#[tokio::test(start_paused = true)]
async fn an_audience_ends_with_its_last_stream() {
    let (log, replica) = with_resources(1).await;
    let subscriber = Subscriber::open(&replica, only("a")).await;
    let audience = Arc::downgrade(subscriber.session.audience());
    drop(subscriber);
    assert!(audience.upgrade().is_none());
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    let mut subscriber = Subscriber::open(&replica, only("a")).await;
    subscriber.read();
    assert_eq!(subscriber.client.held, model_at(&log, 2));
}
