//! Group commit: concurrent submissions share one transaction, which makes durable submissions several times faster
//! than one transaction each.
//!
//! One task per process takes what is queued ([`emend_serve::group_queue`]), up to a limit, and stores it as a group. A
//! group that fails is retried item by item, so that only the culprit sees its error, unless the database as a whole is
//! at fault.
//!
//! The queue is bounded in bytes and in time, and no single client can fill one of more than 4 MiB.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::{Error, telemetry::sparse::Sparse};
use emend_core::AcceptOrder;
use emend_serve::{
    fair_semaphore::{ClientKey, FairSemaphore},
    group_queue::{GroupQueue, GroupReceiver, NotServed, QueuedCall},
};
use emend_store::StoreError;
use feedback_store::{
    ports::{CorrectionStore, Inserted},
    records::{event::NewEvent, feedback::NewFeedback, ratings::RatingState},
};
use tokio::time::Instant;

use crate::{
    corrections::config::CommitConfig,
    fail_points,
    metrics::{RatingMetrics, Stored},
    outbox::dispatch::{Dispatch, Reserved},
};

/// The least that a submission counts as in the queue, in bytes.
const MIN_COST: usize = 4 * 1024;
/// The smallest share that a client may hold when only the reserved quarter of the queue is left, in bytes: one
/// message.
const LEAST_SHARE: usize = 4 * 1024 * 1024;
/// The retry hint when the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// What groups say in the log that could not be stored: many say the same while the database is away or full.
static LOGGED: Sparse = Sparse::new(1, Duration::from_secs(1));

/// A store that has not answered for this long counts as stuck.
const STALL: Duration = Duration::from_secs(10);

/// The items of a job, without their events' messages, each with its result; in order.
type Results = Vec<Result<(NewFeedback, Inserted), Error>>;

/// A handle to the committer, which runs until the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Committer {
    /// The items of each call; one place for each KiB.
    queue: GroupQueue<Vec<NewFeedback>, Results>,
    queue_time: Duration,
    storing: Storing,
}

/// What the committer sees of the store. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storing(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Since when it has been waiting for the store, if it is.
    since: Option<Instant>,
    /// Whether the last group found the database unavailable.
    is_away: bool,
}

/// The committer is waiting for the store for as long as this lives.
#[derive(Debug)]
struct WaitingForStore<'a>(&'a Storing);

impl Storing {
    /// Whether the store has stopped answering, so that what is submitted now will be refused before it can be stored.
    pub(crate) fn is_stuck(&self) -> bool {
        self.seen().has_waited(STALL)
    }

    /// Whether the queue stands still because of the database: it was away when it was last asked, or has not answered for
    /// as long as a submission may be queued.
    fn stands_still(&self, queue_time: Duration) -> bool {
        let seen = self.seen();
        seen.is_away || seen.has_waited(queue_time)
    }

    fn begin(&self) -> WaitingForStore<'_> {
        self.seen().since = Some(Instant::now());
        WaitingForStore(self)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn has_waited(&self, long: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= long)
    }
}

impl WaitingForStore<'_> {
    /// Notes whether the store could be asked at all.
    fn answered<T>(self, answer: &Result<T, StoreError>) {
        self.0.seen().is_away = matches!(answer, Err(StoreError::Unavailable(_)));
    }
}

impl Drop for WaitingForStore<'_> {
    fn drop(&mut self) {
        self.0.seen().since = None;
    }
}

/// The committer's task.
#[derive(Debug)]
pub(crate) struct CommitWorker {
    groups: GroupReceiver<Vec<NewFeedback>, Results>,
    store: Arc<dyn CorrectionStore>,
    dispatch: Dispatch,
    config: CommitConfig,
    counted: Stored,
    ratings: RatingMetrics,
    storing: Storing,
}

impl Committer {
    /// A handle, and the worker that must be run for it.
    pub(crate) fn new(
        store: Arc<dyn CorrectionStore>,
        dispatch: Dispatch,
        config: CommitConfig,
    ) -> (Self, CommitWorker) {
        let places = FairSemaphore::with_share(config.queue_bytes / 1024, LEAST_SHARE / 1024);
        let (queue, groups) = GroupQueue::new(places, config.queue_time);
        let storing = Storing::default();
        let committer = Self {
            queue,
            queue_time: config.queue_time,
            storing: storing.clone(),
        };
        (
            committer,
            CommitWorker {
                groups,
                store,
                dispatch,
                config,
                counted: Stored::default(),
                ratings: RatingMetrics::default(),
                storing,
            },
        )
    }

    /// Stores all items of a call in one group, together with those of other calls, and returns a result for each.
    /// Refuses at once if too much is queued already, in total or by `client`, and later if the commit does not begin
    /// in time. Refused items are not stored, nor are those of a caller that leaves while they are queued.
    pub(crate) async fn store(&self, client: ClientKey, items: Vec<NewFeedback>) -> Result<Results, Error> {
        let bytes: usize = items
            .iter()
            .map(|item| item.event.payload.len().max(MIN_COST))
            .sum();
        let results = self.queue.serve(client, bytes / 1024, items).await;
        results.map_err(|why| match why {
            NotServed::Full => self.too_many(),
            NotServed::Stopped => Error::unavailable("STOPPING", "the service is stopping"),
        })
    }

