//! Reading feedback.

use emend_base::Error;
use emend_core::{Caller, FeedbackId, Namespace};

use crate::{
    corrections::feedback::{Feedback, FeedbackQuery},
    use_cases::UseCases,
};

/// Part of a list, and whether more follows.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) more: bool,
}

impl<T> Page<T> {
    /// Cuts a list that was read with one item more than `limit`.
    pub(crate) fn cut(mut items: Vec<T>, limit: u32) -> Self {
        let limit = limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}

impl UseCases {
    /// One feedback with its current outcome. With `own`, the feedback of other callers counts as not found.
    pub(crate) async fn get(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        own: Option<&Caller>,
    ) -> Result<Feedback, Error> {
        let feedback = self.looked_for(namespace, id, None).await?;
        match own {
            Some(own) if feedback.caller != *own => Err(Error::not_found("feedback", id.to_string())),
            _ => Ok(feedback),
        }
    }

    /// A page of feedback, newest first.
    pub(crate) async fn list(&self, query: FeedbackQuery) -> Result<Page<Feedback>, Error> {
        let limit = query.limit;
        let query = FeedbackQuery {
            limit: limit.saturating_add(1),
            ..query
        };
        Ok(Page::cut(self.store.list(&query).await?, limit))
    }
}
