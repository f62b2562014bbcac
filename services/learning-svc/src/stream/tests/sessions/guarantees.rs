use emend_stream::transfer::Pace;

use super::*;

#[tokio::test(start_paused = true)]
async fn guarantee_1_ordered_revisions_never_go_back() {
    let (log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    let mut before = 0;
    for round in 0..20 {
        commit(&log, &replica, &[write("k", Some(&round.to_string()))]).await;
        if round % 3 == 0 {
            tokio::time::advance(Duration::from_secs(40)).await;
        }
        while subscriber.read_one() {
            assert!(subscriber.client.revision() >= before);
            before = subscriber.client.revision();
        }
    }
    assert_eq!(before, 21);
}

#[tokio::test(start_paused = true)]
async fn guarantee_2_unique_no_change_comes_twice() {
    let (log, replica) = with_resources(0).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    for round in 0..20 {
        commit(&log, &replica, &[write(&format!("k{round}"), Some("v"))]).await;
        subscriber.read();
        // The change is not sent again, whatever wakes the stream.
        tokio::time::advance(Duration::from_secs(40)).await;
        subscriber.read();
        if round % 5 == 0 {
            subscriber = Subscriber::resume(&replica, everything(), subscriber.client).await;
        }
    }
    assert_eq!(subscriber.client.changes, 20);
    assert_eq!(subscriber.client.snapshots.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn guarantee_3_reliable_the_newest_value_of_every_key_arrives_and_older_ones_may_be_left_out() {
    let (log, replica) = with_resources(0).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    for round in 0..100 {
        let key = format!("k{}", round % 7);
        let value = (round % 11 != 0).then(|| round.to_string());
        commit(&log, &replica, &[write(&key, value.as_deref())]).await;
    }
    subscriber.read();
    assert_eq!(subscriber.client.held, model_at(&log, 100));
    assert_eq!((subscriber.client.updates, subscriber.client.changes), (1, 7));
}

#[tokio::test(start_paused = true)]
async fn guarantee_4_atomic_what_one_revision_changed_becomes_visible_together() {
    let log = MemoryLog::default();
    let replica = replica(&log, Settings::default()).await;
    let subscription = Subscription {
        max_batch_bytes: 64,
        ..subscription(everything(), None)
    };
    let mut subscriber = Subscriber {
        client: Client::new(),
        session: replica.subscribe(by_node(subscription)).await.unwrap(),
    };
    subscriber.read();
    for round in 0..10 {
        let value = round.to_string();
        let changes: Vec<_> = ["a", "b", "c"].map(|key| write(key, Some(&value))).into();
        commit(&log, &replica, &changes).await;
        while subscriber.read_one() {
            let values: std::collections::BTreeSet<_> = subscriber.client.held.values().collect();
            assert!(values.len() <= 1, "all three are of one revision: {values:?}");
        }
    }
    assert_eq!(subscriber.client.held, model_at(&log, 10));
    assert_eq!((subscriber.client.updates, subscriber.client.parts), (10, 30));
}

#[tokio::test(start_paused = true)]
async fn guarantee_5_resumable_from_every_cursor_that_was_handed_out() {
    let (log, replica) = with_resources(3).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    let mut copies = Vec::new();
    for round in 0..12 {
        subscriber.read();
        copies.push((subscriber.client.cursor.clone(), subscriber.client.held.clone()));
        if round % 4 == 0 {
            tokio::time::advance(Duration::from_secs(40)).await;
        } else {
            let value = (round % 3 != 0).then_some("v");
            commit(&log, &replica, &[write(&format!("k{}", round % 5), value)]).await;
        }
    }
    subscriber.read();
    assert!(subscriber.client.bookmarks >= 2 && subscriber.client.updates >= 2);
    for (cursor, held) in copies {
        let client = Client::at(held, cursor);
        let mut resumed = Subscriber::resume(&replica, everything(), client).await;
        resumed.read();
        assert_eq!((resumed.client.resumed, resumed.client.snapshots.len()), (1, 0));
        assert_eq!(resumed.client.held, subscriber.client.held);
    }
}

#[tokio::test(start_paused = true)]
async fn guarantee_6_bookmarkable_after_a_bookmark_nothing_at_or_below_it_follows() {
    let (log, replica) = with_resources(1).await;
    let mut subscriber = Subscriber::open(&replica, only("a")).await;
    subscriber.read();
    // Changes outside the filter move the bookmark too.
    for _ in 0..5 {
        commit(&log, &replica, &[write("k", Some("v")).of_kind("other", 1)]).await;
    }
    subscriber.read();
    assert_eq!(
        (subscriber.client.revision(), subscriber.client.bookmarks),
        (1, 0)
    );
    tokio::time::advance(Duration::from_secs(40)).await;
    subscriber.read();
    assert_eq!(
        (subscriber.client.revision(), subscriber.client.bookmarks),
        (6, 1)
    );
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    subscriber.read();
    // The client asserts that the update begins at the bookmark and holds nothing at or below it.
    assert_eq!((subscriber.client.revision(), subscriber.client.updates), (7, 1));
}

#[tokio::test(start_paused = true)]
async fn guarantee_7_what_was_deleted_while_away_is_deleted_on_return() {
    let (log, replica) = with_resources(4).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    let client = subscriber.client;
    drop(subscriber.session);
    commit(&log, &replica, &[write("k0", None), write("new", Some("v"))]).await;
    commit(&log, &replica, &[write("k1", Some("changed")), write("k2", None)]).await;
    commit(&log, &replica, &[write("k2", Some("back"))]).await;
    let mut subscriber = Subscriber::resume(&replica, everything(), client).await;
    subscriber.read();
    assert_eq!(subscriber.client.held, model_at(&log, 4));
    assert_eq!(
        (subscriber.client.resumed, subscriber.client.snapshots.len()),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn guarantee_8_the_filter_never_leaks() {
    let (log, replica) = with_resources(2).await;
    let filters = [
        only("a"),
        Filter::new(&[], &[1], false),
        Filter::new(&[Namespace::parse("b").unwrap()], &[99], true),
    ];
    let mut subscribers = Vec::new();
    for filter in filters.clone() {
        subscribers.push(Subscriber::open(&replica, filter).await);
    }
    for round in 0..10 {
        let value = (round % 4 != 3).then_some("v");
        let changes = [
            write("k", value),
            write("k", value).of_user("jane"),
            write("k", value).of_kind("b", 99),
            write("k", value).of_kind("b", 99).of_user("jane"),
            write("k", value).of_kind("b", 1),
        ];
        commit(&log, &replica, &changes).await;
        for (subscriber, filter) in subscribers.iter_mut().zip(&filters) {
            subscriber.read();
            tokio::time::advance(Duration::from_secs(40)).await;
            catch_up(&replica).await;
            // Bookmarks name the digests of exactly what the client holds.
            subscriber.read();
            assert_eq!(
                subscriber.client.held,
                covered(&model_at(&log, 2 + round), filter)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn guarantee_9_a_stalled_subscriber_delays_no_other_and_takes_bounded_memory() {
    let (log, replica) = with_resources(1).await;
    let mut stalled = Subscriber::open(&replica, everything()).await;
    stalled.read();
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    for round in 0..3_000 {
        commit(
            &log,
            &replica,
            &[write(&format!("k{}", round % 10), Some(&round.to_string()))],
        )
        .await;
        subscriber.read();
    }
    assert_eq!(subscriber.client.updates, 3_000);
    // The stalled one holds nothing but its cursor, and gets the newest state of each key once.
    assert!(stalled.session.is_following());
    stalled.read();
    assert_eq!((stalled.client.updates, stalled.client.changes), (1, 10));
    assert_eq!(stalled.client.held, subscriber.client.held);
}

#[tokio::test(start_paused = true)]
async fn guarantee_9_stalled_snapshots_lose_their_permits_to_waiting_streams() {
    let log = MemoryLog::default();
    let settings = Settings {
        transfers: 2,
        transfer_pace: Pace {
            stalls_after: Duration::from_secs(10),
            bytes_per_second: 0,
        },
        ..Settings::default()
    };
    let replica = replica(&log, settings).await;
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let mut subscriber = Subscriber::open(&replica, everything()).await;
        assert!(subscriber.read_one());
        stalled.push(subscriber);
    }
    let mut waiting = Subscriber::open(&replica, everything()).await;
    assert!(!waiting.read_one());
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(stalled[0].read_one(), "a slow transfer keeps its permit");
    let first = tokio::time::timeout(Duration::from_mins(1), waiting.session.next()).await;
    waiting.client.apply(&first.unwrap().unwrap().unwrap());
    waiting.read();
    assert_eq!(waiting.client.held, model_at(&log, 1));
    // The one that stalled longest ends and resumes from its cursor; the other continues.
    let error = stalled[1].session.next().await.unwrap().unwrap_err();
    assert_eq!(error.reason(), "STREAM_STALLED");
    assert!(stalled[1].session.next().await.is_none());
    stalled[0].read();
    assert_eq!(stalled[0].client.held, model_at(&log, 1));
}

#[tokio::test(start_paused = true)]
async fn guarantee_9_snapshots_read_too_slowly_lose_their_permits_to_waiting_streams() {
    let log = MemoryLog::default();
    let settings = Settings {
        transfers: 1,
        ..Settings::default()
    };
    let replica = replica(&log, settings).await;
    let value = "x".repeat(10_000);
    for from in [0, 500] {
        let keys = from..from + 500;
        let values: Vec<_> = keys.map(|key| write(&format!("k{key}"), Some(&value))).collect();
        commit(&log, &replica, &values).await;
    }
    let in_small_messages = Subscription {
        max_batch_bytes: 64 * 1024,
        ..subscription(everything(), None)
    };
    let mut slow = Subscriber {
        client: Client::new(),
        session: replica.subscribe(by_node(in_small_messages)).await.unwrap(),
    };
    assert!(slow.read_one(), "it has the permit");
    let mut waiting = Subscriber::open(&replica, everything()).await;
    for _ in 0..12 {
        assert!(!waiting.read_one());
        // 128 KiB a second: fast enough to continue to the end.
        assert!(slow.read_one() && slow.read_one());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    // A message every nine seconds is never a stall, but would hold the permit for long.
    let mut read = 0;
    let refusal = loop {
        assert!(!waiting.read_one() || read > 0);
        tokio::time::advance(Duration::from_secs(9)).await;
        match slow.session.next().await {
            Some(Ok(_)) => read += 1,
            Some(Err(refusal)) => break refusal,
            None => panic!("it was sent whole in {read} messages"),
        }
    };
    assert_eq!(refusal.reason(), "STREAM_STALLED");
    waiting.read();
    assert_eq!(waiting.client.held, model_at(&log, 2));
}

#[tokio::test(start_paused = true)]
async fn guarantee_9_one_caller_can_not_take_all_snapshot_permits() {
    let log = MemoryLog::default();
    let settings = Settings {
        transfers: 4,
        ..Settings::default()
    };
    let replica = replica(&log, settings).await;
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    let open = async |caller: &Caller| {
        let subscription = Subscription {
            client: ClientKey::of(Some(caller), None),
            ..subscription(everything(), None)
        };
        Subscriber {
            client: Client::new(),
            session: replica.subscribe(by_node(subscription)).await.unwrap(),
        }
    };
    let greedy = Caller::parse("greedy").unwrap();
    let mut begun = Vec::new();
    for _ in 0..3 {
        let mut subscriber = open(&greedy).await;
        assert!(subscriber.read_one());
        begun.push(subscriber);
    }
    let mut waiting = open(&greedy).await;
    assert!(!waiting.read_one(), "the last permit is for others");
    let mut other = open(&Caller::parse("other").unwrap()).await;
    other.read();
    assert_eq!(other.client.held, model_at(&log, 1));
    // A transfer that ends makes room for the caller's next one.
    begun.remove(0).read();
    waiting.read();
    assert_eq!(waiting.client.held, model_at(&log, 1));
}

#[tokio::test(start_paused = true)]
async fn guarantee_9_waiting_callers_get_snapshot_permits_in_turn() {
    let log = MemoryLog::default();
    let settings = Settings {
        transfers: 1,
        ..Settings::default()
    };
    let replica = replica(&log, settings).await;
    commit(&log, &replica, &[write("k", Some("v"))]).await;
    let open = async |caller: &Caller| {
        let subscription = Subscription {
            client: ClientKey::of(Some(caller), None),
            ..subscription(everything(), None)
        };
        Subscriber {
            client: Client::new(),
            session: replica.subscribe(by_node(subscription)).await.unwrap(),
        }
    };
    let [greedy, modest] = ["greedy", "modest"].map(|name| Caller::parse(name).unwrap());
    let mut begun = open(&greedy).await;
    assert!(begun.read_one());
    let mut waiting = Vec::new();
    for caller in [&greedy, &greedy, &modest] {
        let mut subscriber = open(caller).await;
        assert!(!subscriber.read_one());
        waiting.push(subscriber);
    }
    let mut other = waiting.pop().unwrap();
    // After the greedy caller's first transfer it is the modest caller's turn, before the greedy one's second.
    begun.read();
    waiting.remove(0).read();
    assert!(!waiting[0].read_one());
    other.read();
    assert_eq!(other.client.held, model_at(&log, 1));
    waiting[0].read();
    assert_eq!(waiting[0].client.held, model_at(&log, 1));
}

#[tokio::test(start_paused = true)]
async fn guarantee_10_publishing_never_waits_for_a_subscriber() {
    let (log, replica) = with_resources(1).await;
    let mut subscribers = Vec::new();
    for read in 0..4 {
        let mut subscriber = Subscriber::open(&replica, everything()).await;
        for _ in 0..read {
            subscriber.read_one();
        }
        subscribers.push(subscriber);
    }
    // One in each phase, none ever polled again: the tailer still gets to the head, in steps that complete.
    for round in 2..50 {
        log.append(&[write("k", Some("v"))]).await;
        let step = std::pin::pin!(replica.tailer().run_once())
            .poll(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(step, Poll::Ready(Ok(_))));
        assert_eq!(replica.state().unwrap().revision(), round);
    }
}

#[tokio::test(start_paused = true)]
async fn guarantee_11_an_empty_snapshot_differs_from_being_current() {
    let (_log, replica) = with_resources(0).await;
    let mut subscriber = Subscriber::open(&replica, everything()).await;
    subscriber.read();
    assert_eq!(subscriber.client.snapshots, [SnapshotReason::NoCursor]);
    assert_eq!((subscriber.held(), subscriber.client.cursors.len()), (0, 1));
    let mut subscriber = Subscriber::resume(&replica, everything(), subscriber.client).await;
    subscriber.read();
    assert_eq!(
        (subscriber.client.resumed, subscriber.client.snapshots.len()),
        (1, 1)
    );
}
