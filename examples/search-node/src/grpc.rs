//! `emend.search.v1.SearchService`.

use std::sync::Arc;

use emend_base::error::Error;
use emend_client::{
    Status, Violations,
    proto::search::v1::{
        self as pb, SearchRequest, SearchResponse, SearchResult, search_service_server::SearchService,
    },
};
use tonic::{Request, Response};

use crate::backend::{Asked, Backend, Found, Title, VectorSearch};

/// The service.
#[derive(Debug, Clone)]
pub struct Service(pub Arc<Backend>);

#[tonic::async_trait]
impl SearchService for Service {
    async fn search(&self, request: Request<SearchRequest>) -> Result<Response<SearchResponse>, Status> {
        let asked = asked(request.into_inner());
        let found = self.0.search(&asked).await.map_err(refused)?;
        Ok(Response::new(SearchResponse {
            namespace: self.0.namespace().to_string(),
            ..rendered(found)
        }))
    }
}

pub(crate) fn asked(request: SearchRequest) -> Asked {
    Asked {
        query: request.query,
        query_type: request.query_type,
        user_id: request.user_id,
        session_id: request.session_id,
        expansion: request.expansion.map(|expansion| expansion.groups),
        without_learning: request.without_learning,
        tuning: request.tuning,
        unrecorded: request.unrecorded,
    }
}

/// What the caller is told of an error, as the services of Emend tell it.
fn refused(error: anyhow::Error) -> Status {
    let error = match error.downcast::<Violations>() {
        Ok(violations) => Error::from(violations),
        Err(error) => Error::internal(error),
    };
    error.into()
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
        vector_search: match found.vector_search {
            VectorSearch::Off => pb::VectorSearch::Unspecified,
            VectorSearch::Done => pb::VectorSearch::Done,
            VectorSearch::Unanswered => pb::VectorSearch::Unanswered,
            VectorSearch::NoVectors => pb::VectorSearch::NoVectors,
        }
        .into(),
        embedding_version: found.embedding_version,
        embedded_query: found.embedded,
        ..SearchResponse::default()
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
