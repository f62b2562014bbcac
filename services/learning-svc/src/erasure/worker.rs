//! Takes erased users' names and values out of the log once no node needs them any more, forgets what users did once it has
//! been kept for long enough, and takes what was erased out of the database's files.

use std::{sync::Arc, time::Duration};

use emend_base::Lifecycle;
use emend_store::StoreError;
use jiff::SignedDuration;
use learning_store::erasure::ErasedLog;
use tokio::{sync::Notify, time::sleep};

/// How soon it tries again to clean up.
const AGAIN: Duration = Duration::from_secs(1);
/// Contests worked on in one transaction.
const PAGE: u32 = 100;
/// Activities deleted in one transaction.
const ACTIVITIES: u32 = 1_000;

/// The worker.
#[derive(Clone)]
pub(crate) struct Eraser {
    store: Arc<dyn ErasedLog>,
    /// How long activities are kept.
    activity_retention: SignedDuration,
    /// Whether something may be left in the files: so at first, because an earlier process may have left it.
    files_hold_traces: bool,
}

impl Eraser {
    /// For one store, where activities are kept for so long.
    pub(crate) fn new(store: Arc<dyn ErasedLog>, activity_retention: SignedDuration) -> Self {
        Self {
            store,
            activity_retention,
            files_hold_traces: true,
        }
    }

    /// Does what can be done now.
    pub(crate) async fn run_once(&mut self) -> Result<(), StoreError> {
        loop {
            let forgotten = self.store.forget_erased(PAGE).await?;
            self.files_hold_traces |= forgotten > 0;
            if forgotten < u64::from(PAGE) {
                break;
            }
        }
        loop {
            let age = self.activity_retention;
            let forgotten = self.store.forget_activities(age, ACTIVITIES).await?;
            self.files_hold_traces |= forgotten > 0;
            if forgotten < u64::from(ACTIVITIES) {
                break;
            }
        }
        if self.files_hold_traces {
            self.files_hold_traces = !self.store.clean_files().await?;
        }
        Ok(())
    }

    /// Runs whenever something was erased, and every `interval`.
    pub(crate) async fn run(mut self, erased: Arc<Notify>, interval: Duration, lifecycle: Lifecycle) {
        while !lifecycle.is_stopping() {
            if let Err(error) = self.run_once().await {
                tracing::warn!(%error, "can't clean up after erasures");
            }
            tokio::select! {
                () = lifecycle.soft().cancelled() => {}
                () = erased.notified() => self.files_hold_traces = true,
                () = sleep(if self.files_hold_traces { AGAIN.min(interval) } else { interval }) => {}
            }
        }
    }
}
