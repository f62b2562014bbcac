//! Load from clients that do not give up: writers that submit, retract, decide and import, and repeat each call until
//! it is acknowledged. What was acknowledged is recorded, to be checked against what is stored in the end.
//!
//! All that a writer asks for follows from the load's seed and from the answers it got.

pub mod backends;
mod importer;
pub mod memory;
mod operator;
pub mod pressure;
mod record;
mod reporter;
mod retry;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

pub use record::{Import, OperatorWrite, Record, Refusals, Revert};
use retry::Clients;

use crate::harness::{Dice, Feedback, Learning, eventually, wait::holds};

/// The writers of a load.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Writers that submit corrections and retract some of them.
    pub reporters: usize,
    /// Writers that put, delete and revert.
    pub operators: usize,
    /// Writers that import more rows than fit in one revision, alternately all-or-nothing and skipping bad rows.
    pub importers: usize,
    /// Pause between a reporter's calls; other writers pause longer. It keeps small what has to be counted in the end,
    /// and lets a machine that is busy with other things keep up.
    pub pause: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            reporters: 5,
            operators: 1,
            importers: 0,
            pause: Duration::from_millis(25),
        }
    }
}

/// Running writers.
#[derive(Debug)]
pub struct Load {
    stop: CancellationToken,
    progress: Progress,
    writers: Vec<JoinHandle<Record>>,
}

/// Counters through which writers report their progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    acknowledged: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

/// What every writer has.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Unique among the writers of all loads of one run.
    name: String,
    dice: Dice,
    pause: Duration,
    stop: CancellationToken,
    progress: Progress,
    record: Record,
}

impl Writer {
    /// Pauses, then tells whether to go on.
    async fn goes_on(&self) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = sleep(self.pause) => !self.stop.is_cancelled(),
        }
    }

    /// Counts an acknowledgement.
    fn acknowledged(&self) {
        self.progress.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

impl Load {
    /// Starts the writers, spread over the clients. `name` tells the loads of one run apart.
    pub fn start(name: &str, seed: u64, plan: Plan, feedback: &[Feedback], learning: &[Learning]) -> Self {
        let stop = CancellationToken::new();
        let progress = Progress::default();
        let writer = |role: &str, index: usize, pause: u32| Writer {
            name: format!("{name}-{role}{index}"),
            dice: Dice::seeded(seed ^ crate::faults::runs::number_of(&format!("{name}-{role}{index}"))),
            pause: plan.pause * pause,
            stop: stop.clone(),
            progress: progress.clone(),
            record: Record::default(),
        };
        let mut writers = Vec::new();
        for index in 0..plan.reporters {
            let clients = Clients::new(feedback, index);
            writers.push(tokio::spawn(reporter::work(writer("r", index, 1), clients)));
        }
        for index in 0..plan.operators {
            let clients = Clients::new(learning, index);
            writers.push(tokio::spawn(operator::work(writer("o", index, 3), clients)));
        }
        for index in 0..plan.importers {
            let clients = Clients::new(learning, index).patient(importer::CALL);
            writers.push(tokio::spawn(importer::work(writer("i", index, 40), clients)));
        }
        Self {
            stop,
            progress,
            writers,
        }
    }

    /// The number of acknowledged calls so far.
    pub fn acknowledged(&self) -> usize {
        self.progress.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until `count` more calls are acknowledged.
    pub async fn goes_on_by(&self, count: usize) {
        let goal = self.acknowledged() + count;
        self.until("the load goes on", |load| {
            let acknowledged = load.acknowledged();
            holds(acknowledged >= goal, || format!("{acknowledged} of {goal}"))
        })
        .await;
    }

    /// Waits until `count` more calls are refused or broken off.
    pub async fn is_refused_by(&self, count: usize) {
        let goal = self.progress.refused.load(Ordering::SeqCst) + count;
        self.until("the load is refused", |load| {
            let refused = load.progress.refused.load(Ordering::SeqCst);
            holds(refused >= goal, || format!("{refused} of {goal}"))
        })
        .await;
    }

    async fn until(&self, what: &str, condition: impl Fn(&Self) -> Result<(), String>) {
        eventually(what, || async {
            // A writer that has ended has failed, and says why.
            assert!(
                self.writers.iter().all(|writer| !writer.is_finished()),
                "a writer ended"
            );
            condition(self)
        })
        .await;
    }

    /// Stops the writers once their calls in progress are acknowledged, and answers with everything that was
    /// acknowledged.
    ///
    /// # Panics
    /// If a writer got an answer that it should not have got.
    pub async fn stop(self) -> Record {
        self.stop.cancel();
        let mut all = Record::default();
        for record in join_all(self.writers).await {
            all.add(record.expect("a writer ends"));
        }
        all
    }
}
