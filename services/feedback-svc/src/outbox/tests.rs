//! The relay, step by step, against a scripted learning-svc.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use emend_base::{Entropy, Error, error::to_item_status, telemetry::metrics::prometheus::Gauge};
use emend_core::{EventId, InstallationId};
use emend_proto::{
    common::v1::{ItemStatus, Outcome},
    learning::v1::{Event, EventResult, event, event_result},
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Code;

mod log;

use self::log::Log;
use crate::{
    config::RelayConfig,
    corrections::feedback::NewFeedback,
    installation::Target,
    outbox::{
        Delivered, Delivery, DeliveryError,
        delivery_queue::DeliveryQueue,
        entry::{DeadLetter, DeadLetterQuery, DeliveryState},
        waiters::{Answer, Waiters},
        worker::{Relay, Step},
    },
    store::{Inserted, Store},
    testing::{TestStore, feedback, inserted, lease, namespace, stored},
};

const SOON: Duration = Duration::from_secs(20);
/// The message of every refusal; it may quote what a caller sent.
const WORDS: &str = "context: must not have the key \"jane.doe@example.org\"";

/// What learning-svc does with the next batches.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Evaluates,
    Away,
    /// Answers each event with this code.
    Refuses(Code),
    /// Refuses each batch that contains this event, without saying which event is at fault.
    Chokes(EventId),
    /// Answers for events that nobody sent.
    Confused,
}

#[derive(Debug)]
struct Learning {
    mood: Mutex<Mood>,
    batches: Mutex<Vec<Vec<Event>>>,
}

impl Learning {
    fn becomes(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn batches(&self) -> Vec<usize> {
        self.batches.lock().unwrap().iter().map(Vec::len).collect()
    }

    fn received(&self) -> Vec<Event> {
        self.batches.lock().unwrap().concat()
    }
}

#[async_trait]
impl Delivery for Learning {
    async fn deliver(
        &self,
        events: Vec<Event>,
        _: Option<InstallationId>,
    ) -> Result<Delivered, DeliveryError> {
        let mood = *self.mood.lock().unwrap();
        let answer = |event: &Event, result| EventResult {
            event_id: event.event_id.clone(),
            result: Some(result),
        };
        let outcome = |event: &Event| Outcome {
            message: format!("learned from {}", event.feedback_id),
            ..Outcome::default()
        };
        let results = match mood {
            Mood::Away => return Err(DeliveryError::Unavailable("nobody listens".into())),
            Mood::Chokes(culprit) if events.iter().any(|event| event.event_id == culprit.to_string()) => {
                self.batches.lock().unwrap().push(events);
                return Err(DeliveryError::Refused {
                    code: Code::InvalidArgument.into(),
                    message: WORDS.into(),
                });
            }
            Mood::Evaluates | Mood::Chokes(_) => events
                .iter()
                .map(|event| answer(event, event_result::Result::Outcome(outcome(event))))
                .collect(),
            Mood::Refuses(code) => {
                let refusal = Error::Aborted {
                    reason: "NOT_SO",
                    message: WORDS.into(),
                };
                let status = ItemStatus {
                    code: code.into(),
                    ..to_item_status(&refusal)
                };
                let refusal = |event| answer(event, event_result::Result::Error(status.clone()));
                events.iter().map(refusal).collect()
            }
            Mood::Confused => vec![EventResult::default(); events.len()],
        };
        self.batches.lock().unwrap().push(events);
        Ok(Delivered { results, by: None })
    }
}

struct Bench {
    database: TestStore,
    learning: Arc<Learning>,
    delivery_queue: DeliveryQueue,
    waiters: Waiters,
    relay: Arc<Relay>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(RelayConfig::default()).await
    }

