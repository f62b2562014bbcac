//! The relay, step by step, against a scripted learning-svc.

use emend_store::StoreError;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use emend_base::{Entropy, Error, error::to_item_status, telemetry::metrics::prometheus::Gauge};
use emend_core::{EventId, InstallationId};
use emend_proto::{
    common::v1::{ItemStatus, Outcome},
    learning::v1::{Event, EventResult, FeedbackStandings, GetStandingsRequest, event, event_result},
};
use emend_store::simulation::{Interference, NoInterference};
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Code;

mod log;

use crate::{
    installation::Target,
    outbox::{
        Delivered, Delivery, DeliveryError,
        config::RelayConfig,
        delivery_queue::DeliveryQueue,
        tests::log::Log,
        waiters::{Answer, Waiters},
        worker::{Relay, Step},
    },
};
use feedback_store::{
    memory::MemoryStore,
    ports::{FeedbackStore, Inserted},
    records::{
        feedback::NewFeedback,
        outbox::{DeadLetter, DeadLetterQuery, DeliveryState},
    },
    testing::{Backend, TestStore, TestedStore, feedback, inserted, lease, namespace, stored},
};

const SOON: Duration = Duration::from_secs(20);
/// The message of every refusal; it may quote what a caller sent.
const WORDS: &str = "context: must not have the key \"jane.doe@example.org\"";

/// What learning-svc does with the next batches.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
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
    behaviour: Mutex<Behaviour>,
    batches: Mutex<Vec<Vec<Event>>>,
}

impl Learning {
    fn becomes(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
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
        let behaviour = *self.behaviour.lock().unwrap();
        let answer = |event: &Event, result| EventResult {
            event_id: event.event_id.clone(),
            result: Some(result),
        };
        let outcome = |event: &Event| Outcome {
            message: format!("learned from {}", event.feedback_id),
            ..Outcome::default()
        };
        let results = match behaviour {
            Behaviour::Away => return Err(DeliveryError::Unavailable("nobody listens".into())),
            Behaviour::Chokes(culprit)
                if events.iter().any(|event| event.event_id == culprit.to_string()) =>
            {
                self.batches.lock().unwrap().push(events);
                return Err(DeliveryError::Refused {
                    code: Code::InvalidArgument.into(),
                    message: WORDS.into(),
                });
            }
            Behaviour::Evaluates | Behaviour::Chokes(_) => events
                .iter()
                .map(|event| answer(event, event_result::Result::Outcome(outcome(event))))
                .collect(),
            Behaviour::Refuses(code) => {
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
            Behaviour::Confused => vec![EventResult::default(); events.len()],
        };
        self.batches.lock().unwrap().push(events);
        Ok(Delivered { results, by: None })
    }

    async fn standings(
        &self,
        _: GetStandingsRequest,
        _: Instant,
    ) -> Result<Vec<FeedbackStandings>, DeliveryError> {
        Err(DeliveryError::Unavailable("the relay asks for none".into()))
    }
}

struct Fixture {
    database: TestStore,
    learning: Arc<Learning>,
    delivery_queue: DeliveryQueue,
    waiters: Waiters,
    relay: Arc<Relay>,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(RelayConfig::default()).await
    }

    async fn with(config: RelayConfig) -> Self {
        let database = TestStore::sqlite().await;
        let store = database.store.clone();
        Self::on(database, store, config)
    }

