//! Decisions: contests opened, decided on and written, in one unit of work. Every change of what nodes answer goes this way.
//!
//! [`open`] locks contests and decides on them in memory, one event after another, before they are written in one go;
//! [`ballot_cache`] keeps the ballots of contests with many votes from one transaction to the next. Revisions get their numbers
//! last ([`numbering`]). What a decision means for the evidence graph is written with it ([`evidence`]), and a list of a profile
//! has room for it ([`profile_room`]). [`review`] is how people decide on candidates, whatever these are, and [`undo`] how
//! they take that back.

pub(crate) mod answers;
pub mod ballot_cache;
pub(crate) mod evidence;
pub mod metrics;
pub mod numbering;
pub mod open;
pub(crate) mod profile_room;
pub mod review;
pub mod undo;
pub(crate) mod users;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_base::{Entropy, SharedClock};
use emend_core::{ResourceKey, Revision};
use emend_store::retry_conflicts;
use jiff::Timestamp;
use learning_store::{Store, UnitOfWork};
use tokio::{sync::Notify, time::timeout};

use crate::{
    decisions::{
        ballot_cache::BallotCache,
        metrics::Promotions,
        open::{OpenContests, RatingsAhead, Written},
    },
    fail_points,
    failure::Failure,
};

/// How long a mutation waits for this replica's own readers to see what it wrote.
const READ_YOUR_WRITES: Duration = Duration::from_secs(1);

/// The log follower of this process.
#[async_trait]
pub trait Follower: Send + Sync {
    /// Signals that revisions were committed.
    fn wake(&self);

    /// Completes once this process's readers see the revision.
    async fn reached(&self, revision: Revision);
}

/// What every use case needs that decides. Each is one transaction, from its first read to its commit, retried as a whole on a
/// conflict; nothing leaves the process within it.
pub struct Decisions {
    store: Arc<dyn Store>,
    follower: Arc<dyn Follower>,
    /// The time used for deciding.
    pub clock: SharedClock,
    /// Source of ids and jitter.
    pub entropy: Entropy,
    /// Counts values applied.
    pub promotions: Promotions,
    /// The cached ballots of contests with many votes.
    pub(crate) ballots: Arc<BallotCache>,
    /// Wakes the worker that computes what follows from changed evidence.
    pub(crate) evidence_changed: Arc<Notify>,
    /// Wakes the worker that tells those who watch the queue.
    pub(crate) queue_changed: Arc<Notify>,
}

impl std::fmt::Debug for Decisions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decisions").finish_non_exhaustive()
    }
}

impl Decisions {
    /// Decisions on one database. Values applied are counted by a counter that nobody reads, until another is set.
    pub fn new(
        store: Arc<dyn Store>,
        follower: Arc<dyn Follower>,
        clock: SharedClock,
        entropy: Entropy,
    ) -> Self {
        Self {
            store,
            follower,
            clock,
            entropy,
            promotions: Promotions::default(),
            ballots: Arc::default(),
            evidence_changed: Arc::default(),
            queue_changed: Arc::default(),
        }
    }

    /// Carries out a use case, again from its start after a conflict.
    pub(crate) async fn retry<T, F>(&self, use_case: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        retry_conflicts(&self.entropy, use_case).await
    }

    /// Locks and reads the contests of `keys`, which may come in any order and repeat.
    pub(crate) async fn open(
        &self,
        tx: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = ResourceKey>,
    ) -> Result<OpenContests, Failure> {
        self.open_for(tx, keys, 0, RatingsAhead::default()).await
    }

    /// The same where ballots may leave contests, or the events ahead may be about ratings: see [`OpenContests::open`].
    pub(crate) async fn open_for(
        &self,
        tx: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = ResourceKey>,
        leaving: u32,
        ratings: RatingsAhead,
    ) -> Result<OpenContests, Failure> {
        // In whole microseconds, as databases keep times: the answer to a decision says what is read of it later.
        let now = self.clock.now();
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        OpenContests::open(tx, &self.ballots, now, keys, leaving, ratings).await
    }

    /// Writes the decisions of a unit of work and commits.
    pub(crate) async fn commit(
        &self,
        mut tx: Box<dyn UnitOfWork>,
        unit: &mut OpenContests,
    ) -> Result<Written, Failure> {
        profile_room::check(&mut *tx, unit).await?;
        let written = unit.finish(&mut *tx).await?;
        tx.commit().await?;
        self.promotions.count(&written.promoted);
        unit.leave_ballots();
        if written.moved {
            self.queue_changed.notify_one();
        }
        if written.evidence {
            self.evidence_changed.notify_one();
        }
        Ok(written)
    }

    /// Announces committed revisions.
    pub(crate) fn wake(&self) {
        self.follower.wake();
    }

    /// Announces committed revisions and waits briefly until this replica's readers see them.
    pub(crate) async fn publish(&self, revision: Revision) {
        if revision > Revision::default() {
            self.wake();
        }
        self.seen(revision).await;
    }

    /// Waits briefly until this replica's readers see revisions that were announced.
    pub(crate) async fn seen(&self, revision: Revision) {
        fail_points::ACT_COMMITTED.pass();
        if revision > Revision::default() {
            // Readers that lag catch up by themselves; callers that must see it ask with min_revision.
            let _ = timeout(READ_YOUR_WRITES, self.follower.reached(revision)).await;
        }
    }
}
