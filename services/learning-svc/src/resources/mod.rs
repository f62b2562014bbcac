//! Resources: what nodes answer with. Reads come from the newest state without the database ([`read`]); people set and
//! delete values ([`mod@write`], several of them in one commit: [`queue`]) and import many at once ([`import`]).

pub mod grpc;
pub mod import;
pub mod queue;
pub mod read;
pub mod write;

use std::sync::Arc;

use emend_base::Lifecycle;
use learning_store::Store;

use crate::decisions::Decisions;

/// The use cases of resources.
#[derive(Debug, Clone)]
pub struct Resources {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
    /// Owns what goes on when its caller has gone.
    lifecycle: Lifecycle,
}

impl Resources {
    /// What goes on when its caller has gone does so in `lifecycle`.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>, lifecycle: Lifecycle) -> Self {
        Self {
            store,
            decisions,
            lifecycle,
        }
    }
}
