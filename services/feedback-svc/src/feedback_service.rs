//! `emend.feedback.v1.FeedbackService`, whose RPCs are those of several capabilities.

use std::sync::Arc;

use emend_proto::feedback::v1::{self as pb, feedback_service_server::FeedbackService};
use tonic::{Request, Response, Status};

use crate::{
    corrections::grpc::CorrectionRpcs, erasure::redact::Erasures, outbox::dead_letters::DeadLetters,
    ratings::Ratings,
};

/// Hands each RPC to the capability that answers it.
#[derive(Debug, Clone)]
pub(crate) struct FeedbackEndpoint {
    pub(crate) corrections: CorrectionRpcs,
    pub(crate) erasures: Arc<Erasures>,
    pub(crate) ratings: Arc<Ratings>,
    pub(crate) dead_letters: Arc<DeadLetters>,
}

#[tonic::async_trait]
impl FeedbackService for FeedbackEndpoint {
    async fn submit_feedback(
        &self,
        request: Request<pb::SubmitFeedbackRequest>,
    ) -> Result<Response<pb::SubmitFeedbackResponse>, Status> {
        self.corrections.submit_feedback(request).await
    }

    async fn batch_submit_feedback(
        &self,
        request: Request<pb::BatchSubmitFeedbackRequest>,
    ) -> Result<Response<pb::BatchSubmitFeedbackResponse>, Status> {
        self.corrections.batch_submit_feedback(request).await
    }

    async fn get_feedback(
        &self,
        request: Request<pb::GetFeedbackRequest>,
    ) -> Result<Response<pb::GetFeedbackResponse>, Status> {
        self.corrections.get_feedback(request).await
    }

    async fn list_feedback(
        &self,
        request: Request<pb::ListFeedbackRequest>,
    ) -> Result<Response<pb::ListFeedbackResponse>, Status> {
        self.corrections.list_feedback(request).await
    }

    async fn retract_feedback(
        &self,
        request: Request<pb::RetractFeedbackRequest>,
    ) -> Result<Response<pb::RetractFeedbackResponse>, Status> {
        self.corrections.retract_feedback(request).await
    }

    async fn redact_feedback(
        &self,
        request: Request<pb::RedactFeedbackRequest>,
    ) -> Result<Response<pb::RedactFeedbackResponse>, Status> {
        self.erasures.redact_feedback(request).await
    }

    async fn redact_reporter(
        &self,
        request: Request<pb::RedactReporterRequest>,
    ) -> Result<Response<pb::RedactReporterResponse>, Status> {
        self.erasures.redact_reporter(request).await
    }

    async fn update_feedback_labels(
        &self,
        request: Request<pb::UpdateFeedbackLabelsRequest>,
    ) -> Result<Response<pb::UpdateFeedbackLabelsResponse>, Status> {
        self.ratings.update_feedback_labels(request).await
    }

    async fn list_dead_letters(
        &self,
        request: Request<pb::ListDeadLettersRequest>,
    ) -> Result<Response<pb::ListDeadLettersResponse>, Status> {
        self.dead_letters.list_dead_letters(request).await
    }

    async fn redrive_dead_letters(
        &self,
        request: Request<pb::RedriveDeadLettersRequest>,
    ) -> Result<Response<pb::RedriveDeadLettersResponse>, Status> {
        self.dead_letters.redrive_dead_letters(request).await
    }
}
