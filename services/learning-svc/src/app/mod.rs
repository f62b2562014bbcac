//! The use cases. Each is one transaction, from its first read to its commit, begun anew as a whole where it meets a
//! conflict; nothing leaves the process within it.
//!
//! [`desk`] is what they share: contests on a desk, decided upon one event after another, and written at once; [`hot`] keeps
//! the ballots of contests in which many vote from one desk to the next. They must know nothing of gRPC or SQL.

pub mod audit;
pub mod candidates;
pub mod desk;
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

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_core::Revision;
use emend_runtime::{Entropy, SharedClock, store::StoreError};
use tokio::{sync::Notify, time::timeout};

use self::{
    desk::{Desk, Written},
    hot::HotContests,
};
use crate::{
    fail_points,
    metrics::Promotions,
    store::{DecisionStore, decisions::Tx},
};

/// How long a mutation waits until this replica's own readers see what it wrote.
const READ_YOUR_WRITES: Duration = Duration::from_secs(1);

/// Who follows the log in this process.
#[async_trait]
pub trait Follower: Send + Sync {
    /// Revisions were committed.
    fn wake(&self);

    /// Ends once this process's readers see the revision.
    async fn reached(&self, revision: Revision);
}

/// What every use case needs.
#[derive(Clone)]
pub struct App {
    /// The database.
    pub store: Arc<dyn DecisionStore>,
    /// Who follows the log in this process.
    pub follower: Arc<dyn Follower>,
    /// What time it is, for deciding.
    pub clock: SharedClock,
    /// Ids and jitter.
    pub entropy: Entropy,
    /// Wakes the re-evaluation when a policy changed.
    pub policy_changed: Arc<Notify>,
    /// The ballots of contests in which many vote.
    pub hot: Arc<HotContests>,
    /// Where what comes to apply is counted; at first nowhere that anybody sees.
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

    /// Writes what was decided on a desk, and commits it.
    async fn commit(&self, mut tx: Box<dyn Tx>, desk: &mut Desk) -> Result<Written, StoreError> {
        let written = desk.finish(&mut *tx).await?;
        tx.commit().await?;
        self.promotions.count(&written.promoted);
        desk.leave_ballots();
        Ok(written)
    }

    /// Tells of committed revisions and, for a short while, waits until this replica's readers see them.
    async fn publish(&self, revision: Revision) {
        fail_points::ACT_COMMITTED.pass();
        if revision > Revision::default() {
            self.follower.wake();
            // Readers that lag catch up by themselves; whoever must see it asks with min_revision.
            let _ = timeout(READ_YOUR_WRITES, self.follower.reached(revision)).await;
        }
    }
}
