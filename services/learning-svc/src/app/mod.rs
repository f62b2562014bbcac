//! The use cases. Each is one transaction, from its first read to its commit, retried as a whole on a conflict; nothing
//! leaves the process within it.
//!
//! They share [`unit_of_work`]: contests decided in memory, one event after another, and written in one go. [`hot`] caches the
//! ballots of contests with many votes from one unit of work to the next. They must know nothing of gRPC or SQL.

pub mod candidates;
#[cfg(any(test, feature = "simulation"))]
mod consistency;
pub mod etag;
pub mod failure;
pub mod hot;
pub mod import;
pub mod ingest;
pub mod policies;
pub mod queue;
pub mod reevaluation;
pub mod resources;
pub mod revert;
pub mod review;
mod trace;
pub mod unit_of_work;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_base::{Entropy, SharedClock};
use emend_core::Revision;
use emend_store::StoreError;
use tokio::{sync::Notify, time::timeout};

use self::{
    hot::HotContests,
    unit_of_work::{UnitOfWork, Written},
};
use crate::{
    fail_points,
    metrics::Promotions,
    store::{DecisionStore, decisions::Tx},
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

/// What every use case needs.
#[derive(Clone)]
pub struct App {
    /// The database.
    pub store: Arc<dyn DecisionStore>,
    /// The log follower of this process.
    pub follower: Arc<dyn Follower>,
    /// The time used for deciding.
    pub clock: SharedClock,
    /// Source of ids and jitter.
    pub entropy: Entropy,
    /// Wakes the re-evaluation worker when a policy changed.
    pub policy_changed: Arc<Notify>,
    /// The cached ballots of contests with many votes.
    pub hot: Arc<HotContests>,
    /// Counts what comes to apply; by default a counter nobody reads.
    pub promotions: Promotions,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    /// The use cases on one database.
    pub fn new(
        store: Arc<dyn DecisionStore>,
        follower: Arc<dyn Follower>,
        clock: SharedClock,
        entropy: Entropy,
    ) -> Self {
        Self {
            store,
            follower,
            clock,
            entropy,
            policy_changed: Arc::default(),
            hot: Arc::default(),
            promotions: Promotions::default(),
        }
    }

    /// Writes the decisions of a unit of work and commits.
    async fn commit(&self, mut tx: Box<dyn Tx>, unit: &mut UnitOfWork) -> Result<Written, StoreError> {
        let written = unit.finish(&mut *tx).await?;
        tx.commit().await?;
        self.promotions.count(&written.promoted);
        unit.leave_ballots();
        Ok(written)
    }

    /// Announces committed revisions and waits briefly until this replica's readers see them.
    async fn publish(&self, revision: Revision) {
        fail_points::ACT_COMMITTED.pass();
        if revision > Revision::default() {
            self.follower.wake();
            // Readers that lag catch up by themselves; callers that must see it ask with min_revision.
            let _ = timeout(READ_YOUR_WRITES, self.follower.reached(revision)).await;
        }
    }
}
