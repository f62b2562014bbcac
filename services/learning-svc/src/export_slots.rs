//! How many exports a service makes at once.

use std::{sync::Arc, time::Duration};

use emend_base::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Exports at once in one process: each holds a connection.
const EXPORTS: usize = 2;
/// When a refused export may be worth repeating.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Bounds how many exports one service of this process makes at once. Clones share it.
#[derive(Debug, Clone)]
pub struct ExportSlots(Arc<Semaphore>);

impl Default for ExportSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(EXPORTS)))
    }
}

impl ExportSlots {
    /// Takes a slot, held until dropped.
    pub fn take(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.0)
            .try_acquire_owned()
            .map_err(|_| Error::ResourceExhausted {
                reason: "EXPORTS_BUSY",
                message: format!(
                    "{EXPORTS} exports are already in progress on this replica, which is the maximum"
                ),
                retry_after: Some(RETRY_AFTER),
            })
    }
}
