//! The gRPC handlers of queries: each parses a request, calls one use case and renders its result.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(super) mod parse;
pub(crate) mod render;
pub(crate) mod stats;

use std::sync::Arc;

use emend_base::{Error, SharedClock};
use emend_proto::feedback::v1::{self as pb, query_service_server::QueryService};
use emend_serve::{auth::Call, caller::caller_of, fair_semaphore::ClientKey};
use feedback_store::records::queries::query_message;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tonic::{Request, Response, Status};

use crate::{
    queries::{
        Queries,
        grpc::parse::Listed,
        record::{Record, Recorder},
    },
    ratings::{
        Ratings,
        export::{Given, Part},
    },
    roles::open,
};

/// Implements `emend.feedback.v1.QueryService`.
#[derive(Debug, Clone)]
pub(crate) struct QueryEndpoint {
    pub(crate) queries: Arc<Queries>,
    pub(crate) ratings: Arc<Ratings>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: SharedClock,
}

fn exported(given: &Given) -> pb::ExportedRating {
    pb::ExportedRating {
        feedback_id: given.id.to_string(),
        line_count: render::count(given.lines),
    }
}

#[tonic::async_trait]
impl QueryService for QueryEndpoint {
    async fn record_query(
        &self,
        request: Request<pb::RecordQueryRequest>,
    ) -> Result<Response<pb::RecordQueryResponse>, Status> {
        let (caller, client) = (caller_of(&request), ClientKey::of_request(&request));
        let Call { message, .. } = open(request)?;
        let now = self.clock.now();
        let queries = parse::queries(&caller, message, now).map_err(Error::from)?;
        let records = queries.into_iter().map(|new| Record::Query(Box::new(new)));
        let (dropped, reason) = self.recorder.record(&client, records);
        Ok(Response::new(pb::RecordQueryResponse {
            dropped_count: render::count(dropped),
            drop_reason: render::reason(reason),
        }))
    }

    async fn record_interaction(
        &self,
        request: Request<pb::RecordInteractionRequest>,
    ) -> Result<Response<pb::RecordInteractionResponse>, Status> {
        let (caller, client) = (caller_of(&request), ClientKey::of_request(&request));
        let Call { message, .. } = open(request)?;
        let now = self.clock.now();
        let interactions = parse::interactions(&caller, &message, now).map_err(Error::from)?;
        let records = interactions
            .into_iter()
            .map(|new| Record::Interaction(Box::new(new)));
        let (dropped, reason) = self.recorder.record(&client, records);
        Ok(Response::new(pb::RecordInteractionResponse {
            dropped_count: render::count(dropped),
            drop_reason: render::reason(reason),
        }))
    }

    type ExportFeedbackStream = BoxStream<'static, Result<pb::ExportFeedbackResponse, Status>>;

    async fn export_feedback(
        &self,
        request: Request<pb::ExportFeedbackRequest>,
    ) -> Result<Response<Self::ExportFeedbackStream>, Status> {
        let Call { message, .. } = open(request)?;
        let export = crate::ratings::grpc::export(&message).map_err(Error::from)?;
        let ratings = Arc::clone(&self.ratings);
        // The part that was given before, unless none was.
        let parts = stream::try_unfold(None::<Part>, move |given| {
            let (ratings, export) = (Arc::clone(&ratings), export.clone());
            async move {
                if let Some(given) = &given {
                    if export.mark_processed {
                        ratings.mark_processed(&given.given).await?;
                    }
                    if !given.more {
                        return Ok::<_, Status>(None);
                    }
                }
                let after = given.and_then(|given| given.last);
                let part = ratings.export(&export, after).await?;
                let response = pb::ExportFeedbackResponse {
                    text: part.text.clone(),
                    rating_count: render::count(part.given.len()),
                    ratings: part.given.iter().map(exported).collect(),
                };
                Ok(Some((response, Some(part))))
            }
        });
        Ok(Response::new(parts.boxed()))
    }

    async fn list_queries(
        &self,
        request: Request<pb::ListQueriesRequest>,
    ) -> Result<Response<pb::ListQueriesResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let hash = parse::list_hash(&request);
        let response = match parse::list(&request, hash).map_err(Error::from)? {
            Listed::One(namespace, id) => {
                let found = self.queries.find(&namespace, &id).await?;
                pb::ListQueriesResponse {
                    queries: found.into_iter().map(query_message).collect(),
                    next_page_token: String::new(),
                }
            }
            Listed::All(filter) => render::page(self.queries.list(filter).await?, hash),
        };
        Ok(Response::new(response))
    }

    async fn get_feedback_stats(
        &self,
        request: Request<pb::GetFeedbackStatsRequest>,
    ) -> Result<Response<pb::GetFeedbackStatsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let asked = stats::asked(&message).map_err(Error::from)?;
        let stats = self.queries.stats(&asked.filter, asked.compared.as_ref()).await?;
        let recent = self.queries.recent(&asked.filter, asked.top_queries).await?;
        let worst = self
            .queries
            .worst_queries(&asked.filter, asked.worst_queries)
            .await?;
        Ok(Response::new(stats::response(&stats, recent, worst)))
    }

    async fn list_negative_terms(
        &self,
        request: Request<pb::ListNegativeTermsRequest>,
    ) -> Result<Response<pb::ListNegativeTermsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let (filter, limit) = stats::asked_terms(&message).map_err(Error::from)?;
        let found = self.queries.negative_terms(&filter, limit).await?;
        Ok(Response::new(stats::terms_response(found)))
    }
}
