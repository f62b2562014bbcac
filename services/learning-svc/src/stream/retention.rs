//! Drops what need not be remembered for ever: deletions behind the horizon, nodes last seen long ago, and what it takes to undo
//! decisions that can't be undone any more.
//!
//! Any number of replicas may do so at once. Subscribers are not asked: a cursor older than the horizon gets a
//! snapshot.

use std::sync::Arc;

use emend_store::StoreError;
use learning_store::{Store, contests::UNDO_WITHIN};

use super::settings::Settings;
use crate::fail_points;

/// The worker that drops old tombstones and nodes.
#[derive(Clone)]
pub struct Retention {
    store: Arc<dyn Store>,
    settings: Settings,
}

impl Retention {
    /// Keeps what the settings say.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self { store, settings }
    }

    /// Raises the horizon, forgets old nodes, and returns the horizon in force.
    pub async fn run_once(&self) -> Result<i64, StoreError> {
        let Settings {
            tombstone_age,
            max_tombstones,
            node_forgotten_after,
            ..
        } = self.settings;
        let horizon = self.store.raise_horizon(tombstone_age, max_tombstones).await?;
        fail_points::HORIZON_RAISED.pass();
        self.store.forget_undoable_after(UNDO_WITHIN).await?;
        let mut work = self.store.begin().await?;
        let forgotten = work.nodes().forget(node_forgotten_after).await?;
        work.commit().await?;
        if forgotten > 0 {
            tracing::info!(nodes = forgotten, "dropped nodes that were last seen long ago");
        }
        Ok(horizon)
    }
}
