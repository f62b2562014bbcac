//! One schedule's world: two databases, replicas of both services on them, and what is known of what they should hold.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::{BackoffConfig, Entropy};
use emend_core::{Epoch, InstallationId};
use emend_proto::common::v1::Outcome;
use emend_store::simulation::NoInterference;
use emend_tests::harness::Dice;
use feedback_svc::{RelayConfig, simulation as feedback};
use learning_store::{
    log::{LogStore as _, PageSize},
    memory::MemoryStore,
};
use learning_svc::{simulation as learning, stream::Settings};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::SimClock,
    disturbance::Disturbance,
    history::History,
    network::Route,
    sabotage::Sabotage,
    trace::Trace,
    weather::{Place, Weather},
};

/// How long a relay waits for an answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const LEASE: Duration = Duration::from_secs(4);

/// One schedule's world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) trace: Trace,
    /// Every choice in the whole schedule comes from these.
    pub(crate) dice: Dice,
    pub(crate) entropy: Entropy,
    pub(crate) weather: Weather,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) feedback_database: feedback::Database,
    pub(crate) learning_database: MemoryStore,
    pub(crate) feedback: Vec<Slot<feedback::Replica>>,
    pub(crate) learning: Vec<Slot<learning::Replica>>,
    pub(crate) history: Mutex<History>,
    /// Whether the learning database lost its tail: what was learned meanwhile is gone, through no fault of the
    /// services.
    lost_its_tail: Mutex<bool>,
    /// The outcome that was told for each event.
    told: Mutex<BTreeMap<String, Outcome>>,
    violations: Mutex<Vec<String>>,
}

