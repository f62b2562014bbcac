//! One fault run: load and nodes that continue whatever happens, and the questions that end every run.

use std::{collections::BTreeMap, future::Future, time::Duration};

use emend_proto::{
    common::v1::{Cause, ResourceValue},
    feedback::v1::ListDeadLettersRequest,
    learning::v1::Revision,
};
use prost::Message as _;
use tokio::time::timeout;

use super::{fleet::Fleet, runs};
use crate::{
    audit::{
        ledger,
        stream::{self, Recorder, RevisionLog, everything},
    },
    harness::{
        Dice, Learning, NAMESPACE, answered, eventually, node::Node, says::maps_to, stored::StoredLog,
        wait::holds,
    },
    load::{Import, Load, Plan, Record},
};

/// How long a run may take.
const SHORT: Duration = Duration::from_mins(4);
const LONG: Duration = Duration::from_hours(1);
/// The most acknowledged calls between two faults.
const BETWEEN: usize = 80;

/// A run in progress.
#[derive(Debug)]
pub struct Run {
    /// The dice that choose the faults.
    pub dice: Dice,
    /// The services under load.
    pub fleet: Fleet,
    /// The load; `None` while it is stopped.
    pub load: Option<Load>,
    /// One node per learning-svc, from the start.
    pub nodes: Vec<Node>,
    /// Subscribers whose every message is checked against the log in the end.
    recorders: Vec<Recorder>,
    /// Whether the log lost revisions that nodes have seen.
    lost_its_tail: bool,
    /// What the loads stopped so far had acknowledged.
    pub record: Record,
    seed: u64,
    loads: usize,
    plan: Plan,
}

/// Bounds a run's duration.
///
/// # Panics
/// If it takes longer.
pub async fn bounded<T>(run: impl Future<Output = T>) -> T {
    let limit = runs::short_or_long(SHORT, LONG);
    let ended = timeout(limit, run).await;
    ended.unwrap_or_else(|_| panic!("the run is not over within {limit:?}"))
}

/// The number of rounds: few, or many for long runs.
pub fn rounds(short: usize, long: usize) -> usize {
    runs::short_or_long(short, long)
}

impl Run {
    /// Begins with the usual load.
    pub async fn begin(name: &str, fleet: Fleet) -> Self {
        Self::begin_with(name, fleet, Plan::default()).await
    }

    /// Begins with this load.
    pub async fn begin_with(name: &str, fleet: Fleet, plan: Plan) -> Self {
        let seed = runs::seed(name, runs::number_of(name) % 1_000_000);
        let mut nodes = Vec::new();
        let mut recorders = Vec::new();
        let time = stream::Run::new();
        for (index, member) in fleet.learning.iter().enumerate() {
            let address = member.front.address();
            nodes.push(Node::start(address, &format!("node-{index}")).await);
            recorders.push(Recorder::start(
                &time,
                address,
                everything(&format!("recorder-{index}")),
            ));
        }
        let mut run = Self {
            dice: Dice::seeded(seed),
            fleet,
            load: None,
            nodes,
            recorders,
            lost_its_tail: false,
            record: Record::default(),
            seed,
            loads: 0,
            plan,
        };
        run.start_load();
        run
    }

    /// Starts the load, for the first time or again, with new requests.
    ///
    /// # Panics
    /// If it is running.
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

    /// Stops the load once the calls in progress are acknowledged.
    pub async fn stop_load(&mut self) {
        if let Some(load) = self.load.take() {
            self.record.add(load.stop().await);
        }
    }

    /// The load.
    ///
    /// # Panics
    /// If the load is stopped.
    pub fn load(&self) -> &Load {
        self.load.as_ref().expect("the load is on")
    }

    /// The database has lost revisions that nodes have seen, and only `kept` of what was acknowledged. What subscribers
    /// were sent can no longer be checked against the log, and nodes may need a while to find out.
    pub fn lost_its_tail(&mut self, kept: Record) {
        self.record = kept;
        self.recorders.clear();
        self.lost_its_tail = true;
    }

    /// Waits until a random number of further calls is acknowledged.
    pub async fn goes_on(&self) {
        self.load().goes_on_by(1 + self.dice.below(BETWEEN)).await;
    }

    /// Asserts that everything recovered by itself; that what was acknowledged is stored and learned once; that every
    /// node holds what the database holds, and was never sent what it should not have been.
    ///
    /// # Panics
    /// If any of this is not so.
    pub async fn ends_well(mut self) {
        // The load makes progress again.
        self.load().goes_on_by(1).await;
        self.stop_load().await;
        self.questions().await;
    }

