//! One fault run: load and nodes that go on whatever happens, and the questions that every run ends with.

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_client::SubscriberEvent;
use emend_core::Revision;
use emend_proto::feedback::v1::{Feedback as StoredFeedback, ListDeadLettersRequest};
use emend_runtime::{Entropy, SystemClock, database::DatabaseUrl};
use learning_svc::app::{App, Follower};
use tokio::time::timeout;

use super::{
    fleet::{Fleet, Storage},
    seed,
};
use crate::{
    harness::{Dice, NAMESPACE, Subscriber, answered, node::Node, system::Service},
    load::{Load, Plan, Record},
};

/// How long a run may take.
const SHORT: Duration = Duration::from_mins(4);
const LONG: Duration = Duration::from_mins(60);
/// Between two faults, calls that are acknowledged: at most so many.
const BETWEEN: usize = 80;

/// A run under way.
#[derive(Debug)]
pub struct Run {
    /// What the faults are chosen by.
    pub dice: Dice,
    /// What is under load.
    pub fleet: Fleet,
    /// The load; none while it is stopped.
    pub load: Option<Load>,
    /// One at each learning-svc, from the beginning on.
    pub nodes: Vec<Node>,
    /// What loads that were stopped had acknowledged.
    pub record: Record,
    seed: u64,
    loads: usize,
    plan: Plan,
}

/// What nodes went through.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Snapshots that replaced what they held.
    pub snapshots: usize,
    /// Digests that were not the server's.
    pub mismatches: usize,
}

/// Gives a run a bound.
///
/// # Panics
/// If it takes longer.
pub async fn bounded<T>(run: impl Future<Output = T>) -> T {
    let limit = if seed::is_long() { LONG } else { SHORT };
    let ended = timeout(limit, run).await;
    ended.unwrap_or_else(|_| panic!("the run is not over within {limit:?}"))
}

/// How many rounds: few, or many where runs are to be long.
pub fn rounds(short: usize, long: usize) -> usize {
    if seed::is_long() { long } else { short }
}

impl Run {
    /// Begins with the usual load.
    pub async fn begin(name: &str, fleet: Fleet) -> Self {
        Self::begin_with(name, fleet, Plan::default()).await
    }

    /// Begins with that load.
    pub async fn begin_with(name: &str, fleet: Fleet, plan: Plan) -> Self {
        let seed = seed::chosen(name);
        let mut nodes = Vec::new();
        for (index, member) in fleet.learning.iter().enumerate() {
            nodes.push(Node::start(member.front.address(), &format!("node-{index}")).await);
        }
        let mut run = Self {
            dice: Dice::seeded(seed),
            fleet,
            load: None,
            nodes,
            record: Record::default(),
            seed,
            loads: 0,
            plan,
        };
        run.start_load();
        run
    }

    /// Starts the load, for the first time or again: its requests are new ones.
    ///
    /// # Panics
    /// If it runs.
    pub fn start_load(&mut self) {
        assert!(self.load.is_none(), "the load is on");
        self.loads += 1;
        self.load = Some(Load::start(
            &format!("load{}", self.loads),
            self.seed,
            self.plan,
            &self.fleet.feedback_clients(),
            &self.fleet.learning_clients(),
        ));
    }

    /// Stops the load once what it is about is acknowledged.
    pub async fn stop_load(&mut self) {
        if let Some(load) = self.load.take() {
            self.record.add(load.stop().await);
        }
    }

    /// The load.
    ///
    /// # Panics
    /// If it is stopped.
    pub fn load(&self) -> &Load {
        self.load.as_ref().expect("the load is on")
    }

    /// Waits until some more calls are acknowledged; how many is by chance.
    pub async fn goes_on(&self) {
        self.load().goes_on_by(1 + self.dice.below(BETWEEN)).await;
    }

    /// Everything came back by itself; what was acknowledged is stored and learned once; every node holds what the
    /// database holds. Answers with what the nodes went through.
    ///
    /// # Panics
    /// If it is not so.
    pub async fn ends_well(mut self) -> Seen {
        // Everybody takes part again.
        self.load().goes_on_by(1).await;
        self.stop_load().await;
        self.questions().await
    }

    /// The questions alone, of a run whose load is stopped.
    pub async fn questions(self) -> Seen {
        let Self {
            fleet,
            nodes,
            record,
            ..
        } = self;
        let feedback = fleet.feedback_clients().remove(0);
        let learning = fleet.learning_clients();
        let stored = feedback.all_delivered(NAMESPACE).await;
        let dead = feedback.service.clone().list_dead_letters(ListDeadLettersRequest::default()).await;
        assert_eq!(answered(dead).dead_letters, [], "no event is given up");
        assert_eq!(record.differences(&stored), [""; 0], "acknowledged and stored");
        assert_learned(&fleet.storage, &stored, &record, &learning[0]).await;

        let head = learning[0].head().await;
        let resources = fleet.storage.stored().resources().await;
        let mut seen = Seen::default();
        for (index, mut node) in nodes.into_iter().enumerate() {
            node.until(head).await;
            node.until_certain().await;
            node.assert_answers_by(&resources, &[]);
            seen.count(&node.events_so_far().await);
            let client = &learning[index % learning.len()];
            let mut subscriber = Subscriber::of_everything(&format!("late-{index}"));
            subscriber.begin(&client.channel).await;
            subscriber.until(head).await;
            assert_eq!(*subscriber.held(), resources, "what a late subscriber is sent");
        }
        seen
    }
}

impl Seen {
    fn count(&mut self, events: &[Arc<SubscriberEvent>]) {
        for event in events {
            match **event {
                SubscriberEvent::Snapshot { .. } => self.snapshots += 1,
                SubscriberEvent::DigestMismatch { .. } => self.mismatches += 1,
                _ => {}
            }
        }
    }
}

/// learning-svc's database agrees with itself, and what operators were told is in its log.
async fn assert_learned(
    storage: &Storage,
    stored: &[StoredFeedback],
    record: &Record,
    learning: &crate::harness::Learning,
) {
    let url: DatabaseUrl = storage.url(Service::Learning).parse().expect("a database");
    let entropy = Entropy::system();
    let store = learning_svc::store::open(&url, 2, &entropy).await.expect("a database");
    let app = App::new(store.clone(), Arc::new(Nobody), SystemClock::shared(), entropy);
    assert_eq!(app.audit().await.expect("an audit"), [""; 0], "the log, the ballots and the resources");
    let log = learning.revisions().await;
    for act in &record.acts {
        let revision = log.iter().find(|revision| revision.revision == act.revision);
        let revision = revision.unwrap_or_else(|| panic!("{act:?} is not in the log"));
        let change = revision.changes.iter().find(|change| {
            change.key.as_ref().is_some_and(|key| key.key == act.key)
                && change.after.as_ref().map(|value| crate::harness::says::maps_to(Some(value)))
                    == act.value.as_deref()
        });
        assert!(change.is_some(), "{act:?} is not what the log says: {revision:?}");
    }
    let head = learning.head().await;
    for (first, last) in &record.imports {
        assert!(first <= last && *last <= head, "import {first} to {last}, of {head}");
    }
    let counting = stored.iter().filter(|feedback| feedback.retracted_at.is_none()).count();
    let audited = app.store.audit().await.expect("an audit");
    assert_eq!(audited.ballots.len(), counting, "a ballot for each feedback that counts");
    app.store.close().await;
}

/// Follows no log.
struct Nobody;

#[async_trait]
impl Follower for Nobody {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}
