//! Contests: everything proposed for one resource key, decided by votes and by people.
//!
//! [`candidates`] is what people read of what was proposed; [`reevaluation`] follows changed policies. [`queue`] is what reviewers see
//! of each other. [`grpc`] is the review queue's service.

pub mod candidates;
pub mod grpc;
pub mod metrics;
pub mod queue;
pub mod reevaluation;

use std::sync::Arc;

use learning_store::Store;
use tokio::sync::Notify;

use crate::decisions::Decisions;

/// The use cases of the review queue.
#[derive(Debug, Clone)]
pub struct Contests {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    /// Wakes the worker that evaluates anew, when a policy changed.
    policy_changed: Arc<Notify>,
}

impl Contests {
    /// `policy_changed` wakes the worker that evaluates anew.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>, policy_changed: Arc<Notify>) -> Self {
        Self {
            store,
            decisions,
            policy_changed,
        }
    }
}
