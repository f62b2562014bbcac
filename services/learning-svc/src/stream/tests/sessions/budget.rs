use emend_stream::{batches::SHARED_BYTES, budget::SMALL_PART, encode::Encoded};

use super::*;

const LIMIT: usize = 1024 * 1024;
/// How many keys change at once, and the bytes of each value; together they take several small messages.
const KEYS: usize = 10;
const VALUE: usize = 60_000;
/// Slightly more than one commit takes when encoded.
const UPDATE: usize = KEYS * (VALUE + 1_000);
/// Slightly more than a small message takes: its resources are one value, or more up to the bound.
const SMALL: usize = SMALL_PART + 1_000;

/// A subscriber whose connection fetches one message ahead, which the client does not read.
struct StalledSubscriber {
    subscriber: Subscriber,
    unread: Option<Encoded>,
}

impl StalledSubscriber {
    /// Its filter covers something no other does, so that nothing is shared.
    async fn open(replica: &Replica, number: usize) -> Self {
        let names = ["a".to_owned(), format!("only-{number}")].map(|name| Namespace::parse(&name).unwrap());
        let mut subscriber = Subscriber::open(replica, Filter::new(&names, &[], true)).await;
        subscriber.read();
        Self {
            subscriber,
            unread: None,
        }
    }

    /// What its connection does when it has room to send.
    fn is_asked_for_more(&mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        if self.unread.is_none()
            && let Poll::Ready(Some(message)) = self.subscriber.session.poll_next_unpin(&mut cx)
        {
            self.unread = Some(message.unwrap());
        }
    }

    /// Reads everything there is.
    fn goes_on(&mut self) {
        if let Some(message) = self.unread.take() {
            self.subscriber.client.apply(&message);
        }
        self.subscriber.read();
    }
}

async fn change_all(log: &MemoryLog, replica: &Replica, round: i64) {
    let value = round.to_string().repeat(VALUE);
    let mut changes: Vec<_> = (0..KEYS)
        .map(|key| write(&format!("k{key}"), Some(&value)))
        .collect();
    changes.push(write("small", Some(&value[..1])).of_kind("elsewhere", 1));
    commit(log, replica, &changes).await;
}

#[tokio::test(start_paused = true)]
async fn encoded_bytes_stay_within_the_budget_however_many_clients_do_not_read() {
    let log = MemoryLog::default();
    let settings = Settings {
        encoded_bytes: LIMIT,
        ..Settings::default()
    };
    let replica = crate::stream::testing::replica(&log, settings).await;
    let budget = replica.0.streams.audiences().budget().clone();
    let mut all = Vec::new();
    for number in 0..40 {
        all.push(StalledSubscriber::open(&replica, number).await);
    }
    let mut healthy = Subscriber::open(&replica, only("elsewhere")).await;
    let mut most = 0;
    for round in 1..=8_i64 {
        change_all(&log, &replica, round).await;
        for stalling in &mut all {
            stalling.is_asked_for_more();
            most = most.max(budget.held());
        }
        healthy.read();
        assert_eq!(
            healthy.client.revision(),
            round,
            "a client that reads is not delayed"
        );
        most = most.max(budget.held());
    }
    // Beyond the budget: kept batches up to an eighth of it, the update that spent it, and a small message for each
    // stream that does not read.
    let bound = LIMIT + LIMIT / 8 + UPDATE.min(SHARED_BYTES) + all.len() * SMALL;
    assert!(most <= bound, "{most} bytes were held, more than {bound}");
    assert!(most >= LIMIT, "{most} bytes do not spend the budget");

    // It stays spent only while messages are held, and every subscriber still gets everything.
    tokio::time::advance(Duration::from_secs(1)).await;
    while all
        .iter()
        .any(|stalling| stalling.subscriber.client.held.len() < KEYS)
    {
        for stalling in &mut all {
            stalling.goes_on();
        }
        tokio::task::yield_now().await;
    }
    change_all(&log, &replica, 9).await;
    for stalling in &mut all {
        stalling.goes_on();
        assert_eq!(stalling.subscriber.client.held.len(), KEYS);
        assert_eq!(stalling.subscriber.client.revision(), 9);
    }
    drop((all, healthy));
    assert_eq!(budget.held(), 0, "nothing is held once nobody needs it");
}

#[tokio::test(start_paused = true)]
async fn a_stream_releases_a_batch_with_its_last_part() {
    let (log, replica) = with_resources(1).await;
    let mut stalling = StalledSubscriber::open(&replica, 1).await;
    let budget = replica.0.streams.audiences().budget().clone();
    commit(&log, &replica, &[write("k0", Some("again"))]).await;
    stalling.is_asked_for_more();
    let message = stalling.unread.take().expect("there is an update");
    assert!(budget.held() > 0);
    stalling.subscriber.session.audience().batches.forget();
    let bytes = message.wire_len();
    assert_eq!(budget.held(), bytes, "only its connection holds it");
    drop(message);
    assert_eq!(budget.held(), 0);
}
