//! The store in memory, for tests only: the same contract as the databases, without their threads, so that the
//! deterministic simulation decides what happens when.
//!
//! Units of work are isolated as in PostgreSQL's READ COMMITTED: each read sees what is committed and what its unit of
//! work wrote ([`tables`]), and rows are locked until the unit of work ends ([`locks`]). Before and after every call an
//! [`Interference`] may let time pass, fail it, or lose its answer. It must know nothing of schedules.

mod decided;
mod erasure;
mod locks;
mod log;
mod ratings;
mod reads;
mod tables;
mod work;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use emend_base::SharedClock;
use emend_core::InstallationId;
use emend_store::{
    StoreError,
    simulation::{Interference, unavailable},
};
use emend_stream::log::LoggedRevision;
use jiff::SignedDuration;

use self::{locks::Locks, log::Nodes, tables::Tables};
use crate::contests::{CandidateWrite, NewBallot};

type Result<T> = std::result::Result<T, StoreError>;

/// A deliberate fault in the store, to prove that the simulation notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// Redelivered events are not recognised.
    ForgetsInbox,
    /// A retraction that overtakes its feedback is forgotten.
    ForgetsMarks,
    /// A feedback and its retraction do not exclude each other.
    LocksNoFeedback,
    /// Two units of work can lock the same contest at once.
    LocksNoContests,
    /// Two units of work can lock the head at once.
    LocksNoHead,
    /// Uncommitted writes stay, in part.
    KeepsUncommitted,
    /// A page of the log omits changes.
    SkipsChanges,
    /// Deletions are missing from the log as read.
    HidesDeletions,
    /// A log that went backwards keeps its old epoch.
    MintsNoEpoch,
}

/// A copy of everything committed at one moment.
#[derive(Clone)]
pub struct Backup(Tables);

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup").finish_non_exhaustive()
    }
}

/// One connection to a store in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    interference: Arc<dyn Interference>,
    closed: Arc<AtomicBool>,
}

struct Shared {
    clock: SharedClock,
    state: Mutex<State>,
    locks: Locks,
}

#[derive(Default)]
struct State {
    clock_offset: i64,
    failing: bool,
    defect: Option<Defect>,
    tables: Tables,
    nodes: Nodes,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A new, empty store on the time of `clock`.
    pub fn on(clock: SharedClock, interference: Arc<dyn Interference>) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::default(),
                locks: Locks::default(),
            }),
            interference,
            closed: Arc::default(),
        }
    }

    /// Another connection to the same store.
    #[must_use]
    pub fn connect(&self, interference: Arc<dyn Interference>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            interference,
            closed: Arc::default(),
        }
    }

    /// Makes the store faulty from now on.
    pub fn break_on_purpose(&self, defect: Defect) {
        self.state().defect = Some(defect);
    }

    /// Makes every call fail from now on, or stops doing so.
    pub fn fail(&self, failing: bool) {
        self.state().failing = failing;
    }

    /// Moves the store's clock; backwards if `step` is negative.
    pub fn advance(&self, step: SignedDuration) {
        self.state().clock_offset += micros(step);
    }

    /// Copies everything committed now.
    pub fn back_up(&self) -> Backup {
        Backup(self.state().tables.clone())
    }

    /// Replaces everything with an earlier copy. Units of work under way fail to commit.
    pub fn restore(&self, backup: &Backup) {
        let mut state = self.state();
        let life = state.tables.life + 1;
        state.tables = backup.0.clone();
        state.tables.life = life;
    }

    /// The log after a revision.
    pub fn logged_after(&self, revision: i64) -> Vec<Arc<LoggedRevision>> {
        let state = self.state();
        let following = state.tables.log.range(revision.saturating_add(1)..);
        following.map(|(_, logged)| Arc::clone(logged)).collect()
    }

    /// The installation of its log.
    ///
    /// # Panics
    /// If it has no head.
    pub fn installation(&self) -> InstallationId {
        let head = self.state().tables.head;
        head.expect("the log has a head").installation
    }

    /// All ballots.
    pub fn cast(&self) -> Vec<NewBallot> {
        self.state().tables.ballots.values().cloned().collect()
    }

    /// All candidates.
    pub fn proposed(&self) -> Vec<CandidateWrite> {
        self.state().tables.candidates.values().cloned().collect()
    }

    /// How many events were applied.
    pub fn applied_events(&self) -> usize {
        self.state().tables.inbox.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self, state: &State) -> i64 {
        self.shared.clock.now().as_microsecond() + state.clock_offset
    }

    fn has(&self, defect: Defect) -> bool {
        self.state().defect == Some(defect)
    }

    fn answers(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) || self.state().failing {
            return Err(unavailable());
        }
        Ok(())
    }

    /// A call that is one atomic step.
    async fn call<T>(
        &self,
        name: &'static str,
        step: impl FnOnce(&mut State) -> Result<T> + Send,
    ) -> Result<T> {
        self.interference.before(name).await?;
        self.answers()?;
        let answer = step(&mut self.state())?;
        self.interference.after(name).await?;
        Ok(answer)
    }
}

fn micros(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A fresh, empty store.
#[cfg(test)]
async fn open_for_test() -> Option<(MemoryStore, ())> {
    Some((MemoryStore::default(), ()))
}

#[cfg(any(test, feature = "testing"))]
impl Default for MemoryStore {
    /// A store whose clock stands still until advanced, and which nothing disturbs.
    fn default() -> Self {
        let clock = emend_base::ManualClock::default().shared();
        Self::on(clock, Arc::new(emend_store::simulation::NoInterference))
    }
}
