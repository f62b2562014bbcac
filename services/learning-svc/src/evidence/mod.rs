//! Evidence: the graph of pages, fragments, claims and edges that backends upsert, and what people decided about it.
//!
//! Decisions are rulings in contests of the kinds `DOMAIN_RULE`, `CLAIM_STATE` and `EDGE_LABEL`, like any other. What they come to is
//! written into the graph by the unit of work that decides, so that it is found by indexes.

pub(crate) mod citations;
pub(crate) mod deletes;
mod events;
pub mod exports;
pub(crate) mod grpc;
mod levels;
pub mod metrics;
pub mod mounted;
mod read;
pub(crate) mod rules;
pub(crate) mod stats;
pub mod trust_file;
pub mod upsert;
mod verification;
pub(crate) mod worker;

use std::sync::Arc;

use learning_store::{Database, evidence::EvidenceStore};

use crate::decisions::Decisions;

/// The use cases of the evidence graph.
#[derive(Debug, Clone)]
pub struct Evidence {
    database: Arc<dyn Database>,
    decisions: Arc<Decisions>,
}

impl Evidence {
    /// On one database.
    pub(crate) fn new(database: Arc<dyn Database>, decisions: Arc<Decisions>) -> Self {
        Self { database, decisions }
    }

    /// The graph as stored.
    pub(crate) fn graph(&self) -> &dyn EvidenceStore {
        &*self.database
    }

    /// Completes once evidence has changed since the last call.
    pub async fn changed(&self) {
        self.decisions.evidence_changed.notified().await;
    }
}
