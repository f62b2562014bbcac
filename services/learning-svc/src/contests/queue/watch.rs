//! Watching the queue: one follower of what changed, for all who watch on this replica.
//!
//! The follower reads from its own cursor whenever it is woken, and after some time even if not, while anybody watches. What it
//! reads goes into one bounded ring, which all watches read at their own pace: one that falls behind is told to load its page
//! anew. So memory does not depend on how many watch or how slowly.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use emend_base::{Backoff, BackoffConfig, Entropy, Error};
use emend_core::{Kind, Namespace};
use emend_store::StoreError;
use learning_store::queue::{QueueChange, QueuePosition, QueueStore};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::stream::Wake;

/// Changes that are kept for watches which have not read them yet.
const RING: usize = 1_024;
/// Changes read at once.
const PAGE: u32 = 256;
/// How often the follower looks without being woken.
const PERIOD: Duration = Duration::from_secs(1);
/// After this time without reading, changes may have been dropped unread.
const UNREAD: Duration = Duration::from_mins(2);
/// A watch says that it is alive when nothing changed for this long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Watches on one replica at most.
const WATCHES: usize = 1_000;
/// When a refused watch may be worth repeating.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long a new watch waits until the follower reads.
const OPENS_WITHIN: Duration = Duration::from_secs(5);

/// What all watches read.
#[derive(Debug, Clone)]
enum Told {
    /// A candidate changed.
    Change(Arc<QueueChange>),
    /// Changes were left out.
    Resync,
}

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// The search application.
    pub namespace: Namespace,
    /// Only these kinds; empty: all but entries of profiles.
    pub kinds: Vec<Kind>,
}

impl Watched {
    fn has(&self, change: &QueueChange) -> bool {
        change.key.namespace == self.namespace
            && change.key.kind != Kind::Profile
            && (self.kinds.is_empty() || self.kinds.contains(&change.key.kind))
    }
}

/// What a watch sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// It has begun.
    Opened,
    /// A candidate changed.
    Change(Arc<QueueChange>),
    /// Changes were left out.
    Resync,
    /// Nothing changed for a while.
    KeepAlive,
}

/// What changes in the queue, for all who watch on this replica.
#[derive(Debug)]
pub struct QueueFeed {
    told: broadcast::Sender<Told>,
    /// Whether the follower has a cursor. Locked while that changes or somebody begins to watch, so that nobody begins between
    /// its decision to rest and its rest.
    following: Mutex<watch::Sender<bool>>,
    /// Wakes the follower.
    woken: Arc<Notify>,
    slots: Arc<Semaphore>,
    /// Ends all watches.
    soft: CancellationToken,
}

impl QueueFeed {
    /// A feed whose follower `woken` wakes, until `soft` is cancelled.
    pub(crate) fn new(woken: Arc<Notify>, soft: CancellationToken) -> Self {
        Self {
            told: broadcast::Sender::new(RING),
            following: Mutex::new(watch::Sender::new(false)),
            woken,
            slots: Arc::new(Semaphore::new(WATCHES)),
            soft,
        }
    }

    /// Signals that something was committed.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Begins to watch: everything committed after this returns is sent. UNAVAILABLE if too many watch, or the changes can't be
    /// read.
    pub async fn watch(&self, watched: Watched) -> Result<Watch, Error> {
        let slot = Arc::clone(&self.slots)
            .try_acquire_owned()
            .map_err(|_| Error::Unavailable {
                reason: "TOO_MANY_WATCHES",
                message: format!("{WATCHES} watches are open on this replica, which is the maximum"),
                retry_after: Some(RETRY_AFTER),
            })?;
        let (told, mut following) = {
            let following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
            (self.told.subscribe(), following.subscribe())
        };
        self.wake();
        let begun = timeout(OPENS_WITHIN, following.wait_for(|following| *following)).await;
        if !matches!(begun, Ok(Ok(_))) {
            return Err(Error::Unavailable {
                reason: "QUEUE_NOT_READ",
                message: "what changes in the queue can't be read now".to_owned(),
                retry_after: Some(RETRY_AFTER),
            });
        }
        Ok(Watch {
            watched,
            told,
            ahead: VecDeque::from([Watching::Opened]),
            soft: self.soft.clone(),
            _slot: slot,
        })
    }

