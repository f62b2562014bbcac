//! The gRPC handlers: each parses a request, calls one use case and renders its result.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod parse;
mod render;

use std::{sync::Arc, time::Duration};

use emend_base::{Error, error::to_item_status};
use emend_core::{Caller, Namespace, Scope};
use emend_proto::feedback::v1 as pb;
use emend_serve::{
    auth::{Access, Call, Role},
    caller::caller_of,
    fair_semaphore::ClientKey,
    server::{deadline::deadline_of, trace_context::traceparent_of},
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::{
    erasure,
    roles::open,
    use_cases::{Origin, UseCases},
};

/// The longest wait for an outcome.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The longest that one call goes on erasing a reporter.
const LONGEST_ERASURE: Duration = Duration::from_secs(10);
/// How much of the caller's deadline is reserved for returning the response.
const WAY_BACK: Duration = Duration::from_millis(100);

/// Implements `emend.feedback.v1.FeedbackService`.
#[derive(Debug, Clone)]
pub(crate) struct FeedbackEndpoint(Arc<UseCases>);

impl FeedbackEndpoint {
    pub(crate) fn new(use_cases: Arc<UseCases>) -> Self {
        Self(use_cases)
    }
}

fn origin_of<T>(request: &Request<T>) -> Origin {
    Origin {
        access: Access::of(request),
        caller: caller_of(request),
        client: ClientKey::of_request(request),
        traceparent: traceparent_of(request)
            .map(|traceparent| traceparent.to_string())
            .unwrap_or_default(),
    }
}

/// The caller itself if it may see only its own feedback; none if it may see everybody's.
fn own<'a>(access: &Access, namespace: &Namespace, caller: &'a Caller) -> Option<&'a Caller> {
    (!access.holds(Role::Reviewer, namespace)).then_some(caller)
}

/// The deadline for an outcome: min(the caller's deadline − 100 ms, 2 s).
fn until<T>(request: &Request<T>) -> impl FnOnce(parse::Wait) -> Option<Instant> + use<T> {
    let deadline = deadline_of(request);
    move |wait| match wait {
        parse::Wait::Recorded => None,
        parse::Wait::Evaluated => {
            let latest = Instant::now() + LONGEST_WAIT;
            Some(match deadline {
                Some(deadline) => latest.min(deadline.checked_sub(WAY_BACK).unwrap_or(deadline)),
                None => latest,
            })
        }
    }
}

#[tonic::async_trait]
impl pb::feedback_service_server::FeedbackService for FeedbackEndpoint {
    async fn submit_feedback(
        &self,
        request: Request<pb::SubmitFeedbackRequest>,
    ) -> Result<Response<pb::SubmitFeedbackResponse>, Status> {
        let (origin, until) = (origin_of(&request), until(&request));
        let Call { message, .. } = open(request)?;
        let (submission, wait) = parse::submission(&message).map_err(Error::from)?;
        let feedback = self.0.submit(&origin, submission, until(wait)).await?;
        Ok(Response::new(pb::SubmitFeedbackResponse {
            feedback: Some(render::feedback(feedback)?),
        }))
    }

    async fn batch_submit_feedback(
        &self,
        request: Request<pb::BatchSubmitFeedbackRequest>,
    ) -> Result<Response<pb::BatchSubmitFeedbackResponse>, Status> {
        let (origin, until) = (origin_of(&request), until(&request));
        let Call { access, message } = open(request)?;
        let (items, wait) = parse::batch(&message, &access).map_err(Error::from)?;
        let results = self.0.submit_batch(&origin, items, until(wait)).await?;
        let results = results
            .into_iter()
            .map(|result| match result.and_then(render::feedback) {
                Ok(feedback) => pb::BatchSubmitFeedbackResult {
                    status: Some(emend_proto::common::v1::ItemStatus::default()),
                    feedback: Some(feedback),
                    abridged: false,
                },
                Err(error) => pb::BatchSubmitFeedbackResult {
                    status: Some(to_item_status(&error)),
                    feedback: None,
                    abridged: false,
                },
            });
        Ok(Response::new(render::batch(results.collect())))
    }

