//! The queue of what backends record, and the worker that stores it.
//!
//! Recording is on the hot path of a search: it takes a place in memory, bounded in total and by client, or is dropped and
//! counted. The worker stores groups; while the database is away it waits and the queue fills. A clean shutdown stores what
//! is queued: the worker ends once the last handle is gone.

use std::{sync::Arc, time::Duration};

use emend_base::{Backoff, BackoffConfig, Entropy};
use emend_core::search::terms;
use emend_serve::fair_semaphore::{ClientKey, FairSemaphore, Permit};
use emend_store::StoreError;
use feedback_store::{
    ports::{Group, QueryStore, Written},
    records::queries::{Interaction, New, Query},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::metrics::{Dropped, QueryMetrics, RatingMetrics, Recorded};

/// KiB that may wait to be stored.
const QUEUE_KIB: usize = 32 * 1024;
/// KiB that one client may hold when only the reserved quarter of the queue is left.
const LEAST_SHARE_KIB: usize = 1024;
/// How long the first of a group waits for others.
const FLUSH: Duration = Duration::from_millis(200);
/// The most in one transaction.
const GROUP: usize = 1_024;
/// The pauses while the database is away.
const RETRY: BackoffConfig = BackoffConfig {
    initial: Duration::from_millis(50),
    max: Duration::from_secs(2),
    multiplier: 2.0,
};

/// Something to store.
#[derive(Debug)]
pub(crate) enum Record {
    Query(Box<New<Query>>),
    Interaction(Box<New<Interaction>>),
}

impl Record {
    /// KiB that it counts as in the queue, at least one.
    fn kib(&self) -> usize {
        let bytes = match self {
            Self::Query(new) => {
                let query = &new.item;
                let results = query.top_results.iter();
                query.query_text.len()
                    + query.answer_text.len()
                    + query.classification.len()
                    + results
                        .map(|one| one.title.len() + one.object_id.len())
                        .sum::<usize>()
            }
            Self::Interaction(new) => new.item.object_id.len(),
        };
        1 + bytes / 1024
    }

    fn item(&self) -> Recorded {
        match self {
            Self::Query(_) => Recorded::Query,
            Self::Interaction(_) => Recorded::Interaction,
        }
    }
}

/// A place in the queue.
#[derive(Debug)]
struct Queued {
    record: Record,
    received: Instant,
    place: Permit,
}

/// A handle to the queue. Its worker runs until the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    queue: mpsc::UnboundedSender<Queued>,
    /// One per KiB of the queue.
    places: FairSemaphore,
    metrics: QueryMetrics,
}

/// Stores what is queued.
#[derive(Debug)]
pub(crate) struct RecordWorker {
    queue: mpsc::UnboundedReceiver<Queued>,
    store: Arc<dyn QueryStore>,
    metrics: QueryMetrics,
    ratings: RatingMetrics,
    entropy: Entropy,
    /// Cancelled when the service stops.
    soft: CancellationToken,
}

impl Recorder {
    /// A handle, and the worker that must be run for it. Of ratings it counts those whose queries come late.
    pub(crate) fn new(
        store: Arc<dyn QueryStore>,
        metrics: (QueryMetrics, RatingMetrics),
        entropy: Entropy,
        soft: CancellationToken,
    ) -> (Self, RecordWorker) {
        Self::holding(QUEUE_KIB, store, metrics, entropy, soft)
    }

    /// The same with a queue of that many KiB.
    pub(super) fn holding(
        kib: usize,
        store: Arc<dyn QueryStore>,
        (metrics, ratings): (QueryMetrics, RatingMetrics),
        entropy: Entropy,
        soft: CancellationToken,
    ) -> (Self, RecordWorker) {
        let (sender, queue) = mpsc::unbounded_channel();
        let recorder = Self {
            queue: sender,
            places: FairSemaphore::with_share(kib, LEAST_SHARE_KIB),
            metrics: metrics.clone(),
        };
        let worker = RecordWorker {
            queue,
            store,
            metrics,
            ratings,
            entropy,
            soft,
        };
        (recorder, worker)
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> i64 {
        self.metrics.queued.get()
    }

    #[cfg(test)]
    pub(super) fn metrics(&self) -> &QueryMetrics {
        &self.metrics
    }

    /// Queues records in order, as far as there is room: from the first that finds none on, all are dropped. Returns how many
    /// were, and why.
    pub(crate) fn record(
        &self,
        client: &ClientKey,
        records: impl ExactSizeIterator<Item = Record>,
    ) -> (usize, Option<Dropped>) {
        let mut dropped = (0, None);
        for record in records {
            if dropped.1.is_none() {
                dropped.1 = self.queue_one(client, record).err();
            }
            if let Some(reason) = dropped.1 {
                self.metrics.dropped(reason, 1);
                dropped.0 += 1;
            }
        }
        dropped
    }

    fn queue_one(&self, client: &ClientKey, record: Record) -> Result<(), Dropped> {
        let place = self
            .places
            .try_acquire_many(client.clone(), record.kib())
            .ok_or(Dropped::QueueFull)?;
        let item = record.item();
        let queued = Queued {
            record,
            received: Instant::now(),
            place,
        };
        // Counted first: the worker may take it at once.
        self.metrics.queued.inc();
        if self.queue.send(queued).is_err() {
            self.metrics.queued.dec();
            return Err(Dropped::Stopping);
        }
        self.metrics.recorded(item);
        Ok(())
    }
}

impl RecordWorker {
    /// Stores groups until all handles are dropped and the queue is empty.
    pub(crate) async fn run(mut self) {
        while self.run_once().await {}
    }