    async fn with(config: RelayConfig) -> Self {
        let database = TestStore::sqlite().await;
        let learning = Arc::new(Learning {
            mood: Mutex::new(Mood::Evaluates),
            batches: Mutex::default(),
        });
        let (delivery_queue, waiters) = (DeliveryQueue::new(config.queue_events), Waiters::default());
        let relay = Relay::new(
            Arc::clone(&database.store),
            Arc::clone(&learning) as _,
            Target::new(Arc::clone(&database.store), Gauge::default()),
            delivery_queue.clone(),
            waiters.clone(),
            Entropy::seeded(1),
            config,
        );
        Self {
            database,
            learning,
            delivery_queue,
            waiters,
            relay: Arc::new(relay),
        }
    }

    fn store(&self) -> &dyn Store {
        &*self.database.store
    }

    /// Stores feedback as a submission does.
    async fn submit(&self, count: usize) -> Vec<NewFeedback> {
        let group: Vec<_> = (0..count)
            .map(|number| feedback(&format!("phrase {number}")))
            .collect();
        let reserved = self.relay.dispatch().reserve(count);
        let lease = reserved.as_ref().map(super::dispatch::Reserved::lease);
        let inserted = inserted(self.store(), &group, lease).await;
        let accepted = inserted.into_iter().map(|inserted| match inserted {
            Inserted::Stored(accepted) => accepted,
            other => panic!("not stored: {other:?}"),
        });
        let events = group.iter().map(|new| new.event.clone()).zip(accepted).collect();
        self.relay.dispatch().stored(reserved, events);
        group
    }

    async fn step(&self) -> Step {
        self.relay.run_once().await.unwrap()
    }

    /// Takes a step after a claim was requested.
    async fn claiming_step(&self) -> Step {
        self.relay.dispatch().due();
        self.step().await
    }

    async fn delivery_of(&self, new: &NewFeedback) -> DeliveryState {
        self.store()
            .feedback(&namespace(), new.id)
            .await
            .unwrap()
            .unwrap()
            .delivery
    }

    async fn dead_letters(&self) -> Vec<DeadLetter> {
        let all = DeadLetterQuery {
            namespace: None,
            after: None,
            limit: 100,
        };
        self.store().dead_letters(&all).await.unwrap()
    }
}

fn away() -> Step {
    Step::Away("learning-svc is unavailable: nobody listens".into())
}

