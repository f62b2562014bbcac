//! Erasing a user: what was learned for that user alone goes, by a revision, and later every trace of the user's name.
//!
//! Feedback is redacted one by one, by events of its own ([`crate::ingest`]). What is left is what only the user had:
//! contests of its own, with everything proposed in them ([`erase`]), and the log, which names the user in its keys. Nodes
//! need those keys for as long as they may have to be told of the deletion; once its tombstones have expired, a worker
//! puts a pseudonym in their place and forgets the values ([`worker`]).

pub mod erase;
pub mod worker;

use std::sync::Arc;

use learning_store::Store;
use tokio::sync::Notify;

use crate::decisions::Decisions;

/// The use cases of erasure.
#[derive(Debug, Clone)]
pub struct Erasure {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    /// Wakes the worker that cleans up.
    erased: Arc<Notify>,
}

impl Erasure {
    /// Erases by decisions.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>) -> Self {
        Self {
            store,
            decisions,
            erased: Arc::default(),
        }
    }

    /// Wakes the worker that cleans up: something was erased.
    pub(crate) fn clean_up(&self) {
        self.erased.notify_one();
    }

    /// Notified whenever there is something to clean up.
    pub(crate) fn erased(&self) -> Arc<Notify> {
        Arc::clone(&self.erased)
    }
}
