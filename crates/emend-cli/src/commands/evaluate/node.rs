//! What a search node finds for queries.

use emend_proto::search::v1::{Expansion, SearchRequest, search_service_client::SearchServiceClient};
use tonic::{Request, transport::Channel};

use super::judgements::{Query, Run};
use crate::{context::Context, failure::Result};

/// With what a node searches.
pub(super) enum With {
    /// With what was learned.
    Learned,
    /// As if nothing had been learned.
    Nothing,
    /// With what was learned, and the query expanded so.
    Expansion(Expansion),
}

/// Asks a node these queries, one after the other.
pub(super) async fn ask<'q>(
    context: &Context,
    node: &SearchServiceClient<Channel>,
    queries: impl IntoIterator<Item = (&'q String, &'q Query)>,
    with: impl Fn(&str) -> With,
) -> Result<Run> {
    let mut run = Run::new();
    for (id, query) in queries {
        let (without_learning, expansion) = match with(id) {
            With::Learned => (false, None),
            With::Nothing => (true, None),
            With::Expansion(expansion) => (false, Some(expansion)),
        };
        let mut request = Request::new(SearchRequest {
            query: query.text(id).to_owned(),
            query_type: query.query_type.clone(),
            without_learning,
            expansion,
            ..SearchRequest::default()
        });
        request.set_timeout(context.global.timeout);
        let found = node.clone().search(request).await?.into_inner();
        run.insert(
            id.clone(),
            found.results.into_iter().map(|result| result.id).collect(),
        );
    }
    Ok(run)
}
