//! Group commit: submissions that come at the same time share one transaction, so that durable submissions are several
//! times faster than one transaction each.
//!
//! One task per process takes what waits, up to a bound, and stores it as a group. A group that fails is tried again item
//! by item, so that only the culprit sees its error.
//!
//! What waits is bounded in bytes and in time. Until its group begins, a submission is its caller's: one whose caller is
//! gone (its deadline has passed, its connection broke) is not begun, and one that waited too long is refused and not begun
//! either. From then on it is the task's: a caller that goes away takes nothing back. It must know nothing of requests or
//! responses.

use std::{sync::Arc, time::Duration};

use emend_runtime::{Error, store::StoreError};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
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
/// After which time it may be worth trying again when the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// The items of a job as they were given, without their events' messages, and what became of them; in order.
type Results = Vec<Result<(NewFeedback, Inserted), Error>>;

/// What one caller wants stored.
#[derive(Debug)]
struct Job {
    items: Vec<NewFeedback>,
    /// Told when its group begins; who does not listen any more wants nothing stored.
    begun: oneshot::Sender<()>,
    results: oneshot::Sender<Results>,
    /// Given back once the job is done.
    _room: OwnedSemaphorePermit,
}

/// The way to the committer. It runs until the last of its handles is gone.
#[derive(Debug, Clone)]
pub(crate) struct Committer {
    jobs: mpsc::UnboundedSender<Job>,
    room: Arc<Semaphore>,
    queue_kib: usize,
    queue_time: Duration,
}

/// The committer's task.
#[derive(Debug)]
pub(crate) struct CommitWorker {
    jobs: mpsc::UnboundedReceiver<Job>,
    /// Taken from the queue but not fitting into the last group.
    next: Option<Job>,
    store: Arc<dyn Store>,
    dispatch: Dispatch,
    config: CommitConfig,
    counted: Stored,
}

