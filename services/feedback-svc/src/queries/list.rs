//! Reading queries.

use emend_base::Error;
use emend_core::{Namespace, QueryId};

use super::{QueryFilter, StoredQuery, store::QueryStore};
use crate::{corrections::read::Page, use_cases::UseCases};

impl UseCases {
    pub(super) fn query_store(&self) -> Result<&dyn QueryStore, Error> {
        self.store.queries().ok_or(Error::Unimplemented("queries"))
    }

    /// A page of queries, newest first.
    pub(super) async fn list_queries(&self, filter: QueryFilter) -> Result<Page<StoredQuery>, Error> {
        let limit = filter.limit;
        let filter = QueryFilter {
            limit: limit.saturating_add(1),
            ..filter
        };
        Ok(Page::cut(self.query_store()?.queries(&filter).await?, limit))
    }

    /// The query with this id, if it is still kept.
    pub(super) async fn find_query(
        &self,
        namespace: &Namespace,
        id: &QueryId,
    ) -> Result<Option<StoredQuery>, Error> {
        Ok(self.query_store()?.find_query(namespace, id).await?)
    }
}
