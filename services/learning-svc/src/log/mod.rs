//! The revision log: what changed, when, by whom and why; and how one is reverted.

pub(crate) mod grpc;
pub mod revert;

use std::{collections::HashMap, sync::Arc};

use emend_base::Error;
use emend_core::{Cause, FeedbackId, Revision};
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

    /// Revisions before one, at most `limit`, newest first, and whether there are more. What a correction decided was done on behalf
    /// of its reporter, whose name is kept with the correction alone, so that it can be erased.
    pub(crate) async fn list(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool), Error> {
        let (mut revisions, more) = self.store.list_revisions(filter, before, limit).await?;
        let decided_by: Vec<Option<FeedbackId>> = revisions.iter().map(deciding_feedback).collect();
        let asked: Vec<FeedbackId> = decided_by.iter().flatten().copied().collect();
        let reporters = if asked.is_empty() {
            HashMap::new()
        } else {
            self.store.reporters(&asked).await?
        };
        for (revision, feedback) in revisions.iter_mut().zip(decided_by) {
            if let Some(reporter) = feedback.and_then(|feedback| reporters.get(&feedback)) {
                revision.actor.on_behalf_of.clone_from(reporter);
            }
        }
        Ok((revisions, more))
    }
}

/// The correction whose arrival decided it, where its caller is the actor.
fn deciding_feedback(revision: &RevisionRecord) -> Option<FeedbackId> {
    let is_by_correction = matches!(revision.cause, Cause::Votes | Cause::Ruling | Cause::Rating);
    if !is_by_correction || !revision.actor.on_behalf_of.is_empty() {
        return None;
    }
    let feedback = revision
        .changes
        .iter()
        .find(|change| !change.feedback.is_empty())?;
    FeedbackId::parse(&feedback.feedback).ok()
}