    /// With a relay whose connection to the database is `store`.
    fn on(database: TestStore, store: Arc<dyn FeedbackStore>, config: RelayConfig) -> Self {
        let learning = Arc::new(Learning {
            behaviour: Mutex::new(Behaviour::Evaluates),
            batches: Mutex::default(),
        });
        let (delivery_queue, waiters) = (DeliveryQueue::new(config.queue_events), Waiters::default());
        let relay = Relay::new(
            store.clone(),
            Arc::clone(&learning) as _,
            Target::new(store, Gauge::default()),
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

    fn store(&self) -> &dyn TestedStore {
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
    let fixture = Fixture::new().await;
    let waiting = feedback("a");
    let waiter = fixture.waiters.register(waiting.event.id);
    let reserved = fixture.relay.dispatch().reserve(1);
    let lease = reserved.as_ref().map(super::dispatch::Reserved::lease);
    let inserted = inserted(fixture.store(), std::slice::from_ref(&waiting), lease).await;
    let Inserted::Stored(accepted) = inserted[0] else {
        panic!("{inserted:?}")
    };
    fixture
        .relay
        .dispatch()
        .stored(reserved, vec![(waiting.event.clone(), accepted)]);

    assert_eq!(fixture.step().await, Step::Answered(1));
    assert_eq!(fixture.step().await, Step::Idle);
    let feedback = fixture
        .store()
        .feedback(&namespace(), waiting.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(feedback.delivery, DeliveryState::Delivered);
    let answer = waiter.answer(Instant::now() + SOON).await;
    assert_eq!(answer, feedback.outcome.map(Answer::Evaluated));

    let [sent] = &fixture.learning.received()[..] else {
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
    let fixture = Fixture::with(RelayConfig {
        trusted: Duration::ZERO,
        ..RelayConfig::default()
    })
    .await;
    fixture.learning.becomes(Behaviour::Away);
    let group = fixture.submit(3).await;
    assert_eq!(fixture.step().await, away());
    // As in a failover to a standby that had not received it yet.
    let lost = format!(
        "DELETE FROM outbox WHERE event_id = X'{}'",
        group[1].event.id.0.simple()
    );
    fixture.database.execute(&lost).await.unwrap();
    fixture.learning.becomes(Behaviour::Evaluates);
    assert_eq!(fixture.step().await, Step::Answered(2));
    assert_eq!(fixture.step().await, Step::Idle);
    let sent: Vec<String> = fixture
        .learning
        .received()
        .into_iter()
        .map(|event| event.event_id)
        .collect();
    let kept = [&group[0], &group[2]].map(|feedback| feedback.event.id.to_string());
    assert_eq!(sent, kept);
    for feedback in [&group[0], &group[2]] {
        assert_eq!(fixture.delivery_of(feedback).await, DeliveryState::Delivered);
    }
}

/// While the known installation is read, the database fails over to a standby that had not received the outbox.
#[derive(Debug)]
struct Failover(MemoryStore);

impl Interference for Failover {
    fn before<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        if call == "installation" {
            self.0.tables().lose_outbox();
        }
        NoInterference.before(call)
    }

    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        NoInterference.after(call)
    }
}

#[tokio::test]
async fn events_lost_while_the_known_installation_is_read_are_not_sent() {
    let database = TestStore::open(Backend::Memory).await.unwrap();
    let store = database.memory();
    let store = store.connect(Arc::new(Failover(store.clone())));
    let trusts_nothing = RelayConfig {
        trusted: Duration::ZERO,
        ..RelayConfig::default()
    };
    let fixture = Fixture::on(database, Arc::new(store), trusts_nothing);
    fixture.submit(3).await;
    assert_eq!(fixture.delivery_queue.len(), 3);
    assert_eq!(fixture.step().await, Step::Idle);
    assert_eq!(fixture.learning.batches(), [0; 0]);
}

#[tokio::test]
async fn events_left_by_another_replica_are_claimed_after_their_lease() {
    let fixture = Fixture::new().await;
    let left = feedback("a");
    stored(fixture.store(), &left, Some(lease())).await;
    assert_eq!(fixture.claiming_step().await, Step::Idle);
    fixture.database.advance(30).await;
    assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    assert_eq!(fixture.delivery_of(&left).await, DeliveryState::Delivered);
    // What it sends is what the submitting replica would have sent.
    let [sent] = &fixture.learning.received()[..] else {
        panic!("one event")
    };
    assert_eq!(
        (sent.event_id.as_str(), sent.accept_order > 0),
        (left.event.id.to_string().as_str(), true)
    );
}

#[tokio::test]
async fn while_learning_svc_is_away_no_attempt_counts_and_nothing_is_lost() {
    let fixture = Fixture::new().await;
    fixture.learning.becomes(Behaviour::Away);
    let submitted = fixture.submit(10).await;
    for _ in 0..100 {
        assert_eq!(fixture.step().await, away());
    }
    // The leases expire, and other replicas try as well.
    for _ in 0..10 {
        fixture.database.advance(3_600).await;
        assert_eq!(fixture.claiming_step().await, away());
    }
    assert_eq!(fixture.dead_letters().await, []);
    fixture.database.advance(3_600).await;
    let claimed = fixture.store().claim(100, lease()).await.unwrap();
    assert_eq!(claimed.len(), 10);
    assert!(claimed.iter().all(|claimed| claimed.attempts == 0));

    fixture.learning.becomes(Behaviour::Evaluates);
    assert_eq!(fixture.step().await, Step::Answered(10));
    for new in &submitted {
        assert_eq!(fixture.delivery_of(new).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn a_temporary_refusal_is_retried_without_limit() {
    let fixture = Fixture::new().await;
    fixture
        .learning
        .becomes(Behaviour::Refuses(Code::ResourceExhausted));
    let new = &fixture.submit(1).await[0];
    assert_eq!(fixture.step().await, Step::Answered(1));
    // Not before its back-off has passed.
    assert_eq!(fixture.claiming_step().await, Step::Idle);
    for _ in 0..50 {
        fixture.database.advance(60).await;
        assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    }
    assert_eq!(fixture.dead_letters().await, []);
    assert_eq!(fixture.delivery_of(new).await, DeliveryState::Pending);
    fixture.learning.becomes(Behaviour::Evaluates);
    fixture.database.advance(60).await;
    assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    assert_eq!(fixture.delivery_of(new).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_final_refusal_is_a_dead_letter_until_it_is_made_due_again() {
    let fixture = Fixture::new().await;
    fixture
        .learning
        .becomes(Behaviour::Refuses(Code::FailedPrecondition));
    let new = &fixture.submit(1).await[0];
    let waiter = fixture.waiters.register(new.event.id);
    assert_eq!(fixture.step().await, Step::Answered(1));
    assert_eq!(waiter.answer(Instant::now() + SOON).await, Some(Answer::Refused));
    let [letter] = &fixture.dead_letters().await[..] else {
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
    fixture.database.advance(3_600).await;
    assert_eq!(fixture.claiming_step().await, Step::Idle);

    fixture.learning.becomes(Behaviour::Evaluates);
    assert_eq!(fixture.store().redrive(&[new.event.id], None).await.unwrap(), 1);
    assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    assert_eq!(fixture.delivery_of(new).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn the_log_names_refused_events_and_reasons_but_never_messages() {
    Log::begin();
    let fixture = Fixture::new().await;
    fixture
        .learning
        .becomes(Behaviour::Refuses(Code::ResourceExhausted));
    let again = fixture.submit(1).await[0].event.id;
    assert_eq!(fixture.step().await, Step::Answered(1));
    for _ in 1..20 {
        fixture.database.advance(600).await;
        assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    }
    let logged = |attempts: u32| {
        format!(
            "WARN message=an event keeps failing and is retried event_id={again} attempts={attempts} \
             code=\"RESOURCE_EXHAUSTED\" reason=\"NOT_SO\""
        )
    };
    assert_eq!(Log::lines(), [3, 4, 8, 16].map(logged));

    fixture
        .learning
        .becomes(Behaviour::Refuses(Code::FailedPrecondition));
    fixture.database.advance(600).await;
    assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    let choking = fixture.submit(2).await[0].event.id;
    fixture.learning.becomes(Behaviour::Chokes(choking));
    assert_eq!(fixture.step().await, Step::Answered(2));
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
    let fixture = Fixture::new().await;
    let submitted = fixture.submit(5).await;
    fixture.learning.becomes(Behaviour::Chokes(submitted[2].event.id));
    assert_eq!(fixture.step().await, Step::Answered(5));
    assert_eq!(fixture.learning.batches(), [5, 1, 1, 1, 1, 1]);
    let dead: Vec<_> = fixture
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
        assert_eq!(fixture.delivery_of(new).await, expected);
    }
}

#[tokio::test]
async fn answers_for_unknown_events_settle_nothing() {
    let fixture = Fixture::new().await;
    fixture.learning.becomes(Behaviour::Confused);
    let new = &fixture.submit(1).await[0];
    assert!(matches!(fixture.step().await, Step::Away(_)));
    assert_eq!(fixture.delivery_of(new).await, DeliveryState::Pending);
    fixture.learning.becomes(Behaviour::Evaluates);
    assert_eq!(fixture.step().await, Step::Answered(1));
}

#[tokio::test]
async fn events_beyond_the_queue_wait_in_the_outbox() {
    let fixture = Fixture::with(RelayConfig {
        queue_events: 10,
        batch_events: 4,
        ..RelayConfig::default()
    })
    .await;
    fixture.submit(8).await;
    let beyond = fixture.submit(5).await;
    assert_eq!(fixture.delivery_queue.len(), 8);
    assert_eq!(
        [fixture.step().await, fixture.step().await],
        [Step::Answered(4), Step::Answered(4)]
    );
    // Stored without a lease, so nothing has to expire.
    assert_eq!(
        [fixture.step().await, fixture.step().await],
        [Step::Answered(4), Step::Answered(1)]
    );
    assert_eq!(fixture.step().await, Step::Idle);
    for new in &beyond {
        assert_eq!(fixture.delivery_of(new).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn events_whose_lease_would_expire_in_flight_are_left_to_a_claim() {
    let brief = RelayConfig {
        lease: Duration::from_secs(9),
        ..RelayConfig::default()
    };
    let fixture = Fixture::with(RelayConfig {
        answer_timeout: Duration::from_secs(10),
        ..brief
    })
    .await;
    fixture.submit(1).await;
    assert_eq!(fixture.step().await, Step::Idle);
    assert_eq!(fixture.learning.batches(), [0; 0]);
}

#[tokio::test]
async fn an_unreadable_event_is_a_dead_letter_and_delays_no_other() {
    let fixture = Fixture::new().await;
    let (unreadable, fine) = (feedback("a"), feedback("b"));
    stored(fixture.store(), &unreadable, None).await;
    fixture
        .database
        .execute("UPDATE outbox SET payload = x'ff'")
        .await
        .unwrap();
    stored(fixture.store(), &fine, None).await;
    assert_eq!(fixture.claiming_step().await, Step::Answered(1));
    assert_eq!(fixture.delivery_of(&unreadable).await, DeliveryState::DeadLetter);
    assert_eq!(fixture.delivery_of(&fine).await, DeliveryState::Delivered);
    assert_eq!(
        fixture.dead_letters().await[0].refusal.code,
        i32::from(Code::DataLoss)
    );
}

#[tokio::test]
async fn workers_send_queued_events_before_they_end() {
    let fixture = Fixture::with(RelayConfig {
        batch_events: 3,
        ..RelayConfig::default()
    })
    .await;
    fixture.submit(10).await;
    let draining = CancellationToken::new();
    draining.cancel();
    timeout(SOON, Arc::clone(&fixture.relay).run(draining))
        .await
        .expect("the worker ends");
    assert_eq!(fixture.learning.received().len(), 10);
}

#[tokio::test]
async fn a_queue_that_is_never_empty_does_not_prevent_claims() {
    let one_by_one = RelayConfig {
        batch_events: 1,
        ..RelayConfig::default()
    };
    let fixture = Fixture::with(one_by_one).await;
    let left = feedback("left behind");
    stored(fixture.store(), &left, None).await;
    fixture.submit(3).await;
    // The timer's first reminder can wait, the second can't; claimed events then wait their turn.
    for _ in 0..2 {
        fixture.delivery_queue.remind_of_claim();
        fixture.submit(1).await;
        assert_eq!(fixture.step().await, Step::Answered(1));
    }
    assert_eq!(fixture.delivery_of(&left).await, DeliveryState::Pending);
    for _ in 0..4 {
        fixture.submit(1).await;
        assert_eq!(fixture.step().await, Step::Answered(1));
    }
    assert_eq!(fixture.delivery_of(&left).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn workers_that_end_while_learning_svc_is_away_release_their_leases() {
    let fixture = Fixture::new().await;
    fixture.learning.becomes(Behaviour::Away);
    fixture.submit(10).await;
    let draining = CancellationToken::new();
    let worker = tokio::spawn(Arc::clone(&fixture.relay).run(draining.clone()));
    draining.cancel();
    timeout(SOON, worker).await.expect("the worker ends").unwrap();
    // The next start need not wait for the leases to expire.
    assert_eq!(fixture.store().claim(100, lease()).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_worker_wakes_for_queued_events_and_for_the_timer() {
    let quick = RelayConfig {
        poll: Duration::from_millis(5),
        ..RelayConfig::default()
    };
    let fixture = Fixture::with(quick).await;
    let draining = CancellationToken::new();
    let worker = tokio::spawn(Arc::clone(&fixture.relay).run(draining.clone()));
    let timer = tokio::spawn(Arc::clone(&fixture.relay).ask_periodically(draining.clone()));
    let handed_over = fixture.submit(1).await.remove(0);
    let due = feedback("left behind");
    stored(fixture.store(), &due, None).await;
    for new in [&handed_over, &due] {
        timeout(SOON, async {
            while fixture.delivery_of(new).await != DeliveryState::Delivered {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .expect("it is delivered");
    }
    assert!(fixture.relay.is_alive());
    draining.cancel();
    worker.await.unwrap();
    timer.await.unwrap();
}