    /// Waits for records and stores one group of them. False: there will be no more.
    pub(crate) async fn run_once(&mut self) -> bool {
        let mut queued = Vec::new();
        if self.queue.recv_many(&mut queued, GROUP).await == 0 {
            return false;
        }
        let flush = Instant::now() + FLUSH;
        while queued.len() < GROUP {
            let room = GROUP - queued.len();
            match timeout_at(flush, self.queue.recv_many(&mut queued, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.store(queued).await;
        true
    }

    async fn store(&self, queued: Vec<Queued>) {
        let count = queued.len();
        let (mut group, mut received, mut places) = (Group::default(), (Vec::new(), Vec::new()), Vec::new());
        for one in queued {
            places.push(one.place);
            match one.record {
                Record::Query(new) => {
                    let words = terms(&new.item.query_text);
                    received.0.push(one.received);
                    group.queries.push((*new, words));
                }
                Record::Interaction(new) => {
                    received.1.push(one.received);
                    group.interactions.push(*new);
                }
            }
        }
        let mut backoff = Backoff::new(RETRY, self.entropy.clone());
        loop {
            for ((new, _), received) in group.queries.iter_mut().zip(&received.0) {
                new.waited = received.elapsed();
            }
            for (new, received) in group.interactions.iter_mut().zip(&received.1) {
                new.waited = received.elapsed();
            }
            match self.store.record(&group).await {
                Ok(written) => {
                    self.written(&written);
                    break;
                }
                Err(error) if passes(&error) && !self.soft.is_cancelled() => {
                    tracing::warn!(%error, count, "recorded queries wait for the database");
                    sleep(backoff.next()).await;
                }
                Err(error) if passes(&error) => {
                    tracing::error!(%error, count, "recorded queries are lost: the database is away");
                    self.metrics.dropped(Dropped::Database, count);
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, count, "a group of queries could not be stored: storing each alone");
                    self.write_each(group).await;
                    break;
                }
            }
        }
        self.metrics.queued.dec_by(signed(count));
        drop(places);
    }

    fn written(&self, written: &Written) {
        self.metrics.written(written);
        self.ratings.settled(&written.rated);
    }

    /// So that one that can't be stored takes no other with it.
    async fn write_each(&self, group: Group) {
        let queries = group.queries.into_iter().map(|query| Group {
            queries: vec![query],
            ..Group::default()
        });
        let interactions = group.interactions.into_iter().map(|interaction| Group {
            interactions: vec![interaction],
            ..Group::default()
        });
        for alone in queries.chain(interactions) {
            self.write_alone(&alone).await;
        }
    }

    /// Stores one, however long the database is away.
    async fn write_alone(&self, alone: &Group) {
        let mut backoff = Backoff::new(RETRY, self.entropy.clone());
        loop {
            let reason = match self.store.record(alone).await {
                Ok(written) => return self.written(&written),
                Err(error) if passes(&error) && !self.soft.is_cancelled() => {
                    tracing::warn!(%error, "a recorded query waits for the database");
                    sleep(backoff.next()).await;
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "a recorded query can't be stored");
                    if passes(&error) {
                        Dropped::Database
                    } else {
                        Dropped::Refused
                    }
                }
            };
            return self.metrics.dropped(reason, 1);
        }
    }
}

/// Whether the error passes by itself and concerns no single row.
fn passes(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Conflict(_) => true,
        StoreError::TooMuch(_) | StoreError::Corrupt(_) | StoreError::Sqlx(_) => false,
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