    /// Notes whether the follower has a cursor.
    fn follows(&self, follows: bool) {
        let following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        following.send_replace(follows);
    }

    /// Rests if nobody watches. Returns whether it does.
    fn rests(&self) -> bool {
        let following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        let nobody = self.told.receiver_count() == 0;
        if nobody {
            following.send_replace(false);
        }
        nobody
    }

    fn tell(&self, told: Told) {
        // Nobody may watch any more.
        let _ = self.told.send(told);
    }
}

/// Follows what changes in the queue.
#[derive(Clone)]
pub struct Follower {
    store: Arc<dyn QueueStore>,
    feed: Arc<QueueFeed>,
    cursor: Option<(QueuePosition, Instant)>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Follower {
    pub(crate) fn new(store: Arc<dyn QueueStore>, feed: Arc<QueueFeed>) -> Self {
        Self {
            store,
            feed,
            cursor: None,
        }
    }

    /// Reads what changed since it last did, if anybody watches. Returns whether there is more.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        if self.feed.rests() {
            self.cursor = None;
            return Ok(false);
        }
        let now = Instant::now();
        let after = match self.cursor {
            Some((after, read_at)) if now.duration_since(read_at) < UNREAD => after,
            before => {
                let position = self.store.queue_position().await?;
                if before.is_some() {
                    self.feed.tell(Told::Resync);
                }
                self.cursor = Some((position, now));
                self.feed.follows(true);
                return Ok(false);
            }
        };
        let page = self.store.queue_changes(after, PAGE).await?;
        let last = page.last().map_or(after, |(position, _)| *position);
        let is_full = page.len() >= PAGE as usize;
        for (_, change) in page {
            match change {
                Ok(Some(change)) => self.feed.tell(Told::Change(Arc::new(change))),
                // It was erased since.
                Ok(None) => {}
                Err(row) => {
                    tracing::error!(error = %row, "can't read a change of the queue");
                    self.feed.tell(Told::Resync);
                }
            }
        }
        self.cursor = Some((last, now));
        Ok(is_full)
    }

    /// Works until its feed ends; `wake` tells of commits by other replicas.
    pub async fn run_until_stopped(mut self, mut wake: Wake, entropy: Entropy) {
        let mut backoff = Backoff::new(
            BackoffConfig {
                max: Duration::from_secs(5),
                ..BackoffConfig::default()
            },
            entropy,
        );
        let soft = self.feed.soft.clone();
        loop {
            let step = tokio::select! {
                () = soft.cancelled() => return,
                step = self.run_once() => step,
            };
            let pause = match step {
                Ok(true) => continue,
                Ok(false) => {
                    backoff.reset();
                    PERIOD
                }
                Err(error) => {
                    tracing::warn!(%error, "can't read what changed in the queue; trying again");
                    backoff.next()
                }
            };
            let failed = pause != PERIOD;
            tokio::select! {
                () = soft.cancelled() => return,
                () = self.feed.woken.notified(), if !failed => {}
                () = wake.woken(), if self.cursor.is_some() && !failed => {}
                () = sleep(pause), if self.cursor.is_some() || failed => {}
            }
        }
    }
}

/// One watch, to be read message by message.
#[derive(Debug)]
pub struct Watch {
    watched: Watched,
    told: broadcast::Receiver<Told>,
    /// To be sent first.
    ahead: VecDeque<Watching>,
    soft: CancellationToken,
    _slot: OwnedSemaphorePermit,
}

impl Watch {
    /// The next message; none once the replica stops.
    pub async fn next(&mut self) -> Option<Watching> {
        if let Some(first) = self.ahead.pop_front() {
            return Some(first);
        }
        let keep_alive = Instant::now() + KEEP_ALIVE;
        loop {
            let told = tokio::select! {
                biased;
                () = self.soft.cancelled() => return None,
                told = self.told.recv() => told,
                () = tokio::time::sleep_until(keep_alive) => return Some(Watching::KeepAlive),
            };
            match told {
                Ok(Told::Change(change)) if self.watched.has(&change) => {
                    return Some(Watching::Change(change));
                }
                Ok(Told::Change(_)) => {}
                Ok(Told::Resync) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    return Some(Watching::Resync);
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
