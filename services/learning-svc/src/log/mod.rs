//! The revision log: what changed, when, by whom and why; and how one is reverted.

pub(crate) mod grpc;
pub mod revert;

use std::sync::Arc;

use emend_base::Error;
use emend_core::Revision;
use learning_store::{
    Store,
    log::{RevisionFilter, RevisionRecord},
};

use crate::decisions::Decisions;

/// The use cases of the log.
#[derive(Debug, Clone)]
pub struct Log {
    store: Arc<dyn Store>,
    decisions: Arc<Decisions>,
}

impl Log {
    /// On one database.
    pub(crate) fn new(store: Arc<dyn Store>, decisions: Arc<Decisions>) -> Self {
        Self { store, decisions }
    }

    /// Revisions before one, at most `limit`, newest first, and whether there are more.
    pub(crate) async fn list(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool), Error> {
        Ok(self.store.list_revisions(filter, before, limit).await?)
    }
}
