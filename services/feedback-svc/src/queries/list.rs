//! Reading queries.

use emend_base::Error;
use emend_core::{Namespace, QueryId};
use feedback_store::records::queries::{QueryFilter, StoredQuery};

use crate::{page::Page, queries::Queries};

impl Queries {
    /// A page of queries, newest first.
    pub(super) async fn list(&self, filter: QueryFilter) -> Result<Page<StoredQuery>, Error> {
        let limit = filter.limit;
        let filter = QueryFilter {
            limit: limit.saturating_add(1),
            ..filter
        };
        Ok(Page::cut(self.store.queries(&filter).await?, limit))
    }

    /// The query with this id, if it is still kept.
    pub(super) async fn find(
        &self,
        namespace: &Namespace,
        id: &QueryId,
    ) -> Result<Option<StoredQuery>, Error> {
        Ok(self.store.find_query(namespace, id).await?)
    }
}
