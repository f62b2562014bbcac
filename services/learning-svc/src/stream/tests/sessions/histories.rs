use jiff::SignedDuration;
use learning_store::log::LogStore as _;
use proptest::prelude::*;

use super::*;

/// An event on a log, its two replicas or a subscriber.
#[derive(Debug, Clone)]
enum HistoryEvent {
    /// A revision: namespace, key, whether it is a user's own, value.
    Commit(Vec<(bool, u8, bool, bool)>),
    /// That replica catches up.
    CatchUp(usize),
    /// That subscriber reads this many messages.
    Read(usize, usize),
    /// That subscriber reconnects, to that replica.
    Reconnect(usize, usize),
    /// Time passes, in seconds.
    Wait(u64),
    /// Old deletions are forgotten.
    Forget,
}

fn event() -> impl Strategy<Value = HistoryEvent> {
    let change = (any::<bool>(), 0..5u8, any::<bool>(), any::<bool>());
    prop_oneof![
        4 => prop::collection::vec(change, 1..4).prop_map(HistoryEvent::Commit),
        3 => (0..2usize).prop_map(HistoryEvent::CatchUp),
        4 => (0..3usize, 1..5usize).prop_map(|(who, count)| HistoryEvent::Read(who, count)),
        2 => (0..3usize, 0..2usize).prop_map(|(who, at)| HistoryEvent::Reconnect(who, at)),
        1 => (1..40u64).prop_map(HistoryEvent::Wait),
        1 => Just(HistoryEvent::Forget),
    ]
}

fn changes(step: &[(bool, u8, bool, bool)]) -> Vec<Written> {
    let mut seen = std::collections::BTreeSet::new();
    let written = step.iter().map(|(other, key, own, put)| {
        let value = put.then_some("some value that is long enough to make parts");
        let written = write(&key.to_string(), value).of_kind(if *other { "b" } else { "a" }, 1);
        if *own { written.of_user("jane") } else { written }
    });
    written
        .filter(|written| seen.insert(written.contest_id()))
        .collect()
}

async fn reconnect(at: &Replica, filter: &Filter, subscriber: Option<Subscriber>) -> Subscriber {
    let mut client = subscriber.map(|subscriber| subscriber.client).unwrap_or_default();
    let subscription = Subscription {
        max_batch_bytes: 200,
        ..subscription(filter.clone(), client.reconnect())
    };
    // The replica may first have to catch up with the cursor.
    let (session, ()) = tokio::join!(at.subscribe(by_node(subscription)), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        catch_up(at).await;
    });
    Subscriber {
        client,
        session: session.unwrap(),
    }
}

async fn play(events: Vec<HistoryEvent>) {
    let log = MemoryLog::default();
    let replicas = [
        replica(&log, Settings::default()).await,
        replica(&log, Settings::default()).await,
    ];
    let filters = [everything(), Filter::new(&[], &[], false), only("a")];
    let mut subscribers = Vec::new();
    for filter in &filters {
        subscribers.push(reconnect(&replicas[0], filter, None).await);
    }
    let mut at = [0; 3];
    for event in events {
        match event {
            HistoryEvent::Commit(step) => {
                log.append(&changes(&step)).await;
            }
            HistoryEvent::CatchUp(replica) => catch_up(&replicas[replica]).await,
            HistoryEvent::Read(who, count) => {
                for _ in 0..count {
                    subscribers[who].read_one();
                }
            }
            HistoryEvent::Reconnect(who, replica) => {
                at[who] = replica;
                let before = subscribers.remove(who);
                let again = reconnect(&replicas[replica], &filters[who], Some(before)).await;
                subscribers.insert(who, again);
            }
            HistoryEvent::Wait(seconds) => {
                log.advance(SignedDuration::from_secs(i64::try_from(seconds).unwrap()));
                tokio::time::advance(Duration::from_secs(seconds)).await;
            }
            HistoryEvent::Forget => {
                log.raise_horizon(SignedDuration::from_secs(30), 3).await.unwrap();
            }
        }
    }
    for replica in &replicas {
        catch_up(replica).await;
    }
    let head = log.head().await.unwrap().revision;
    for (subscriber, filter) in subscribers.iter_mut().zip(&filters) {
        subscriber.read();
        assert_eq!(subscriber.client.held, covered(&model_at(&log, head), filter));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn after_any_history_every_subscriber_equals_the_database(
        events in prop::collection::vec(event(), 1..60),
    ) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(play(events));
    }
}
