//! Audiences: streams with the same filter and batch size are woken together and served the same bytes.
//!
//! Publishing a state makes exactly the audiences due whose filters cover something that changed, and waits for no stream.
//! Their streams are woken at once, or, where a worker paces that, once for all that was published since they were woken
//! last. A wake-up carries no data; the stream reads from its own cursor.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::{
    batches::Batches,
    budget::Budget,
    filter::{Filter, GroupId},
    listeners::{Listeners, Wave},
    state::ReplicaState,
};

/// The streams with one filter and one batch size.
#[derive(Debug)]
pub struct Audience {
    /// What they see.
    pub filter: Filter,
    /// The filter's hash, as in cursors.
    pub filter_hash: u64,
    /// At most this many bytes of encoded resources in one message; a larger resource is sent alone.
    pub max_batch_bytes: usize,
    /// What was encoded for them.
    pub batches: Batches,
    /// Woken when something the filter covers has changed.
    pub listeners: Listeners,
    /// Nothing the filter covers changed after this revision.
    quiet_since: AtomicI64,
    /// Whether it is among those whose streams are to be woken.
    is_due: AtomicBool,
}

impl Audience {
    /// Whether nothing the filter covers changed between `revision` and a state that was read before this call.
    pub fn is_quiet_since(&self, revision: i64) -> bool {
        revision >= self.quiet_since.load(Ordering::SeqCst)
    }
}

/// What a new state changed.
#[derive(Debug)]
pub enum Changed {
    /// Only these groups.
    Groups(BTreeSet<Arc<GroupId>>),
    /// Everything may differ: the state was loaded anew.
    Everything,
}

type Key = (Filter, usize);

/// How long after it was last confirmed a state counts as stale: several times what lies between two looks at the log.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// The published state and its audiences.
#[derive(Debug)]
pub struct Audiences {
    state: watch::Sender<Option<Arc<ReplicaState>>>,
    /// Ordered, so that simulated runs are reproducible.
    all: Mutex<BTreeMap<Key, Weak<Audience>>>,
    draining: AtomicBool,
    /// How many states have been published.
    published: AtomicU64,
    began: Instant,
    /// When the published state was last known to be all there is, in microseconds since `began`.
    confirmed: AtomicU64,
    /// Those whose streams are to be woken, each once.
    due: Mutex<Vec<Arc<Audience>>>,
    /// Whether a worker wakes them, and not who publishes.
    paced: AtomicBool,
    /// Tells that worker.
    became_due: Notify,
    budget: Budget,
}

impl Audiences {
    /// Nothing published yet, no audiences. What is encoded for them counts towards `budget`.
    pub fn new(budget: Budget) -> Self {
        Self {
            state: watch::Sender::new(None),
            all: Mutex::default(),
            draining: AtomicBool::new(false),
            published: AtomicU64::new(0),
            began: Instant::now(),
            confirmed: AtomicU64::new(0),
            due: Mutex::default(),
            paced: AtomicBool::new(false),
            became_due: Notify::new(),
            budget,
        }
    }

    /// The budget that everything encoded for them counts towards.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Drops all kept batches, if the budget needs it.
    pub fn make_room(&self) {
        if self.budget.wants_room() {
            let all: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
            for audience in all {
                audience.batches.forget();
            }
        }
    }

    /// The newest state; none before the first is loaded.
    pub fn state(&self) -> Option<Arc<ReplicaState>> {
        self.state.borrow().clone()
    }

    /// How many states have been published: a state read after this call is at least as new. Cheaper than reading the
    /// state, because concurrent readers do not contend.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Notes that the published state has all that had been committed at that time.
    pub fn confirm(&self, at: Instant) {
        let since = at.saturating_duration_since(self.began).as_micros();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        self.confirmed.fetch_max(since, Ordering::SeqCst);
    }

    /// A state that is read after this call has all that had been committed at this time.
    pub fn confirmed(&self) -> Instant {
        self.began + Duration::from_micros(self.confirmed.load(Ordering::SeqCst))
    }

