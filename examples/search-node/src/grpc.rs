//! `emend.search.v1.SearchService`.

use std::sync::Arc;

use emend_client::proto::search::v1::{
    SearchRequest, SearchResponse, SearchResult, TermGroup, search_service_server::SearchService,
};
use emend_client::{OrGroup, Status};
use tonic::{Request, Response};

use crate::backend::{Asked, Backend, Found, Invalid, Title};

/// The service.
#[derive(Debug, Clone)]
pub struct Service(pub Arc<Backend>);

#[tonic::async_trait]
impl SearchService for Service {
    async fn search(&self, request: Request<SearchRequest>) -> Result<Response<SearchResponse>, Status> {
        let request = request.into_inner();
        let asked = Asked {
            query: request.query,
            query_type: request.query_type,
            user_id: request.user_id,
            session_id: request.session_id,
            expansion: request
                .expansion
                .map(|expansion| expansion.groups.into_iter().map(group).collect()),
            without_learning: request.without_learning,
        };
        let found = self.0.search(&asked).map_err(|error| status(&error))?;
        Ok(Response::new(rendered(found)))
    }
}

/// A place before the query's beginning is none in it.
fn group(group: TermGroup) -> OrGroup {
    let place = |byte: i32| usize::try_from(byte).unwrap_or(usize::MAX);
    OrGroup {
        span: place(group.start)..place(group.end),
        alternatives: group.alternatives,
    }
}

/// What the caller is told of an error.
fn status(error: &anyhow::Error) -> Status {
    if let Some(invalid) = error.downcast_ref::<Invalid>() {
        return Status::invalid_argument(invalid.to_string());
    }
    tracing::error!("a search failed: {error:#}");
    Status::internal("the search failed")
}

fn rendered(found: Found) -> SearchResponse {
    SearchResponse {
        query_id: found.query_id,
        results: found.titles.into_iter().map(result).collect(),
        expanded_query: found.expanded,
        attempts: i32::try_from(found.attempts).unwrap_or(i32::MAX),
        namespaces: found.namespaces.into_iter().collect(),
        min_score: found.min_score,
        top_k: i32::try_from(found.top_k).unwrap_or(i32::MAX),
        suggestion: found.suggestion,
        feedback_hint: found.feedback_hint,
        revision: found.revision,
    }
}

fn result(title: Title) -> SearchResult {
    SearchResult {
        id: title.record.of().to_owned(),
        title: title.record.title,
        record_id: title.record.id,
        text: title.record.text,
        score: title.score,
        confidence: title.confidence,
        learned: title.learned,
        url: title.record.url,
    }
}
