//! Load as clients make it that do not give up: writers that submit, take back, decide and import, each call repeated
//! until it is acknowledged. What was acknowledged is written down, to be held against what is stored in the end.
//!
//! Everything a writer asks for follows from the load's seed, but for what it learns from answers. It must know nothing
//! of what is done to the services meanwhile.

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

pub use record::{Act, Import, Record, Refusals, Revert};
use retry::Clients;

use crate::harness::{Dice, Feedback, Learning, eventually, wait::holds};

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Writers that submit corrections and take some of them back.
    pub reporters: usize,
    /// Writers that put, delete and revert.
    pub operators: usize,
    /// Writers that import more rows than one revision takes, by turns all or nothing and skipping bad ones.
    pub importers: usize,
    /// Between two calls of a reporter; others pause longer. What has to be counted in the end stays small, and a machine
    /// that does other things as well keeps up.
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

/// Writers at work.
#[derive(Debug)]
pub struct Load {
    stop: CancellationToken,
    progress: Progress,
    writers: Vec<JoinHandle<Record>>,
}

/// What writers share to tell how far they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    acknowledged: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

/// What every writer has.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Unlike that of every other writer of every load of one run.
    name: String,
    dice: Dice,
    pause: Duration,
    stop: CancellationToken,
    progress: Progress,
    record: Record,
}

impl Writer {
    /// Whether to go on, after a pause.
    async fn goes_on(&self) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = sleep(self.pause) => !self.stop.is_cancelled(),
        }
    }

    /// Something was acknowledged.
    fn acknowledged(&self) {
        self.progress.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

impl Load {
    /// Starts the writers, spread over the clients. `name` tells apart the loads of one run.
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

    /// How much is acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.progress.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until so many more calls are acknowledged.
    pub async fn goes_on_by(&self, count: usize) {
        let goal = self.acknowledged() + count;
        self.until("the load goes on", |load| {
            let acknowledged = load.acknowledged();
            holds(acknowledged >= goal, || format!("{acknowledged} of {goal}"))
        })
        .await;
    }

    /// Waits until so many more calls were refused or broken off.
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
            // A writer that ended has failed, and says why.
            assert!(
                self.writers.iter().all(|writer| !writer.is_finished()),
                "a writer ended"
            );
            condition(self)
        })
        .await;
    }

    /// Stops the writers once what each is about is acknowledged, and answers with what was.
    ///
    /// # Panics
    /// If a writer met an answer that it should not have got.
    pub async fn stop(self) -> Record {
        self.stop.cancel();
        let mut all = Record::default();
        for record in join_all(self.writers).await {
            all.add(record.expect("a writer ends"));
        }
        all
    }
}
