//! Who listens: streams of equal filter and bound are one audience, woken together and served with the same bytes.
//!
//! Publishing a state wakes exactly the audiences whose filters cover something that changed, and waits for nobody: a
//! wake-up carries nothing, the stream reads from its own cursor. It must know nothing of single streams.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use tokio::sync::watch;

use super::{
    batches::Batches,
    budget::Budget,
    filter::{Filter, GroupId},
    listeners::Listeners,
    state::ReplicaState,
};

/// The streams of one filter and one bound.
#[derive(Debug)]
pub struct Audience {
    /// What they see.
    pub filter: Filter,
    /// The filter's hash, as in cursors.
    pub filter_hash: u64,
    /// The bound of one message's encoded resources, in bytes.
    pub max_batch_bytes: usize,
    /// What is encoded for them.
    pub batches: Batches,
    /// Woken when something that the filter covers has changed.
    pub listeners: Listeners,
    /// Nothing that the filter covers changed after this revision.
    quiet_since: AtomicI64,
}

impl Audience {
    /// Whether nothing that the filter covers changed between `revision` and a state that was read before the call.
    pub fn is_quiet_since(&self, revision: i64) -> bool {
        revision >= self.quiet_since.load(Ordering::SeqCst)
    }
}

/// What a new state changed.
#[derive(Debug)]
pub enum Touched {
    /// Only these groups.
    Groups(BTreeSet<Arc<GroupId>>),
    /// Everything may be another: it was loaded anew.
    Everything,
}

type Key = (Filter, usize);

/// The published state and all who listen.
#[derive(Debug)]
pub struct Audiences {
    state: watch::Sender<Option<Arc<ReplicaState>>>,
    /// In one order, so that a simulated run is the same each time.
    all: Mutex<BTreeMap<Key, Weak<Audience>>>,
    draining: AtomicBool,
    /// How many states were published.
    published: AtomicU64,
    budget: Budget,
}

impl Audiences {
    /// Nothing is published, and nobody listens. What is encoded for them counts towards `budget`.
    pub fn new(budget: Budget) -> Self {
        Self {
            state: watch::Sender::new(None),
            all: Mutex::default(),
            draining: AtomicBool::new(false),
            published: AtomicU64::new(0),
            budget,
        }
    }

    /// What is encoded for all of them counts towards this.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Throws away all batches that are kept, where the budget needs it.
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

    /// How many states were published: a state read after this is at least as new. To look at this costs less than to look
    /// at the state, because nobody is kept from looking at the same time.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Follows the newest state.
    pub fn follow(&self) -> watch::Receiver<Option<Arc<ReplicaState>>> {
        self.state.subscribe()
    }

    /// Whether streams are asked to say farewell.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Publishes a state and wakes who is concerned.
    pub fn publish(&self, state: Arc<ReplicaState>, touched: &Touched) {
        let mut concerned = Vec::new();
        {
            let mut all = self.lock();
            all.retain(|_, audience| audience.strong_count() > 0);
            for audience in all.values().filter_map(Weak::upgrade) {
                let matches = match touched {
                    Touched::Everything => true,
                    Touched::Groups(groups) => groups.iter().any(|group| audience.filter.covers(group)),
                };
                if matches {
                    // Before the state, so that no stream sees the state and believes itself current. Never back, not even
                    // where the log went back: a stream that reads the state before this one at the same time would believe
                    // that nothing was between.
                    audience.quiet_since.fetch_max(state.revision(), Ordering::SeqCst);
                    concerned.push(audience);
                }
            }
            self.state.send_replace(Some(state));
            self.published.fetch_add(1, Ordering::SeqCst);
        }
        for audience in concerned {
            audience.listeners.wake_all();
        }
    }

    /// Asks all streams to say farewell.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        let all: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        for audience in all {
            audience.listeners.wake_all();
        }
    }

    /// The audience of that filter and bound, for as long as it is held.
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
            // No state can be published in between: publishing takes the same lock.
            quiet_since: AtomicI64::new(self.state().map_or(0, |state| state.revision())),
        });
        all.insert(key, Arc::downgrade(&audience));
        audience
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<Audience>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
