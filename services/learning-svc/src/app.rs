//! Use cases. Each is one transaction, from its first read to its commit, retried as a whole on a conflict; nothing
//! leaves the process within it.
//!
//! What they share is here: the store, the clock, and the follower that shows them what they wrote. The use cases
//! themselves are in the folders of their capabilities.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Lifecycle, SharedClock};
use emend_core::Revision;
use tokio::{sync::Notify, time::timeout};

use crate::{
    decisions::{
        Follower,
        ballot_cache::BallotCache,
        metrics::Promotions,
        open::{OpenContests, Written},
        profile_room,
    },
    fail_points,
    failure::Failure,
    generator::{Generator, embedded::Embedded},
    outputs::metrics::Generations,
    profiles::metrics::ProfileMetrics,
    store::{Store, UnitOfWork},
};

/// How long a mutation waits for this replica's own readers to see what it wrote.
const READ_YOUR_WRITES: Duration = Duration::from_secs(1);

/// What every use case needs.
#[derive(Clone)]
pub struct App {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The log follower of this process.
    pub follower: Arc<dyn Follower>,
    /// The time used for deciding.
    pub clock: SharedClock,
    /// Source of ids and jitter.
    pub entropy: Entropy,
    /// Owns what goes on when its caller has gone; by default a scope of its own, which nobody ends.
    pub lifecycle: Lifecycle,
    /// Wakes the worker that cleans up after erasures.
    pub erased: Arc<Notify>,
    /// Wakes the worker that computes what follows from changed evidence.
    pub evidence_changed: Arc<Notify>,
    /// Wakes the re-evaluation worker when a policy changed.
    pub policy_changed: Arc<Notify>,
    /// The cached ballots of contests with many votes.
    pub hot: Arc<BallotCache>,
    /// Wakes the worker that generates improvements without a request.
    pub rated: Arc<Notify>,
    /// What generates texts: the embedded generator by default.
    pub generator: Arc<dyn Generator>,
    /// Counts what was generated; by default a counter that nobody reads.
    pub generations: Generations,
    /// Counts values applied; by default a counter that nobody reads.
    pub promotions: Promotions,
    /// Counts activities and suggestions, likewise.
    pub profile_metrics: ProfileMetrics,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    /// The use cases on one database.
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
            lifecycle: Lifecycle::new(),
            erased: Arc::default(),
            evidence_changed: Arc::default(),
            policy_changed: Arc::default(),
            hot: Arc::default(),
            rated: Arc::default(),
            generator: Arc::new(Embedded),
            generations: Generations::default(),
            promotions: Promotions::default(),
            profile_metrics: ProfileMetrics::default(),
        }
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
        if written.evidence {
            self.evidence_changed.notify_one();
        }
        Ok(written)
    }

    /// Announces committed revisions and waits briefly until this replica's readers see them.
    pub(crate) async fn publish(&self, revision: Revision) {
        if revision > Revision::default() {
            self.follower.wake();
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
