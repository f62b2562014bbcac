//! Policies: what it takes to learn something, per namespace and kind.

pub mod grpc;
pub mod namespaces;
mod preview;
pub mod update;

use std::sync::Arc;

use learning_store::Store;
use tokio::sync::Notify;

use crate::decisions::Decisions;

/// The use cases of policies.
#[derive(Debug, Clone)]
pub struct Policies {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    /// Wakes the worker that evaluates anew.
    changed: Arc<Notify>,
}

impl Policies {
    /// `changed` is notified of changed policies.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>, changed: Arc<Notify>) -> Self {
        Self {
            store,
            decisions,
            changed,
        }
    }
}