    /// Only asks the questions, of a run whose load is stopped.
    pub async fn questions(self) {
        let Self {
            fleet,
            nodes,
            recorders,
            record,
            lost_its_tail,
            ..
        } = self;
        let feedback = fleet.feedback_clients().remove(0);
        let learning = fleet.learning_clients();
        let stored = feedback.all_delivered(NAMESPACE).await;
        let dead = feedback
            .service
            .clone()
            .list_dead_letters(ListDeadLettersRequest::default())
            .await;
        assert_eq!(answered(dead).dead_letters, [], "no event is given up");
        assert_eq!(record.differences(&stored), [""; 0], "acknowledged and stored");
        assert_acts(&record, &learning[0]).await;
        assert_imports(&record, &fleet.storage.stored().log().await);
        let asked = Some(&record.asked);
        let holders: Vec<_> = nodes.iter().map(Into::into).collect();
        if lost_its_tail {
            // A node that is ahead of the log, or has diverged from it, learns so from the next digests.
            eventually("the nodes find out", || async {
                let found = ledger::check(&fleet, asked, &holders).await;
                holds(found.is_empty(), || format!("{found:?}"))
            })
            .await;
        }
        ledger::expect_sound(&fleet, asked, &holders).await;

        let log = RevisionLog::read(&fleet.storage.stored()).await;
        for recorder in recorders {
            recorder.audited(&log).await;
        }
    }
}

/// Asserts that the log has everything that operators were told.
async fn assert_acts(record: &Record, learning: &Learning) {
    let log: BTreeMap<i64, Revision> = learning
        .revisions()
        .await
        .into_iter()
        .map(|revision| (revision.revision, revision))
        .collect();
    for act in &record.acts {
        let revision = log.get(&act.revision);
        let revision = revision.unwrap_or_else(|| panic!("{act:?} is not in the log"));
        let change = revision.changes.iter().find(|change| {
            change.key.as_ref().is_some_and(|key| key.key == act.key)
                && change.after.as_ref().map(|value| maps_to(Some(value))) == act.value
        });
        assert!(change.is_some(), "{act:?} is not what the log says: {revision:?}");
    }
    for revert in &record.reverts {
        let [of, by] = [revert.of, revert.revision].map(|revision| {
            let revision = log.get(&revision);
            revision.unwrap_or_else(|| panic!("{revert:?} is not in the log"))
        });
        assert_eq!(
            by.cause(),
            Cause::Revert,
            "{revert:?} is not what the log says: {by:?}"
        );
        assert!(!of.changes.is_empty(), "there was something to take back: {of:?}");
        for taken_back in &of.changes {
            let restored = by.changes.iter().find(|change| change.key == taken_back.key);
            let restored = restored.map(|change| (&change.before, &change.after));
            assert_eq!(
                restored,
                Some((&taken_back.after, &taken_back.before)),
                "{revert:?} did not bring back what was there before {of:?}"
            );
        }
    }
}

/// Asserts that the log has everything that importers were told, row by row.
fn assert_imports(record: &Record, log: &StoredLog) {
    type OfKey<'a> = (&'a str, &'a str);
    let mut given: BTreeMap<OfKey<'_>, Vec<(i64, String)>> = BTreeMap::new();
    if record.imports.is_empty() {
        return;
    }
    for (revision, key, value) in &log.changes {
        let value = value.as_deref().map(ResourceValue::decode);
        let value = value.transpose().expect("a stored value");
        given
            .entry((&key.namespace, &key.key))
            .or_default()
            .push((*revision, maps_to(value.as_ref())));
    }
    for import in &record.imports {
        let Import {
            namespace,
            keys,
            value,
            first,
            last,
            applied,
        } = import;
        assert!(
            first <= last && *last <= log.head,
            "import {first} to {last}, of {}",
            log.head
        );
        let is_of_it =
            |(revision, given): &(i64, String)| (first..=last).contains(&revision) && given == value;
        let rows = keys.iter().filter(|key| {
            let given = given.get(&(namespace.as_str(), key.as_str()));
            given.is_some_and(|given| given.iter().any(is_of_it))
        });
        let rows = rows.count();
        // Possibly more: another attempt that got no answer may have been in progress meanwhile.
        assert!(
            i64::try_from(rows).is_ok_and(|rows| rows >= *applied),
            "import {first} to {last} changed {applied} rows, the log gave {value} to {rows} of them"
        );
    }
}
