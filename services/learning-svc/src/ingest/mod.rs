//! Ingestion: events from feedback-svc, delivered at least once, with exactly-once effect.
//!
//! [`grpc`] takes batches of [`event`]s, [`queue`] forms groups of them from all senders, and each group is applied in one
//! transaction ([`apply`]).

pub mod apply;
pub mod event;
pub mod grpc;
pub mod queue;
mod trace;

use std::sync::{Arc, OnceLock};

use learning_store::Store;
use tokio::sync::Notify;

use crate::{decisions::Decisions, erasure::Erasure, lookups::Guesses};

/// The use case of ingestion.
#[derive(Debug, Clone)]
pub struct Ingest {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    erasure: Erasure,
    /// Wakes the worker that generates improvements without a request.
    rated: Arc<Notify>,
    /// Guesses what queries mean that found nothing; none where no state is followed.
    guesses: Arc<OnceLock<Guesses>>,
}

impl Ingest {
    /// Applies by decisions, or by erasures.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>, erasure: Erasure) -> Self {
        Self {
            store,
            decisions,
            erasure,
            rated: Arc::default(),
            guesses: Arc::default(),
        }
    }

    /// From now on proposes what queries mean that found nothing.
    pub(crate) fn guess_by(&self, guesses: Guesses) {
        // Set once, when the service starts.
        let _ = self.guesses.set(guesses);
    }

    /// Notified of ratings.
    pub(crate) fn rated(&self) -> Arc<Notify> {
        Arc::clone(&self.rated)
    }
}
