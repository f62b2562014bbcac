//! Ingestion: events from feedback-svc, delivered at least once, with exactly-once effect.
//!
//! [`grpc`] takes batches of [`event`]s, [`queue`] forms groups of them from all senders, and each group is applied in one
//! transaction ([`apply`]).

pub mod apply;
pub mod event;
pub mod grpc;
pub mod queue;
mod trace;

use std::sync::Arc;

use learning_store::Store;
use tokio::sync::Notify;

use crate::{decisions::Decisions, erasure::Erasure};

/// The use case of ingestion.
#[derive(Debug, Clone)]
pub struct Ingest {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    erasure: Erasure,
    /// Wakes the worker that generates improvements without a request.
    rated: Arc<Notify>,
}

impl Ingest {
    /// Applies by decisions, or by erasures.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>, erasure: Erasure) -> Self {
        Self {
            store,
            decisions,
            erasure,
            rated: Arc::default(),
        }
    }

    /// Notified of ratings.
    pub(crate) fn rated(&self) -> Arc<Notify> {
        Arc::clone(&self.rated)
    }
}