impl Committer {
    /// A committer and the task that has to be run for it.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        dispatch: Dispatch,
        config: CommitConfig,
    ) -> (Self, CommitWorker) {
        let (sender, jobs) = mpsc::unbounded_channel();
        let queue_kib = (config.queue_bytes / 1024).clamp(1, Semaphore::MAX_PERMITS);
        let committer = Self {
            jobs: sender,
            room: Arc::new(Semaphore::new(queue_kib)),
            queue_kib,
            queue_time: config.queue_time,
        };
        (
            committer,
            CommitWorker {
                jobs,
                next: None,
                store,
                dispatch,
                config,
                counted: Stored::default(),
            },
        )
    }

    /// Stores all items of one caller in one go, together with those of others, and answers for each. Refuses at once where
    /// too much waits already, and later where it waited too long. What is refused is not stored, and neither is that of a
    /// caller that goes away while it waits.
    pub(crate) async fn store(&self, items: Vec<NewFeedback>) -> Result<Results, Error> {
        let bytes: usize = items
            .iter()
            .map(|item| item.event.payload.len().max(MIN_COST))
            .sum();
        let cost = u32::try_from((bytes / 1024).min(self.queue_kib)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(cost)
            .map_err(|_| too_many())?;
        let (begun, mut beginning) = oneshot::channel();
        let (results, stored) = oneshot::channel();
        self.jobs
            .send(Job {
                items,
                begun,
                results,
                _room: room,
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
            _room: room,
        } in group
        {
            if begun.send(()).is_err() {
                continue;
            }
            owners.push((own.len(), results, room));
            items.extend(own);
        }
        if items.is_empty() {
            return true;
        }
        fail_points::GROUP_TAKEN.pass();
        let mut results = self.commit(items).await.into_iter();
        fail_points::GROUP_HANDED_OVER.pass();
        for (count, owner, _room) in owners {
            // Whoever asked may be gone; it is stored all the same.
            let _ = owner.send(results.by_ref().take(count).collect());
        }
        true
    }

    /// What waits, up to the bound of a group.
    async fn next_group(&mut self) -> Option<Vec<Job>> {
        let first = loop {
            match self.waiting() {
                Some(job) => break job,
                None => self.next = Some(self.jobs.recv().await?),
            }
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

    /// The next job that somebody still wants done, if there is one now.
    fn waiting(&mut self) -> Option<Job> {
        loop {
            let job = self.next.take().or_else(|| self.jobs.try_recv().ok())?;
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
        let inserted = self.store.insert(items, lease).await?;
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
        StoreError::Conflict(_) | StoreError::Corrupt(_) | StoreError::Sqlx(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use emend_runtime::Entropy;
    use futures::{FutureExt as _, future::join_all};
    use tonic::Code;

    use super::*;
    use crate::{
        config::RelayConfig,
        domain::{DeadLetterQuery, FeedbackQuery},
        relay::hand_over::HandOver,
        testing::{Backend, TestStore, feedback, lease, namespace, stored, with_request_id},
    };

    struct Bench {
        database: TestStore,
        hand_over: HandOver,
        committer: Committer,
        worker: CommitWorker,
    }

    impl Bench {
        async fn new(config: CommitConfig) -> Self {
            Self::on(TestStore::sqlite().await, config)
        }

        fn on(database: TestStore, config: CommitConfig) -> Self {
            let hand_over = HandOver::new(1_000);
            let dispatch = Dispatch::new(hand_over.clone(), Entropy::seeded(1), RelayConfig::default());
            let (committer, worker) = Committer::new(Arc::clone(&database.store), dispatch, config);
            Self {
                database,
                hand_over,
                committer,
                worker,
            }
        }

        async fn stored(&self) -> usize {
            let all = FeedbackQuery {
                namespace: namespace(),
                reporter: None,
                kind: None,
                delivery: None,
                from: None,
                before: None,
                after: None,
                limit: 1_000,
            };
            self.database.store.list(&all).await.unwrap().len()
        }

        /// Begins to store items, and answers once they wait.
        fn begin(&self, items: Vec<NewFeedback>) -> impl Future<Output = Result<Results, Error>> + use<> {
            let committer = self.committer.clone();
            let mut waiting = Box::pin(async move { committer.store(items).await });
            let now = (&mut waiting).now_or_never();
            async move {
                match now {
                    Some(answer) => answer,
                    None => waiting.await,
                }
            }
        }
    }

    #[tokio::test]
    async fn what_waits_together_is_stored_together_and_handed_over() {
        let mut bench = Bench::new(CommitConfig::default()).await;
        let waiting: Vec<_> = (0..50)
            .map(|n| bench.begin(vec![feedback(&n.to_string())]))
            .collect();
        assert!(bench.worker.run_once().await);
        assert_eq!(bench.stored().await, 50);
        assert_eq!(bench.hand_over.len(), 50);
        for answer in join_all(waiting).await {
            assert!(matches!(answer.unwrap()[..], [Ok((_, Inserted::Stored(_)))]));
        }
    }

    #[tokio::test]
    async fn a_group_is_bounded_in_items_and_bytes_and_larger_batches_are_stored_alone() {
        let mut bench = Bench::new(CommitConfig {
            group_items: 4,
            ..CommitConfig::default()
        })
        .await;
        let waiting =
            [3, 2, 10, 1].map(|count| bench.begin((0..count).map(|n| feedback(&n.to_string())).collect()));
        let mut sizes = Vec::new();
        for _ in 0..4 {
            let before = bench.stored().await;
            assert!(bench.worker.run_once().await);
            sizes.push(bench.stored().await - before);
        }
        assert_eq!(sizes, [3, 2, 10, 1]);
        drop(waiting);

        let mut bench = Bench::new(CommitConfig {
            group_bytes: 1,
            ..CommitConfig::default()
        })
        .await;
        let _waiting = ["a", "b"].map(|phrase| bench.begin(vec![feedback(phrase)]));
        assert!(bench.worker.run_once().await);
        assert_eq!(bench.stored().await, 1);
    }

    #[tokio::test]
    async fn only_the_culprit_sees_its_error() {
        for backend in [Backend::Sqlite, Backend::Postgres] {
            if let Some(database) = TestStore::open(backend).await {
                let bench = Bench::on(database, CommitConfig::default());
                expect_an_error_for_the_culprit_alone(bench).await;
            }
        }
    }

    async fn expect_an_error_for_the_culprit_alone(mut bench: Bench) {
        let culprit = feedback("there already");
        stored(&*bench.database.store, &culprit, None).await;
        let waiting: Vec<_> = [
            vec![feedback("a"), feedback("b")],
            vec![feedback("c"), culprit, feedback("d")],
            vec![feedback("e")],
        ]
        .into_iter()
        .map(|items| bench.begin(items))
        .collect();
        assert!(bench.worker.run_once().await);
        let answers: Vec<Vec<_>> = join_all(waiting)
            .await
            .into_iter()
            .map(|answer| {
                answer
                    .unwrap()
                    .iter()
                    .map(|item| item.as_ref().map(|_| ()).map_err(Error::code))
                    .collect()
            })
            .collect();
        assert_eq!(
            answers,
            [
                vec![Ok(()); 2],
                vec![Ok(()), Err(Code::Internal), Ok(())],
                vec![Ok(())]
            ]
        );
        assert_eq!(bench.stored().await, 6);
        assert_eq!(bench.hand_over.len(), 5);
        bench.database.close().await;
    }

    #[tokio::test]
    async fn what_is_stored_is_handed_over_although_a_repeat_beside_it_fails() {
        for backend in [Backend::Sqlite, Backend::Postgres] {
            if let Some(database) = TestStore::open(backend).await {
                let bench = Bench::on(database, CommitConfig::default());
                expect_an_error_for_the_repeat_alone(bench).await;
            }
        }
    }

    async fn expect_an_error_for_the_repeat_alone(mut bench: Bench) {
        stored(&*bench.database.store, &with_request_id("a", "r"), None).await;
        bench.database.corrupt_request_ids().await;
        let waiting = [
            bench.begin(vec![with_request_id("a", "r")]),
            bench.begin(vec![feedback("b")]),
        ];
        assert!(bench.worker.run_once().await);
        let answers = join_all(waiting).await;
        assert!(matches!(answers[0].as_deref().unwrap(), [Err(_)]), "{answers:?}");
        assert!(
            matches!(answers[1].as_deref().unwrap(), [Ok((_, Inserted::Stored(_)))]),
            "{answers:?}"
        );
        assert_eq!((bench.stored().await, bench.hand_over.len()), (2, 1));
        bench.database.close().await;
    }

    #[tokio::test]
    async fn what_a_caller_wanted_who_went_away_while_it_waited_is_not_begun() {
        let mut bench = Bench::new(CommitConfig {
            group_items: 2,
            queue_bytes: 3 * MIN_COST,
            ..CommitConfig::default()
        })
        .await;
        let gone = ["a", "b", "c"].map(|phrase| bench.begin(vec![feedback(phrase)]));
        assert!(bench.begin(vec![feedback("no room")]).await.is_err());
        drop(gone);
        // They still have their room, and give it back without a group of their own.
        let idle = bench.worker.run_once().now_or_never();
        assert_eq!(idle, None, "there is nothing to store");
        let staying = [
            bench.begin(vec![feedback("here")]),
            bench.begin(vec![feedback("here too")]),
        ];
        assert!(bench.worker.run_once().await);
        for answer in join_all(staying).await {
            assert!(answer.is_ok());
        }
        assert_eq!((bench.stored().await, bench.hand_over.len()), (2, 2));
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_once_its_group_has_begun_takes_nothing_back() {
        let Bench {
            database,
            hand_over,
            committer,
            mut worker,
        } = Bench::new(CommitConfig::default()).await;
        let mut leaving = Box::pin(committer.store(vec![feedback("a")]));
        assert!((&mut leaving).now_or_never().is_none());
        let mut step = Box::pin(worker.run_once());
        assert!((&mut step).now_or_never().is_none(), "it is being stored");
        drop(leaving);
        assert!(step.await);
        assert_eq!(hand_over.len(), 1);
        database.close().await;
    }

    #[tokio::test]
    async fn what_waits_too_long_is_refused_and_not_begun() {
        let mut bench = Bench::new(CommitConfig::default()).await;
        tokio::time::pause();
        let late = bench.begin(vec![feedback("late")]);
        tokio::time::advance(CommitConfig::default().queue_time + Duration::from_millis(1)).await;
        let refused = late.now_or_never().expect("it is refused").unwrap_err();
        assert!(
            matches!(
                refused,
                Error::ResourceExhausted {
                    retry_after: Some(_),
                    ..
                }
            ),
            "{refused}"
        );
        tokio::time::resume();
        let next = bench.begin(vec![feedback("next")]);
        assert!(bench.worker.run_once().await);
        assert!(next.await.is_ok());
        assert_eq!((bench.stored().await, bench.hand_over.len()), (1, 1));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once_and_has_room_again_later() {
        let mut bench = Bench::new(CommitConfig {
            queue_bytes: 8 * 1024,
            ..CommitConfig::default()
        })
        .await;
        let waiting = [bench.begin(vec![feedback("a")]), bench.begin(vec![feedback("b")])];
        let refused = bench.begin(vec![feedback("c")]).await.unwrap_err();
        assert!(
            matches!(
                refused,
                Error::ResourceExhausted {
                    retry_after: Some(_),
                    ..
                }
            ),
            "{refused}"
        );
        assert!(bench.worker.run_once().await);
        join_all(waiting).await;
        let later = bench.begin(vec![feedback("d")]);
        assert!(bench.worker.run_once().await);
        assert!(later.await.is_ok());
    }

    #[tokio::test]
    async fn repeated_requests_are_not_handed_over_again() {
        let mut bench = Bench::new(CommitConfig::default()).await;
        let waiting: Vec<_> = (0..3)
            .map(|_| bench.begin(vec![with_request_id("a", "r")]))
            .collect();
        assert!(bench.worker.run_once().await);
        join_all(waiting).await;
        assert_eq!((bench.stored().await, bench.hand_over.len()), (1, 1));
    }

    #[tokio::test]
    async fn it_ends_when_nobody_can_ask_any_more_and_stores_what_was_asked() {
        let bench = Bench::new(CommitConfig::default()).await;
        let asked = bench.begin(vec![feedback("a")]);
        let Bench {
            database,
            committer,
            mut worker,
            ..
        } = bench;
        drop(committer);
        assert!(worker.run_once().await);
        assert!(asked.await.is_ok());
        assert!(!worker.run_once().await);
        database.advance(3_600).await;
        assert_eq!(database.store.claim(9, lease()).await.unwrap().len(), 1);
        let none = DeadLetterQuery {
            namespace: None,
            after: None,
            limit: 1,
        };
        assert!(database.store.dead_letters(&none).await.unwrap().is_empty());
    }
}
