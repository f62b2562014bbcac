//! The gRPC handlers: each parses a request, calls one use case and renders its result.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod parse;
mod rated;
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
    corrections::{
        feedback::Feedback,
        present::{PresentState, Standings},
        submit::Submitted,
    },
    erasure, ratings,
    roles::{admit, open},
    use_cases::{Origin, UseCases},
};

/// The longest wait for an outcome.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The longest that a read waits for what has become of feedback.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// The longest that one call goes on erasing a reporter.
const LONGEST_ERASURE: Duration = Duration::from_secs(10);
/// How much of the caller's deadline is reserved for returning the response.
const WAY_BACK: Duration = Duration::from_millis(100);

/// Implements `emend.feedback.v1.FeedbackService`.
#[derive(Debug, Clone)]
pub(crate) struct FeedbackEndpoint {
    use_cases: Arc<UseCases>,
    present: PresentState,
}

impl FeedbackEndpoint {
    pub(crate) fn new(use_cases: Arc<UseCases>, present: PresentState) -> Self {
        Self { use_cases, present }
    }
}

impl FeedbackEndpoint {
    /// What has become of those of these that had been stored before.
    async fn of_replayed(
        &self,
        submitted: impl IntoIterator<Item = &Submitted> + Send,
        deadline: Option<Instant>,
    ) -> Standings {
        let replayed = submitted.into_iter().filter(|submitted| submitted.replayed);
        let replayed: Vec<&Feedback> = replayed.map(|submitted| &submitted.feedback).collect();
        self.present.of(replayed, latest(LONGEST_LOOK, deadline)).await
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

/// Feedback as its reporter may see it: without the query that another caller may have recorded, which is for reviewers.
fn without_query(mut feedback: pb::Feedback) -> pb::Feedback {
    if let Some(rating) = &mut feedback.search_rating {
        rating.query = None;
    }
    feedback
}

/// How long to wait from now on: min(the caller's deadline − 100 ms, `longest`).
fn latest(longest: Duration, deadline: Option<Instant>) -> Instant {
    let latest = Instant::now() + longest;
    match deadline {
        Some(deadline) => latest.min(deadline.checked_sub(WAY_BACK).unwrap_or(deadline)),
        None => latest,
    }
}

/// The deadline for an outcome: min(the caller's deadline − 100 ms, 2 s).
fn until<T>(request: &Request<T>) -> impl FnOnce(parse::Wait) -> Option<Instant> + use<T> {
    let deadline = deadline_of(request);
    move |wait| match wait {
        parse::Wait::Recorded => None,
        parse::Wait::Evaluated => Some(latest(LONGEST_WAIT, deadline)),
    }
}

#[tonic::async_trait]
impl pb::feedback_service_server::FeedbackService for FeedbackEndpoint {
    async fn submit_feedback(
        &self,
        request: Request<pb::SubmitFeedbackRequest>,
    ) -> Result<Response<pb::SubmitFeedbackResponse>, Status> {
        let (origin, until, deadline) = (origin_of(&request), until(&request), deadline_of(&request));
        let Call { message, .. } = open(request)?;
        let mut requests = rated::Requests::new(&self.use_cases, &origin.caller);
        let (item, wait) = requests.parse(&message).await?;
        let submitted = self.use_cases.submit(&origin, item, until(wait)).await?;
        let standings = self.of_replayed([&submitted], deadline).await;
        Ok(Response::new(pb::SubmitFeedbackResponse {
            feedback: Some(render::feedback(submitted.feedback, &standings).map(without_query)?),
        }))
    }

    async fn batch_submit_feedback(
        &self,
        request: Request<pb::BatchSubmitFeedbackRequest>,
    ) -> Result<Response<pb::BatchSubmitFeedbackResponse>, Status> {
        let (origin, until, deadline) = (origin_of(&request), until(&request), deadline_of(&request));
        let Call { access, message } = open(request)?;
        let wait = parse::batch(&message).map_err(Error::from)?;
        let mut requests = rated::Requests::new(&self.use_cases, &origin.caller);
        let mut items = Vec::with_capacity(message.requests.len());
        for request in &message.requests {
            items.push(match admit(&access, request) {
                Ok(()) => requests.parse(request).await.map(|(item, _)| item),
                Err(error) => Err(error),
            });
        }
        let results = self.use_cases.submit_batch(&origin, items, until(wait)).await?;
        let standings = self.of_replayed(results.iter().flatten(), deadline).await;
        let rendered = |result: Result<Submitted, Error>| {
            render::feedback(result?.feedback, &standings).map(without_query)
        };
        let results = results.into_iter().map(|result| match rendered(result) {
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
        let feedback = self.use_cases.redact(&origin, namespace, id, until(wait)).await?;
        Ok(Response::new(pb::RedactFeedbackResponse {
            feedback: Some(render::feedback(feedback, &Standings::default())?),
        }))
    }

    async fn update_feedback_labels(
        &self,
        request: Request<pb::UpdateFeedbackLabelsRequest>,
    ) -> Result<Response<pb::UpdateFeedbackLabelsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let change = ratings::grpc::labels(&message).map_err(Error::from)?;
        let feedback = self.use_cases.label(&change).await?;
        Ok(Response::new(pb::UpdateFeedbackLabelsResponse {
            feedback: Some(render::feedback(feedback, &Standings::default())?),
        }))
    }

    async fn redact_reporter(
        &self,
        request: Request<pb::RedactReporterRequest>,
    ) -> Result<Response<pb::RedactReporterResponse>, Status> {
        let origin = origin_of(&request);
        let until = latest(LONGEST_ERASURE, deadline_of(&request));
        let Call { message, .. } = open(request)?;
        let (namespace, reporter) = erasure::grpc::reporter(&message).map_err(Error::from)?;
        let erased = self
            .use_cases
            .erase_reporter(&origin, namespace, reporter, until)
            .await?;
        Ok(Response::new(erasure::grpc::erased(erased)))
    }

    async fn get_feedback(
        &self,
        request: Request<pb::GetFeedbackRequest>,
    ) -> Result<Response<pb::GetFeedbackResponse>, Status> {
        let (caller, deadline) = (caller_of(&request), deadline_of(&request));
        let Call { access, message } = open(request)?;
        let (namespace, id) = parse::get(&message).map_err(Error::from)?;
        let own = own(&access, &namespace, &caller);
        let feedback = self.use_cases.get(&namespace, id, own).await?;
        let standings = self.present.of([&feedback], latest(LONGEST_LOOK, deadline)).await;
        let mut feedback = render::feedback(feedback, &standings)?;
        if own.is_some() {
            feedback = without_query(feedback);
        }
        Ok(Response::new(pb::GetFeedbackResponse {
            feedback: Some(feedback),
        }))
    }

    async fn list_feedback(
        &self,
        request: Request<pb::ListFeedbackRequest>,
    ) -> Result<Response<pb::ListFeedbackResponse>, Status> {
        let deadline = deadline_of(&request);
        let Call { message: request, .. } = open(request)?;
        let hash = parse::list_hash(&request);
        let query = parse::list(&request, hash).map_err(Error::from)?;
        let page = self.use_cases.list(query).await?;
        let standings = self.present.of(&page.items, latest(LONGEST_LOOK, deadline)).await;
        Ok(Response::new(render::feedback_page(page, hash, &standings)?))
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
            let feedback = self.use_cases.get(&namespace, id, own).await?;
            if feedback.caller != origin.caller && feedback.submission.scope == Scope::User {
                for_users?;
            }
        }
        let feedback = self
            .use_cases
            .retract(&origin, namespace, id, reason, until(wait))
            .await?;
        Ok(Response::new(pb::RetractFeedbackResponse {
            feedback: Some(render::feedback(feedback, &Standings::default()).map(without_query)?),
        }))
    }

    async fn list_dead_letters(
        &self,
        request: Request<pb::ListDeadLettersRequest>,
    ) -> Result<Response<pb::ListDeadLettersResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let hash = parse::dead_letters_hash(&request);
        let query = parse::dead_letters(&request, hash).map_err(Error::from)?;
        let page = self.use_cases.dead_letters(query).await?;
        Ok(Response::new(render::dead_letter_page(page, hash)))
    }

    async fn redrive_dead_letters(
        &self,
        request: Request<pb::RedriveDeadLettersRequest>,
    ) -> Result<Response<pb::RedriveDeadLettersResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let which = parse::redrive(&message).map_err(Error::from)?;
        let redriven = self.use_cases.redrive(&which).await?;
        Ok(Response::new(pb::RedriveDeadLettersResponse {
            redriven_count: emend_wire::render::saturated(redriven),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_in_time_for_the_answer_to_reach_the_caller() {
        let now = Instant::now();
        let waits = |deadline: Option<u64>| {
            let deadline = deadline.map(|millis| now + Duration::from_millis(millis));
            latest(LONGEST_WAIT, deadline) - now
        };
        assert_eq!(waits(None), LONGEST_WAIT);
        assert_eq!(waits(Some(60_000)), LONGEST_WAIT);
        assert_eq!(waits(Some(600)), Duration::from_millis(500));
    }
}