    /// Whether the log has not been read to its end for so long that its database must be away or overloaded.
    pub fn is_stale(&self) -> bool {
        self.confirmed().elapsed() > STALE_AFTER
    }

    /// Watches the newest state.
    pub fn follow(&self) -> watch::Receiver<Option<Arc<ReplicaState>>> {
        self.state.subscribe()
    }

    /// Whether streams have been told to drain.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Publishes a state and makes the audiences due that it concerns.
    pub fn publish(&self, state: Arc<ReplicaState>, changed: &Changed) {
        let mut concerned = Vec::new();
        {
            let mut all = self.lock();
            all.retain(|_, audience| audience.strong_count() > 0);
            for audience in all.values().filter_map(Weak::upgrade) {
                let matches = match changed {
                    Changed::Everything => true,
                    Changed::Groups(groups) => groups.iter().any(|group| audience.filter.covers(group)),
                };
                if matches {
                    // Raised before the state is published, so that no stream sees the new state and takes itself for
                    // current. Never lowered, not even where the log went backwards: a stream reading the previous
                    // state at that moment would conclude that nothing changed in between.
                    audience.quiet_since.fetch_max(state.revision(), Ordering::SeqCst);
                    concerned.push(audience);
                }
            }
            self.state.send_replace(Some(state));
            self.published.fetch_add(1, Ordering::SeqCst);
        }
        // After the state is published, so that who is woken sees it.
        let newly_due = concerned
            .into_iter()
            .filter(|audience| !audience.is_due.swap(true, Ordering::SeqCst));
        self.lock_due().extend(newly_due);
        if self.paced.load(Ordering::SeqCst) {
            self.became_due.notify_one();
        } else {
            drop(self.take_due());
        }
    }

    /// The streams of the audiences that are due, which are so no more.
    pub fn take_due(&self) -> Wave {
        let due = std::mem::take(&mut *self.lock_due());
        let mut wave = Wave::default();
        for audience in due {
            // What is published from here on makes it due again.
            audience.is_due.store(false, Ordering::SeqCst);
            wave.extend(audience.listeners.wave());
        }
        wave
    }

    /// Leaves it to the caller to wake streams, by [`Audiences::take_due`] after each [`Audiences::became_due`], until what is
    /// returned is dropped.
    pub fn pace(&self) -> Paced<'_> {
        self.paced.store(true, Ordering::SeqCst);
        Paced(self)
    }

    /// Waits until an audience is due, while it is paced.
    pub async fn became_due(&self) {
        self.became_due.notified().await;
    }

    /// Tells all streams to drain.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        let all: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        for audience in all {
            audience.listeners.wake_all();
        }
    }

    /// The audience with that filter and batch size, shared while anyone holds it.
    pub fn join(&self, filter: Filter, max_batch_bytes: usize) -> Arc<Audience> {
        let mut all = self.lock();
        let key = (filter, max_batch_bytes);
        if let Some(audience) = all.get(&key).and_then(Weak::upgrade) {
            return audience;
        }
        let audience = Arc::new(Audience {
            filter: key.0.clone(),
            filter_hash: key.0.hash(),
            max_batch_bytes,
            batches: Batches::new(self.budget.clone()),
            listeners: Listeners::default(),
            // No state can be published in the meantime: publishing takes the same lock.
            quiet_since: AtomicI64::new(self.state().map_or(0, |state| state.revision())),
            is_due: AtomicBool::new(false),
        });
        all.insert(key, Arc::downgrade(&audience));
        audience
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<Audience>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_due(&self) -> MutexGuard<'_, Vec<Arc<Audience>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, somebody else than who publishes wakes streams.
#[derive(Debug)]
pub struct Paced<'a>(&'a Audiences);

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        self.0.paced.store(false, Ordering::SeqCst);
        drop(self.0.take_due());
    }
}
