//! Group commit: submissions that come at the same time share one transaction, so that durable submissions are several
//! times faster than one transaction each.
//!
//! One task per process takes what waits, of one caller after the other and up to a bound, and stores it as a group. A group
//! that fails is tried again item by item, so that only the culprit sees its error.
//!
//! What waits is bounded in bytes and in time, and so that no one caller has all of the queue. Until its group begins, a submission is its caller's: one whose caller is
//! gone (its deadline has passed, its connection broke) is not begun, and one that waited too long is refused and not begun
//! either. From then on it is the task's: a caller that goes away takes nothing back. It must know nothing of requests or
//! responses.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use emend_runtime::{
    Error,
    fair_queue::FairQueue,
    fair_semaphore::{ClientKey, FairSemaphore, Permit},
    store::StoreError,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use crate::{
    config::CommitConfig,
    domain::{NewEvent, NewFeedback},
    fail_points,
    metrics::Stored,
    relay::dispatch::{Dispatch, Reserved},
    store::{Inserted, Store},
};

/// What a submission counts as at least, in bytes.
const MIN_COST: usize = 4 * 1024;
/// As much of the last quarter of the queue each caller may have at least, in bytes: one message.
const LEAST_SHARE: usize = 4 * 1024 * 1024;
/// After which time it may be worth trying again when the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// A store that has owed an answer for so long does not store.
const STALL: Duration = Duration::from_secs(10);

/// The items of a job as they were given, without their events' messages, and what became of them; in order.
type Results = Vec<Result<(NewFeedback, Inserted), Error>>;

/// What one caller wants stored.
#[derive(Debug)]
struct Job {
    items: Vec<NewFeedback>,
    /// Told when its group begins; who does not listen any more wants nothing stored.
    begun: oneshot::Sender<()>,
    results: oneshot::Sender<Results>,
    /// Its KiB of the queue, given back once the job is done.
    place: Permit,
}

/// The way to the committer. It runs until the last of its handles is gone.
#[derive(Debug, Clone)]
pub(crate) struct Committer {
    jobs: mpsc::UnboundedSender<Job>,
    /// In KiB.
    permits: FairSemaphore,
    queue_time: Duration,
}

/// Since when the store has owed the committer an answer, if it does. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storing(Arc<Mutex<Option<Instant>>>);

/// The store owes an answer for as long as this lives.
#[derive(Debug)]
struct Owed<'a>(&'a Storing);

impl Storing {
    /// Whether the store does not answer: what is submitted now is refused before it can be stored.
    pub(crate) fn is_stuck(&self) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() >= STALL)
    }

    fn begin(&self) -> Owed<'_> {
        self.set(Some(Instant::now()));
        Owed(self)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// The committer's task.
#[derive(Debug)]
pub(crate) struct CommitWorker {
    jobs: mpsc::UnboundedReceiver<Job>,
    /// Those that came, of one caller after the other.
    queue: FairQueue<Job>,
    /// Whose turn it was, but did not fit into the last group.
    next: Option<Job>,
    store: Arc<dyn Store>,
    dispatch: Dispatch,
    config: CommitConfig,
    counted: Stored,
    storing: Storing,
}

impl Committer {
    /// A committer and the task that has to be run for it.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        dispatch: Dispatch,
        config: CommitConfig,
    ) -> (Self, CommitWorker) {
        let (sender, jobs) = mpsc::unbounded_channel();
        let committer = Self {
            jobs: sender,
            permits: FairSemaphore::with_share(config.queue_bytes / 1024, LEAST_SHARE / 1024),
            queue_time: config.queue_time,
        };
        (
            committer,
            CommitWorker {
                jobs,
                queue: FairQueue::default(),
                next: None,
                store,
                dispatch,
                config,
                counted: Stored::default(),
                storing: Storing::default(),
            },
        )
    }

    /// Stores all items of one caller in one go, together with those of others, and answers for each. Refuses at once where
    /// too much waits already, of all callers or of `client`, and later where it waited too long. What is refused is not
    /// stored, and neither is that of a caller that goes away while it waits.
    pub(crate) async fn store(&self, client: ClientKey, items: Vec<NewFeedback>) -> Result<Results, Error> {
        let bytes: usize = items
            .iter()
            .map(|item| item.event.payload.len().max(MIN_COST))
            .sum();
        let place = self
            .permits
            .try_acquire_many(client, bytes / 1024)
            .ok_or_else(too_many)?;
        let (begun, mut beginning) = oneshot::channel();
        let (results, stored) = oneshot::channel();
        self.jobs
            .send(Job {
                items,
                begun,
                results,
                place,
            })
            .map_err(|_| stopped())?;
        if let Ok(begun) = timeout(self.queue_time, &mut beginning).await {
            begun.map_err(|_| stopped())?;
        } else {
            // From here on it can't begin any more. It may have at this very moment.
            beginning.close();
            beginning.try_recv().map_err(|_| too_many())?;
        }
        stored.await.map_err(|_| stopped())
    }
}