/// A slot in which a process may run.
#[derive(Debug)]
pub(crate) struct Slot<R> {
    pub(crate) place: Place,
    pub(crate) clock: SimClock,
    running: Mutex<Option<Running<R>>>,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Running<R> {
    pub(crate) replica: Arc<R>,
    pub(crate) killed: CancellationToken,
}

impl<R> Clone for Running<R> {
    fn clone(&self) -> Self {
        Self {
            replica: Arc::clone(&self.replica),
            killed: self.killed.clone(),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R> Slot<R> {
    fn new(place: Place) -> Self {
        Self {
            place,
            clock: SimClock::new(),
            running: Mutex::default(),
        }
    }

    /// The process, if one runs.
    pub(crate) fn running(&self) -> Option<Running<R>> {
        lock(&self.running).clone()
    }
}

impl World {
    /// A world in which nothing is running yet.
    pub(crate) async fn new(seed: u64, sabotage: Option<Sabotage>, traced: bool) -> Arc<Self> {
        let dice = Dice::seeded(seed);
        let weather = Weather::draw(&dice);
        let database_clock = SimClock::new();
        let feedback_database = feedback::Database::new(database_clock.shared());
        let learning_database = MemoryStore::on(SimClock::new().shared(), Arc::new(NoInterference));
        let entropy = Entropy::seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        learning_database
            .create_head(Epoch(entropy.uuid_v4()), InstallationId(entropy.uuid_v4()))
            .await
            .expect("nothing disturbs it");
        match sabotage {
            Some(Sabotage::Feedback(defect)) => feedback_database.break_on_purpose(defect),
            Some(Sabotage::Learning(defect)) => learning_database.break_on_purpose(defect),
            Some(Sabotage::Stream(_)) | None => {}
        }
        let (feedbacks, learnings) = (1 + dice.below(3), 1 + dice.below(3));
        let world = Arc::new(Self {
            trace: Trace::new(traced),
            dice,
            entropy,
            weather,
            sabotage,
            feedback_database,
            history: Mutex::new(History::new(learning_database.clone())),
            learning_database,
            feedback: (0..feedbacks).map(|n| Slot::new(Place::Feedback(n))).collect(),
            learning: (0..learnings).map(|n| Slot::new(Place::Learning(n))).collect(),
            lost_its_tail: Mutex::default(),
            told: Mutex::default(),
            violations: Mutex::default(),
        });
        world.trace.note(format_args!(
            "{feedbacks} of feedback-svc, {learnings} of learning-svc, {:?}",
            world.weather.rates()
        ));
        world
    }

    /// Records a violation: something happened that must never happen.
    pub(crate) fn violation(&self, what: impl Into<String>) {
        let what = what.into();
        self.trace.note(format_args!("VIOLATION {what}"));
        lock(&self.violations).push(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// A random duration below this many milliseconds.
    pub(crate) fn some_millis(&self, below: usize) -> Duration {
        Duration::from_millis(self.dice.below(below) as u64)
    }

    /// A generator with a seed of its own.
    pub(crate) fn own_entropy(&self) -> Entropy {
        let (seed, _) = self.entropy.uuid_v4().as_u64_pair();
        Entropy::seeded(seed)
    }

    /// Starts a replica of feedback-svc in an empty slot.
    pub(crate) fn start_feedback(self: &Arc<Self>, number: usize) {
        let slot = &self.feedback[number];
        let killed = CancellationToken::new();
        let config = RelayConfig {
            lease: LEASE,
            workers: 2,
            batch_events: 1 + self.dice.below(8),
            queue_events: 1 + self.dice.below(30),
            answer_timeout: ANSWER_TIMEOUT,
            reconnect: BackoffConfig {
                initial: Duration::from_millis(50),
                max: Duration::from_secs(1),
                multiplier: 2.0,
            },
            retry: BackoffConfig {
                initial: Duration::from_millis(200),
                max: Duration::from_secs(3),
                multiplier: 2.0,
            },
            ..RelayConfig::default()
        };
        let disturbance = Disturbance {
            world: Arc::clone(self),
            place: slot.place,
            killed: killed.clone(),
        };
        let replica = feedback::Replica::start(
            &self.feedback_database,
            Arc::new(disturbance),
            Arc::new(Route::new(self, slot.place)),
            config,
            slot.clock.shared(),
            &self.own_entropy(),
        );
        let replica = Arc::new(replica);
        *lock(&slot.running) = Some(Running { replica, killed });
        self.trace.note(format_args!("{:?} starts", slot.place));
    }

    /// Starts a replica of learning-svc in an empty slot.
    pub(crate) fn start_learning(self: &Arc<Self>, number: usize) {
        let slot = &self.learning[number];
        let killed = CancellationToken::new();
        let disturbance = Disturbance {
            world: Arc::clone(self),
            place: slot.place,
            killed: killed.clone(),
        };
        let settings = Settings {
            page_size: PageSize {
                revisions: if self.dice.chance(0.5) { 2 } else { 64 },
                bytes: if self.dice.chance(0.3) { 1 } else { 1_000_000 },
            },
            max_stream_age: Duration::from_secs(if self.dice.chance(0.3) { 5 } else { 3_600 }),
            max_reconnect_delay: Duration::from_millis(500),
            transfers: 1 + self.dice.below(3),
            max_tombstones: if self.dice.chance(0.3) { 1 } else { 1_000 },
            retention_interval: Duration::from_secs(4),
            ..Settings::default()
        };
        let replica = learning::Replica::start(
            self.learning_database.connect(Arc::new(disturbance)),
            2,
            settings,
            &slot.clock.shared(),
            &self.own_entropy(),
        );
        let replica = Arc::new(replica);
        *lock(&slot.running) = Some(Running { replica, killed });
        self.trace.note(format_args!("{:?} starts", slot.place));
    }

    /// Kills a replica of feedback-svc, if it is running.
    pub(crate) fn kill_feedback(&self, number: usize) {
        let slot = &self.feedback[number];
        if let Some(Running { replica, killed }) = lock(&slot.running).take() {
            self.trace.note(format_args!("{:?} is killed", slot.place));
            self.gave_up(slot.place, replica.failure());
            killed.cancel();
            replica.kill();
        }
    }

    /// Kills a replica of learning-svc, if it is running.
    pub(crate) fn kill_learning(&self, number: usize) {
        let slot = &self.learning[number];
        if let Some(Running { replica, killed }) = lock(&slot.running).take() {
            self.trace.note(format_args!("{:?} is killed", slot.place));
            self.gave_up(slot.place, replica.failure());
            killed.cancel();
            replica.kill();
        }
    }

    /// Tells the other replicas of learning-svc of a commit; some of these notifications are lost.
    pub(crate) fn notify(self: &Arc<Self>, from: Place) {
        for number in 0..self.learning.len() {
            let lost = self.dice.chance(self.weather.rates().lose);
            if self.learning[number].place == from || lost {
                continue;
            }
            let (world, delay) = (Arc::clone(self), self.weather.delay(&self.dice, false));
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                if let Some(running) = world.learning[number].running() {
                    running.replica.notify();
                }
            });
        }
    }

    fn gave_up(&self, place: Place, failure: Option<String>) {
        if let Some(failure) = failure {
            self.violation(format!("{place:?} gave up: {failure}"));
        }
    }

    /// Reports which processes gave up by themselves.
    pub(crate) fn look_for_failures(&self) {
        for slot in &self.feedback {
            let failure = slot.running().and_then(|running| running.replica.failure());
            self.gave_up(slot.place, failure);
        }
        for slot in &self.learning {
            let failure = slot.running().and_then(|running| running.replica.failure());
            self.gave_up(slot.place, failure);
        }
    }

    /// Notes that the learning database was restored to an earlier state.
    pub(crate) fn note_lost_tail(&self) {
        *lock(&self.lost_its_tail) = true;
    }

    pub(crate) fn lost_its_tail(&self) -> bool {
        *lock(&self.lost_its_tail)
    }

    /// Checks that an event's outcome is the same whenever it is answered.
    pub(crate) fn check_outcome(&self, event: &str, outcome: &Outcome) {
        if self.lost_its_tail() {
            return;
        }
        let before = lock(&self.told)
            .entry(event.to_owned())
            .or_insert_with(|| outcome.clone())
            .clone();
        if before != *outcome {
            self.violation(format!(
                "event {event} got two outcomes: {before:?} and {outcome:?}"
            ));
        }
    }

    /// A unique id.
    pub(crate) fn new_id(&self) -> Uuid {
        self.entropy.uuid_v4()
    }
}
