//! Events that learning-svc refused for good: seeing them, and trying them again.

use emend_runtime::Error;

use super::{UseCases, read::Page};
use crate::domain::{DeadLetter, DeadLetterQuery, Redrive};

impl UseCases {
    /// A page of dead letters, oldest first.
    pub(crate) async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Page<DeadLetter>, Error> {
        let limit = query.limit;
        let query = DeadLetterQuery {
            limit: limit.saturating_add(1),
            ..query
        };
        Ok(Page::cut(self.store.dead_letters(&query).await?, limit))
    }

    /// Makes dead letters due and has them sent; answers with how many.
    pub(crate) async fn redrive(&self, which: &Redrive) -> Result<u64, Error> {
        let redriven = self.store.redrive(which).await?;
        if redriven > 0 {
            self.dispatch.due();
        }
        Ok(redriven)
    }
}