#[tokio::test]
async fn a_queued_event_is_sent_at_once_and_its_waiter_gets_the_answer() {
    let bench = Bench::new().await;
    let waiting = feedback("a");
    let waiter = bench.waiters.register(waiting.event.id);
    let reserved = bench.relay.dispatch().reserve(1);
    let lease = reserved.as_ref().map(super::dispatch::Reserved::lease);
    let inserted = inserted(bench.store(), std::slice::from_ref(&waiting), lease).await;
    let Inserted::Stored(accepted) = inserted[0] else {
        panic!("{inserted:?}")
    };
    bench
        .relay
        .dispatch()
        .stored(reserved, vec![(waiting.event.clone(), accepted)]);

    assert_eq!(bench.step().await, Step::Answered(1));
    assert_eq!(bench.step().await, Step::Idle);
    let feedback = bench
        .store()
        .feedback(&namespace(), waiting.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(feedback.delivery, DeliveryState::Delivered);
    let told = waiter.answer(Instant::now() + SOON).await;
    assert_eq!(told, feedback.outcome.map(Answer::Evaluated));

    let [sent] = &bench.learning.received()[..] else {
        panic!("one event")
    };
    assert_eq!(sent.accept_order, accepted.order.0);
    assert_eq!(sent.traceparent, waiting.traceparent);
    let Some(event::Event::Recorded(recorded)) = &sent.event else {
        panic!("{sent:?}")
    };
    assert_eq!(
        recorded.received_at,
        Some(emend_wire::render::timestamp(accepted.at))
    );
}

#[tokio::test]
async fn a_queued_event_missing_from_the_outbox_is_not_sent() {
    let bench = Bench::with(RelayConfig {
        trusted: Duration::ZERO,
        ..RelayConfig::default()
    })
    .await;
    bench.learning.becomes(Mood::Away);
    let group = bench.submit(3).await;
    assert_eq!(bench.step().await, away());
    // As in a failover to a standby that had not received it yet.
    let lost = format!(
        "DELETE FROM outbox WHERE event_id = X'{}'",
        group[1].event.id.0.simple()
    );
    bench.database.execute(&lost).await.unwrap();
    bench.learning.becomes(Mood::Evaluates);
    assert_eq!(bench.step().await, Step::Answered(2));
    assert_eq!(bench.step().await, Step::Idle);
    let sent: Vec<String> = bench
        .learning
        .received()
        .into_iter()
        .map(|event| event.event_id)
        .collect();
    let kept = [&group[0], &group[2]].map(|feedback| feedback.event.id.to_string());
    assert_eq!(sent, kept);
    for feedback in [&group[0], &group[2]] {
        assert_eq!(bench.delivery_of(feedback).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn events_left_by_another_replica_are_claimed_after_their_lease() {
    let bench = Bench::new().await;
    let left = feedback("a");
    stored(bench.store(), &left, Some(lease())).await;
    assert_eq!(bench.claiming_step().await, Step::Idle);
    bench.database.advance(30).await;
    assert_eq!(bench.claiming_step().await, Step::Answered(1));
    assert_eq!(bench.delivery_of(&left).await, DeliveryState::Delivered);
    // What it sends is what the submitting replica would have sent.
    let [sent] = &bench.learning.received()[..] else {
        panic!("one event")
    };
    assert_eq!(
        (sent.event_id.as_str(), sent.accept_order > 0),
        (left.event.id.to_string().as_str(), true)
    );
}

#[tokio::test]
async fn while_learning_svc_is_away_no_attempt_counts_and_nothing_is_lost() {
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Away);
    let submitted = bench.submit(10).await;
    for _ in 0..100 {
        assert_eq!(bench.step().await, away());
    }
    // The leases expire, and other replicas try as well.
    for _ in 0..10 {
        bench.database.advance(3_600).await;
        assert_eq!(bench.claiming_step().await, away());
    }
    assert_eq!(bench.dead_letters().await, []);
    bench.database.advance(3_600).await;
    let claimed = bench.store().claim(100, lease()).await.unwrap();
    assert_eq!(claimed.len(), 10);
    assert!(claimed.iter().all(|claimed| claimed.attempts == 0));

    bench.learning.becomes(Mood::Evaluates);
    assert_eq!(bench.step().await, Step::Answered(10));
    for new in &submitted {
        assert_eq!(bench.delivery_of(new).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn a_temporary_refusal_is_retried_without_limit() {
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Refuses(Code::ResourceExhausted));
    let new = &bench.submit(1).await[0];
    assert_eq!(bench.step().await, Step::Answered(1));
    // Not before its back-off has passed.
    assert_eq!(bench.claiming_step().await, Step::Idle);
    for _ in 0..50 {
        bench.database.advance(60).await;
        assert_eq!(bench.claiming_step().await, Step::Answered(1));
    }
    assert_eq!(bench.dead_letters().await, []);
    assert_eq!(bench.delivery_of(new).await, DeliveryState::Pending);
    bench.learning.becomes(Mood::Evaluates);
    bench.database.advance(60).await;
    assert_eq!(bench.claiming_step().await, Step::Answered(1));
    assert_eq!(bench.delivery_of(new).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_final_refusal_is_a_dead_letter_until_it_is_made_due_again() {
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Refuses(Code::FailedPrecondition));
    let new = &bench.submit(1).await[0];
    let waiter = bench.waiters.register(new.event.id);
    assert_eq!(bench.step().await, Step::Answered(1));
    assert_eq!(waiter.answer(Instant::now() + SOON).await, Some(Answer::Refused));
    let [letter] = &bench.dead_letters().await[..] else {
        panic!("one dead letter")
    };
    assert_eq!(
        (letter.event_id, letter.feedback_id, letter.attempts),
        (new.event.id, new.id, 1)
    );
    assert_eq!(
        (letter.refusal.code, letter.refusal.error.as_str()),
        (Code::FailedPrecondition.into(), WORDS)
    );
    bench.database.advance(3_600).await;
    assert_eq!(bench.claiming_step().await, Step::Idle);

    bench.learning.becomes(Mood::Evaluates);
    assert_eq!(bench.store().redrive(&[new.event.id], None).await.unwrap(), 1);
    assert_eq!(bench.claiming_step().await, Step::Answered(1));
    assert_eq!(bench.delivery_of(new).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn the_log_names_refused_events_and_reasons_but_never_messages() {
    Log::begin();
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Refuses(Code::ResourceExhausted));
    let again = bench.submit(1).await[0].event.id;
    assert_eq!(bench.step().await, Step::Answered(1));
    for _ in 1..20 {
        bench.database.advance(600).await;
        assert_eq!(bench.claiming_step().await, Step::Answered(1));
    }
    let told = |attempts: u32| {
        format!(
            "WARN message=an event is tried again and again event_id={again} attempts={attempts} \
             code=\"RESOURCE_EXHAUSTED\" reason=\"NOT_SO\""
        )
    };
    assert_eq!(Log::lines(), [3, 4, 8, 16].map(told));

    bench.learning.becomes(Mood::Refuses(Code::FailedPrecondition));
    bench.database.advance(600).await;
    assert_eq!(bench.claiming_step().await, Step::Answered(1));
    let choking = bench.submit(2).await[0].event.id;
    bench.learning.becomes(Mood::Chokes(choking));
    assert_eq!(bench.step().await, Step::Answered(2));
    assert_eq!(
        Log::lines(),
        [
            format!("ERROR message=a dead letter event_id={again} code=\"FAILED_PRECONDITION\" reason=\"NOT_SO\""),
            "WARN message=a batch was refused: sending its events one by one code=\"INVALID_ARGUMENT\" events=2".to_owned(),
            format!("ERROR message=a dead letter event_id={choking} code=\"INVALID_ARGUMENT\""),
        ]
    );
}

#[tokio::test]
async fn a_batch_refused_as_a_whole_costs_only_the_bad_event() {
    let bench = Bench::new().await;
    let submitted = bench.submit(5).await;
    bench.learning.becomes(Mood::Chokes(submitted[2].event.id));
    assert_eq!(bench.step().await, Step::Answered(5));
    assert_eq!(bench.learning.batches(), [5, 1, 1, 1, 1, 1]);
    let dead: Vec<_> = bench
        .dead_letters()
        .await
        .into_iter()
        .map(|letter| letter.event_id)
        .collect();
    assert_eq!(dead, [submitted[2].event.id]);
    for (place, new) in submitted.iter().enumerate() {
        let expected = if place == 2 {
            DeliveryState::DeadLetter
        } else {
            DeliveryState::Delivered
        };
        assert_eq!(bench.delivery_of(new).await, expected);
    }
}

#[tokio::test]
async fn answers_for_unknown_events_settle_nothing() {
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Confused);
    let new = &bench.submit(1).await[0];
    assert!(matches!(bench.step().await, Step::Away(_)));
    assert_eq!(bench.delivery_of(new).await, DeliveryState::Pending);
    bench.learning.becomes(Mood::Evaluates);
    assert_eq!(bench.step().await, Step::Answered(1));
}

#[tokio::test]
async fn events_beyond_the_queue_wait_in_the_outbox() {
    let bench = Bench::with(RelayConfig {
        queue_events: 10,
        batch_events: 4,
        ..RelayConfig::default()
    })
    .await;
    bench.submit(8).await;
    let beyond = bench.submit(5).await;
    assert_eq!(bench.delivery_queue.len(), 8);
    assert_eq!(
        [bench.step().await, bench.step().await],
        [Step::Answered(4), Step::Answered(4)]
    );
    // Stored without a lease, so nothing has to expire.
    assert_eq!(
        [bench.step().await, bench.step().await],
        [Step::Answered(4), Step::Answered(1)]
    );
    assert_eq!(bench.step().await, Step::Idle);
    for new in &beyond {
        assert_eq!(bench.delivery_of(new).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn events_whose_lease_would_expire_in_flight_are_left_to_a_claim() {
    let brief = RelayConfig {
        lease: Duration::from_secs(9),
        ..RelayConfig::default()
    };
    let bench = Bench::with(RelayConfig {
        answer_timeout: Duration::from_secs(10),
        ..brief
    })
    .await;
    bench.submit(1).await;
    assert_eq!(bench.step().await, Step::Idle);
    assert_eq!(bench.learning.batches(), [0; 0]);
}

#[tokio::test]
async fn an_unreadable_event_is_a_dead_letter_and_delays_no_other() {
    let bench = Bench::new().await;
    let (unreadable, fine) = (feedback("a"), feedback("b"));
    stored(bench.store(), &unreadable, None).await;
    bench
        .database
        .execute("UPDATE outbox SET payload = x'ff'")
        .await
        .unwrap();
    stored(bench.store(), &fine, None).await;
    assert_eq!(bench.claiming_step().await, Step::Answered(1));
    assert_eq!(bench.delivery_of(&unreadable).await, DeliveryState::DeadLetter);
    assert_eq!(bench.delivery_of(&fine).await, DeliveryState::Delivered);
    assert_eq!(
        bench.dead_letters().await[0].refusal.code,
        i32::from(Code::DataLoss)
    );
}

#[tokio::test]
async fn workers_send_queued_events_before_they_end() {
    let bench = Bench::with(RelayConfig {
        batch_events: 3,
        ..RelayConfig::default()
    })
    .await;
    bench.submit(10).await;
    let draining = CancellationToken::new();
    draining.cancel();
    timeout(SOON, Arc::clone(&bench.relay).run(draining))
        .await
        .expect("the worker ends");
    assert_eq!(bench.learning.received().len(), 10);
}

#[tokio::test]
async fn a_queue_that_is_never_empty_does_not_prevent_claims() {
    let one_by_one = RelayConfig {
        batch_events: 1,
        ..RelayConfig::default()
    };
    let bench = Bench::with(one_by_one).await;
    let left = feedback("left behind");
    stored(bench.store(), &left, None).await;
    bench.submit(3).await;
    // The timer's first reminder can wait, the second can't; claimed events then wait their turn.
    for _ in 0..2 {
        bench.delivery_queue.remind_of_claim();
        bench.submit(1).await;
        assert_eq!(bench.step().await, Step::Answered(1));
    }
    assert_eq!(bench.delivery_of(&left).await, DeliveryState::Pending);
    for _ in 0..4 {
        bench.submit(1).await;
        assert_eq!(bench.step().await, Step::Answered(1));
    }
    assert_eq!(bench.delivery_of(&left).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn workers_that_end_while_learning_svc_is_away_release_their_leases() {
    let bench = Bench::new().await;
    bench.learning.becomes(Mood::Away);
    bench.submit(10).await;
    let draining = CancellationToken::new();
    let worker = tokio::spawn(Arc::clone(&bench.relay).run(draining.clone()));
    draining.cancel();
    timeout(SOON, worker).await.expect("the worker ends").unwrap();
    // The next start need not wait for the leases to expire.
    assert_eq!(bench.store().claim(100, lease()).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_worker_wakes_for_queued_events_and_for_the_timer() {
    let quick = RelayConfig {
        poll: Duration::from_millis(5),
        ..RelayConfig::default()
    };
    let bench = Bench::with(quick).await;
    let draining = CancellationToken::new();
    let worker = tokio::spawn(Arc::clone(&bench.relay).run(draining.clone()));
    let timer = tokio::spawn(Arc::clone(&bench.relay).ask_periodically(draining.clone()));
    let handed_over = bench.submit(1).await.remove(0);
    let due = feedback("left behind");
    stored(bench.store(), &due, None).await;
    for new in [&handed_over, &due] {
        timeout(SOON, async {
            while bench.delivery_of(new).await != DeliveryState::Delivered {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .expect("it is delivered");
    }
    assert!(bench.relay.is_alive());
    draining.cancel();
    worker.await.unwrap();
    timer.await.unwrap();
}