    /// The queue is full, or does not move: because too much comes, or because of the database, which is no fault of callers.
    fn too_many(&self) -> Error {
        if self.storing.stands_still(self.queue_time) {
            return database_away();
        }
        Error::ResourceExhausted {
            reason: "TOO_MANY_SUBMISSIONS",
            message: "more submissions are waiting than can be stored soon".to_owned(),
            retry_after: Some(RETRY_AFTER),
        }
    }
}

fn database_away() -> Error {
    Error::unavailable("DATABASE_UNAVAILABLE", "the database is unavailable")
}

impl CommitWorker {
    /// Counts what is stored in `counted`, and what becomes of ratings in `ratings`.
    pub(crate) fn counting(mut self, counted: Stored, ratings: RatingMetrics) -> Self {
        self.counted = counted;
        self.ratings = ratings;
        self
    }

    /// Whether its store answers.
    pub(crate) fn storing(&self) -> &Storing {
        &self.storing
    }

    /// Commits groups until all handles are dropped and every queued job is done.
    pub(crate) async fn run(mut self) {
        while self.run_once().await {}
    }

    /// Waits for jobs and commits one group of them. False: there will be no more jobs.
    pub(crate) async fn run_once(&mut self) -> bool {
        let Some(group) = self.next_group().await else {
            return false;
        };
        let (mut items, mut askers) = (Vec::new(), Vec::with_capacity(group.len()));
        for QueuedCall { request, responder } in group {
            askers.push((request.len(), responder));
            items.extend(request);
        }
        if items.is_empty() {
            return true;
        }
        fail_points::GROUP_TAKEN.pass();
        let mut results = self.commit(items).await.into_iter();
        fail_points::GROUP_HANDED_OVER.pass();
        for (count, responder) in askers {
            // The caller may be gone; its items are stored all the same.
            responder.tell(results.by_ref().take(count).collect());
        }
        true
    }

    /// The next calls, up to the limits of a group; none once all handles are gone.
    async fn next_group(&mut self) -> Option<Vec<QueuedCall<Vec<NewFeedback>, Results>>> {
        let (mut items, mut bytes) = (0, 0);
        let CommitConfig {
            group_items,
            group_bytes,
            ..
        } = self.config;
        let fits = |more: &Vec<NewFeedback>| {
            items += more.len();
            bytes += more.iter().map(|item| item.event.payload.len()).sum::<usize>();
            items <= group_items && bytes <= group_bytes
        };
        self.groups.next(fits).await
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
            self.ratings.failed(&items);
            return vec![Err(error.into())];
        }
        if let Some(nothing_helps) = error.group_error() {
            if let Some(left_out) = LOGGED.due() {
                tracing::warn!(%error, items = items.len(), left_out, "a group could not be stored");
            }
            self.ratings.failed(&items);
            return items.iter().map(|_| Err(nothing_helps())).collect();
        }
        tracing::warn!(%error, items = items.len(), "a group could not be stored: storing its items one by one");
        let mut results = Vec::with_capacity(items.len());
        for mut item in items {
            let inserted = self.insert(std::slice::from_mut(&mut item)).await;
            if inserted.is_err() {
                self.ratings.failed([&item]);
            }
            results.push(inserted.map_err(Error::from).and_then(|mut inserted| {
                let answer = inserted
                    .pop()
                    .ok_or_else(|| Error::internal("the store gave no answer"))?;
                Ok((item, answer?))
            }));
        }
        results
    }

    /// Stores items and hands their events over to the relay.
    async fn insert(
        &self,
        items: &mut [NewFeedback],
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        let reserved = self.dispatch.reserve(items.len());
        let lease = reserved.as_ref().map(Reserved::lease);
        let inserted = {
            let waiting = self.storing.begin();
            let inserted = self.store.insert(items, lease).await;
            waiting.answered(&inserted);
            inserted?
        };
        fail_points::GROUP_COMMITTED.pass();
        self.observe_ratings(items, &inserted).await;
        let stored = items
            .iter_mut()
            .zip(&inserted)
            .filter_map(|(item, inserted)| match inserted {
                Ok(Inserted::Stored(accepted)) => {
                    self.counted.count(item.submission.correction.form());
                    if !item.submission.is_delivered() {
                        return None;
                    }
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
                Ok(Inserted::TooOften(_)) => {
                    self.ratings.refused();
                    None
                }
                Ok(Inserted::Replayed(_) | Inserted::RequestIdReused) | Err(_) => None,
            });
        self.dispatch.stored(reserved, stored.collect());
        Ok(inserted)
    }
}

impl CommitWorker {
    /// Counts and logs the ratings of search answers that are stored, with what is known of their queries.
    async fn observe_ratings(&self, items: &[NewFeedback], inserted: &[Result<Inserted, StoreError>]) {
        let stored: Vec<(&NewFeedback, AcceptOrder)> = items
            .iter()
            .zip(inserted)
            .filter_map(|(item, inserted)| match inserted {
                Ok(Inserted::Stored(accepted)) if item.submission.correction.search_rating().is_some() => {
                    Some((item, accepted.order))
                }
                _ => None,
            })
            .collect();
        if stored.is_empty() {
            return;
        }
        let orders: Vec<AcceptOrder> = stored.iter().map(|(_, order)| *order).collect();
        let mut states = self.store.rating_states(&orders).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "ratings are stored, but their queries can't be read for the log");
            HashMap::new()
        });
        for (item, order) in stored {
            let state = states.remove(&order).unwrap_or_else(RatingState::pending);
            self.ratings.stored(item, &state);
        }
    }
}

#[cfg(test)]
mod tests;