    async fn redact_feedback(
        &self,
        request: Request<pb::RedactFeedbackRequest>,
    ) -> Result<Response<pb::RedactFeedbackResponse>, Status> {
        let (origin, until) = (origin_of(&request), until(&request));
        let Call { message, .. } = open(request)?;
        let (namespace, id, wait) = parse::redaction(&message).map_err(Error::from)?;
        let feedback = self.0.redact(&origin, namespace, id, until(wait)).await?;
        Ok(Response::new(pb::RedactFeedbackResponse {
            feedback: Some(render::feedback(feedback)?),
        }))
    }

    async fn redact_reporter(
        &self,
        request: Request<pb::RedactReporterRequest>,
    ) -> Result<Response<pb::RedactReporterResponse>, Status> {
        let origin = origin_of(&request);
        let latest = Instant::now() + LONGEST_ERASURE;
        let until = match deadline_of(&request) {
            Some(deadline) => latest.min(deadline.checked_sub(WAY_BACK).unwrap_or(deadline)),
            None => latest,
        };
        let Call { message, .. } = open(request)?;
        let (namespace, reporter) = erasure::grpc::reporter(&message).map_err(Error::from)?;
        let erased = self.0.erase_reporter(&origin, namespace, reporter, until).await?;
        Ok(Response::new(erasure::grpc::erased(erased)))
    }

    async fn get_feedback(
        &self,
        request: Request<pb::GetFeedbackRequest>,
    ) -> Result<Response<pb::GetFeedbackResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let (namespace, id) = parse::get(&message).map_err(Error::from)?;
        let feedback = self
            .0
            .get(&namespace, id, own(&access, &namespace, &caller))
            .await?;
        Ok(Response::new(pb::GetFeedbackResponse {
            feedback: Some(render::feedback(feedback)?),
        }))
    }

    async fn list_feedback(
        &self,
        request: Request<pb::ListFeedbackRequest>,
    ) -> Result<Response<pb::ListFeedbackResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let hash = parse::list_hash(&request);
        let query = parse::list(&request, hash).map_err(Error::from)?;
        let page = self.0.list(query).await?;
        Ok(Response::new(render::feedback_page(page, hash)?))
    }

    async fn retract_feedback(
        &self,
        request: Request<pb::RetractFeedbackRequest>,
    ) -> Result<Response<pb::RetractFeedbackResponse>, Status> {
        let (origin, until) = (origin_of(&request), until(&request));
        let Call { access, message } = open(request)?;
        let parse::Retraction {
            namespace,
            id,
            reason,
            wait,
        } = parse::retraction(&message).map_err(Error::from)?;
        let own = own(&access, &namespace, &origin.caller);
        let for_users = access.speaks_for_users(namespace.as_str());
        if own.is_some() || for_users.is_err() {
            let feedback = self.0.get(&namespace, id, own).await?;
            if feedback.caller != origin.caller && feedback.submission.scope == Scope::User {
                for_users?;
            }
        }
        let feedback = self
            .0
            .retract(&origin, namespace, id, reason, until(wait))
            .await?;
        Ok(Response::new(pb::RetractFeedbackResponse {
            feedback: Some(render::feedback(feedback)?),
        }))
    }

    async fn list_dead_letters(
        &self,
        request: Request<pb::ListDeadLettersRequest>,
    ) -> Result<Response<pb::ListDeadLettersResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let hash = parse::dead_letters_hash(&request);
        let query = parse::dead_letters(&request, hash).map_err(Error::from)?;
        let page = self.0.dead_letters(query).await?;
        Ok(Response::new(render::dead_letter_page(page, hash)))
    }

    async fn redrive_dead_letters(
        &self,
        request: Request<pb::RedriveDeadLettersRequest>,
    ) -> Result<Response<pb::RedriveDeadLettersResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let which = parse::redrive(&message).map_err(Error::from)?;
        let redriven = self.0.redrive(&which).await?;
        Ok(Response::new(pb::RedriveDeadLettersResponse {
            redriven_count: emend_wire::render::saturated(redriven),
        }))
    }
}
