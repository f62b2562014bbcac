//! One queue for what people set and delete, so that calls that come together are committed together.
//!
//! A call that comes alone is committed at once; those that come while a commit is under way share the next one. Each keeps
//! its own outcome, its own change and its own revision. A group that fails gives each of its calls a transaction of its own,
//! so that only the culprit, or whoever waits for a lock, sees an error; nobody behind it waits for that.

use std::{sync::Arc, time::Duration};

use emend_base::Error;
use emend_core::Revision;
use emend_serve::{
    fair_semaphore::{ClientKey, FairSemaphore},
    group_queue::{GroupQueue, GroupReceiver, NotServed, QueuedCall, Responder},
};
use emend_wire::value;
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    failure::Failure,
    resources::{
        Resources,
        write::{Act, Acted, Delete, Put, PutResource},
    },
};

/// The room in the queue, in bytes of values.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;
/// The least that a call counts as.
const MIN_BYTES: usize = 4 * 1024;
/// The smallest share that a client may hold when only the reserved quarter of the queue is left.
const LEAST_SHARE: usize = 4 * 1024 * 1024;
/// How long a call waits for its commit to begin: as long as for the database itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// The bytes of values in one commit at most; a larger one is committed alone.
const GROUP_BYTES: usize = 2 * 1024 * 1024;
/// How many calls of failed groups are committed at once, each in a transaction of its own.
const APART: usize = 4;
/// The retry hint when the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(250);

type Result<T> = std::result::Result<T, Error>;

/// The queue of what people do. Clones share it.
#[derive(Debug, Clone)]
pub struct WriteQueue {
    resources: Resources,
    /// One place for each KiB.
    queue: GroupQueue<Act, Result<Acted>>,
}

/// The task that commits it.
struct Worker {
    resources: Resources,
    groups: GroupReceiver<Act, Result<Acted>>,
    apart: Arc<Semaphore>,
}

impl WriteQueue {
    /// Starts its task in the resources' lifecycle. On a soft stop it commits what waits and ends.
    pub fn start(resources: &Resources) -> Self {
        let (queue, worker) = Self::new(resources);
        resources.lifecycle.spawn("commit what people do", worker.run());
        queue
    }

    fn new(resources: &Resources) -> (Self, Worker) {
        let places = FairSemaphore::with_share(QUEUE_BYTES / 1024, LEAST_SHARE / 1024);
        let (queue, groups) = GroupQueue::new(places, PATIENCE);
        let worker = Worker {
            resources: resources.clone(),
            groups,
            apart: Arc::new(Semaphore::new(APART)),
        };
        let resources = resources.clone();
        (Self { resources, queue }, worker)
    }

    /// Sets a value as a person's decision and pins its contest.
    pub async fn put(&self, client: ClientKey, put: Put) -> Result<PutResource> {
        PutResource::of(self.commit(client, Act::Put(put)).await?)
    }

    /// Deletes a value; returns the revision written.
    pub async fn delete(&self, client: ClientKey, delete: Delete) -> Result<Revision> {
        Ok(self.commit(client, Act::Delete(delete)).await?.revision)
    }

    async fn commit(&self, client: ClientKey, act: Act) -> Result<Acted> {
        let served = self.queue.serve(client, bytes(&act) / 1024, act).await;
        let acted = served.map_err(|why| match why {
            NotServed::Full => Error::ResourceExhausted {
                reason: "TOO_MANY_WRITES",
                message: "more writes are waiting than can be committed soon".to_owned(),
                retry_after: Some(RETRY_AFTER),
            },
            NotServed::Stopped => Error::unavailable("STOPPING", "this replica is stopping; try another"),
        })??;
        self.resources.decisions.seen(acted.revision).await;
        Ok(acted)
    }
}

/// What an act counts as in the queue.
fn bytes(act: &Act) -> usize {
    match act {
        Act::Put(put) => value::encode(&put.value).len().max(MIN_BYTES),
        Act::Delete(_) => MIN_BYTES,
    }
}

/// Whether one more fits into a group of at most so many.
fn fits(most: usize) -> impl FnMut(&Act) -> bool {
    let (mut count, mut size) = (0, 0);
    move |act| {
        count += 1;
        size += bytes(act);
        count <= most && size <= GROUP_BYTES
    }
}

impl Worker {
    async fn run(mut self) {
        while self.run_once().await {}
    }

    /// Waits for calls and commits one group of them. False: there will be no more.
    async fn run_once(&mut self) -> bool {
        let Some(group) = self.next_group().await else {
            return false;
        };
        let (acts, askers): (Vec<Act>, Vec<Responder<_>>) = group
            .into_iter()
            .map(|QueuedCall { request, responder }| (request, responder))
            .unzip();
        if acts.is_empty() {
            return true;
        }
        match self.resources.act_together(&acts).await {
            Ok(results) => {
                for (responder, result) in askers.into_iter().zip(results) {
                    responder.tell(result);
                }
            }
            Err(failure) => self.answer_apart(&failure, acts, askers),
        }
        true
    }

    async fn next_group(&mut self) -> Option<Vec<QueuedCall<Act, Result<Acted>>>> {
        let (most, soft) = (self.resources.store.group(), self.resources.lifecycle.soft());
        tokio::select! {
            biased;
            () = soft.cancelled() => self.groups.close(),
            group = self.groups.next(fits(most)) => return group,
        }
        self.groups.next(fits(most)).await
    }

    /// Answers a group that failed as a whole.
    fn answer_apart(&self, failure: &Failure, acts: Vec<Act>, askers: Vec<Responder<Result<Acted>>>) {
        tracing::warn!(error = %failure, calls = acts.len(), "writes could not be committed together");
        if let Failure::Store(error) = failure
            && !error.waited_for_a_lock()
            && let Some(group_error) = error.group_error()
        {
            for responder in askers {
                responder.tell(Err(group_error()));
            }
            return;
        }
        for (act, responder) in acts.into_iter().zip(askers) {
            let apart = commit_apart(self.resources.clone(), Arc::clone(&self.apart), act, responder);
            self.resources.lifecycle.spawn("commit apart", apart);
        }
    }
}

/// Commits a call in a transaction of its own, which waits for locks as long as any other does, unless its caller has gone.
async fn commit_apart(
    resources: Resources,
    apart: Arc<Semaphore>,
    act: Act,
    responder: Responder<Result<Acted>>,
) {
    let Ok(_turn) = timeout(PATIENCE, apart.acquire()).await else {
        let held = "other writes wait for a lock that another transaction holds";
        responder.tell(Err(Error::unavailable("DATABASE_CONTENTION", held)));
        return;
    };
    if responder.waits() {
        let result = resources.act(&act).await;
        resources.decisions.wake();
        responder.tell(result);
    }
}

#[cfg(test)]
mod tests;