fn too_many() -> Error {
    Error::ResourceExhausted {
        reason: "TOO_MANY_SUBMISSIONS",
        message: "more submissions are waiting than can be stored soon".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

fn stopped() -> Error {
    Error::unavailable("STOPPING", "the service is stopping")
}

impl CommitWorker {
    /// Counts there what is stored.
    pub(crate) fn counting(mut self, counted: Stored) -> Self {
        self.counted = counted;
        self
    }

    /// Whether its store answers it.
    pub(crate) fn storing(&self) -> &Storing {
        &self.storing
    }

    /// Stores groups until all handles are gone and everything they gave is stored.
    pub(crate) async fn run(mut self) {
        while self.run_once().await {}
    }

    /// Waits for something to store and stores one group of it. False: there will never be anything again.
    pub(crate) async fn run_once(&mut self) -> bool {
        let Some(group) = self.next_group().await else {
            return false;
        };
        let (mut items, mut owners) = (Vec::new(), Vec::with_capacity(group.len()));
        for Job {
            items: own,
            begun,
            results,
            place,
        } in group
        {
            if begun.send(()).is_err() {
                continue;
            }
            owners.push((own.len(), results, place));
            items.extend(own);
        }
        if items.is_empty() {
            return true;
        }
        fail_points::GROUP_TAKEN.pass();
        let mut results = self.commit(items).await.into_iter();
        fail_points::GROUP_HANDED_OVER.pass();
        for (count, owner, _place) in owners {
            // Whoever asked may be gone; it is stored all the same.
            let _ = owner.send(results.by_ref().take(count).collect());
        }
        true
    }

    /// What waits, up to the bound of a group.
    async fn next_group(&mut self) -> Option<Vec<Job>> {
        let first = loop {
            if let Some(job) = self.waiting() {
                break job;
            }
            let job = self.jobs.recv().await?;
            self.enqueue(job);
        };
        let size = |job: &Job| -> (usize, usize) {
            (
                job.items.len(),
                job.items.iter().map(|item| item.event.payload.len()).sum(),
            )
        };
        let (mut items, mut bytes) = size(&first);
        let mut group = vec![first];
        while let Some(job) = self.waiting() {
            let (more_items, more_bytes) = size(&job);
            if items + more_items > self.config.group_items || bytes + more_bytes > self.config.group_bytes {
                self.next = Some(job);
                break;
            }
            items += more_items;
            bytes += more_bytes;
            group.push(job);
        }
        Some(group)
    }

    fn enqueue(&mut self, job: Job) {
        self.queue.push(job.place.client().clone(), job);
    }

    /// The next job that somebody still wants done, if there is one now.
    fn waiting(&mut self) -> Option<Job> {
        while let Ok(job) = self.jobs.try_recv() {
            self.enqueue(job);
        }
        loop {
            let turn = |turns: &mut FairQueue<Job>| Some(turns.pop(|_| true)?.1);
            let job = self.next.take().or_else(|| turn(&mut self.queue))?;
            if !job.begun.is_closed() {
                return Some(job);
            }
        }
    }

    async fn commit(&self, mut items: Vec<NewFeedback>) -> Results {
        let error = match self.insert(&mut items).await {
            Ok(inserted) => {
                let answers = items.into_iter().zip(inserted);
                return answers.map(|(item, inserted)| Ok((item, inserted?))).collect();
            }
            Err(error) => error,
        };
        if items.len() == 1 {
            return vec![Err(error.into())];
        }
        if let Some(nothing_helps) = condition(&error) {
            tracing::warn!(%error, items = items.len(), "a group could not be stored");
            return items.iter().map(|_| Err(nothing_helps())).collect();
        }
        tracing::warn!(%error, items = items.len(), "a group could not be stored: storing its items one by one");
        let mut results = Vec::with_capacity(items.len());
        for mut item in items {
            let inserted = self.insert(std::slice::from_mut(&mut item)).await;
            results.push(inserted.map_err(Error::from).and_then(|mut inserted| {
                let answer = inserted
                    .pop()
                    .ok_or_else(|| Error::internal("the store gave no answer"))?;
                Ok((item, answer?))
            }));
        }
        results
    }

    /// Stores items and hands over their events.
    async fn insert(
        &self,
        items: &mut [NewFeedback],
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        let reserved = self.dispatch.reserve(items.len());
        let lease = reserved.as_ref().map(Reserved::lease);
        let inserted = {
            let _owed = self.storing.begin();
            self.store.insert(items, lease).await?
        };
        fail_points::GROUP_COMMITTED.pass();
        let stored = items
            .iter_mut()
            .zip(&inserted)
            .filter_map(|(item, inserted)| match inserted {
                Ok(Inserted::Stored(accepted)) => {
                    self.counted.count(item.submission.correction.form);
                    let NewEvent { id, message, payload } = &mut item.event;
                    Some((
                        NewEvent {
                            id: *id,
                            message: std::mem::take(message),
                            payload: payload.clone(),
                        },
                        *accepted,
                    ))
                }
                Ok(Inserted::Replayed(_) | Inserted::RequestIdReused) | Err(_) => None,
            });
        self.dispatch.stored(reserved, stored.collect());
        Ok(inserted)
    }
}

/// The error for every item where the database's condition, and no single item, is the cause.
fn condition(error: &StoreError) -> Option<fn() -> Error> {
    match error {
        StoreError::Unavailable(_) => {
            Some(|| Error::unavailable("DATABASE_UNAVAILABLE", "the database is unavailable"))
        }
        StoreError::Full(_) => Some(|| Error::ResourceExhausted {
            reason: "STORAGE_FULL",
            message: "the database has no more room".to_owned(),
            retry_after: Some(Duration::from_secs(30)),
        }),
        StoreError::Conflict(_) | StoreError::TooMuch(_) | StoreError::Corrupt(_) | StoreError::Sqlx(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests;
