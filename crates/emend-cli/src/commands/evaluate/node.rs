//! What a search node finds for judged queries.

use emend_proto::search::v1::{SearchRequest, search_service_client::SearchServiceClient};
use tonic::{Request, transport::Channel};

use super::judgements::{Queries, Run};
use crate::{context::Context, failure::Result};

/// Asks a node all queries, one after the other.
pub(super) async fn ask(
    context: &Context,
    node: &SearchServiceClient<Channel>,
    queries: &Queries,
    without_learning: bool,
) -> Result<Run> {
    let mut run = Run::new();
    for (id, query) in queries {
        let mut request = Request::new(SearchRequest {
            query: query.text(id).to_owned(),
            query_type: query.query_type.clone(),
            without_learning,
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
