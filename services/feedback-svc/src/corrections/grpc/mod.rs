//! The RPCs of corrections: each parses a request, calls one use case and renders its result.

pub(crate) mod parse;
mod rated;
pub(crate) mod render;

use std::{sync::Arc, time::Duration};

use emend_base::{Error, error::to_item_status};
use emend_core::{Caller, Namespace, Scope};
use emend_proto::feedback::v1 as pb;
use emend_serve::{
    auth::{Access, Call, Role},
    caller::caller_of,
    server::deadline::deadline_of,
};
use feedback_store::{ports::ReadSettings, records::feedback::Feedback};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::{
    corrections::{
        Corrections,
        present::{PresentState, Standings},
        submit::Submitted,
    },
    origin::Origin,
    roles::{admit, open},
};

/// The longest wait for an outcome.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The longest that a read waits for what has become of feedback.
const LONGEST_READ: Duration = Duration::from_secs(1);
/// How much of the caller's deadline is reserved for returning the response.
const WAY_BACK: Duration = Duration::from_millis(100);

/// Answers the RPCs of corrections.
#[derive(Debug, Clone)]
pub(crate) struct CorrectionRpcs {
    pub(crate) corrections: Arc<Corrections>,
    /// Says what can be rated.
    pub(crate) settings: Arc<dyn ReadSettings>,
    pub(crate) present: PresentState,
}

impl CorrectionRpcs {
    fn requests<'a>(&'a self, caller: &'a Caller) -> rated::Requests<'a> {
        rated::Requests::new(&self.corrections, &*self.settings, caller)
    }

    /// What has become of those of these that had been stored before.
    async fn standings_of_replayed(
        &self,
        submitted: impl IntoIterator<Item = &Submitted> + Send,
        deadline: Option<Instant>,
    ) -> Standings {
        let replayed = submitted.into_iter().filter(|submitted| submitted.replayed);
        let replayed: Vec<&Feedback> = replayed.map(|submitted| &submitted.feedback).collect();
        self.present.of(replayed, latest(LONGEST_READ, deadline)).await
    }

    pub(crate) async fn submit_feedback(
        &self,
        request: Request<pb::SubmitFeedbackRequest>,
    ) -> Result<Response<pb::SubmitFeedbackResponse>, Status> {
        let (origin, until, deadline) = (Origin::of(&request), until(&request), deadline_of(&request));
        let Call { message, .. } = open(request)?;
        let mut requests = self.requests(&origin.caller);
        let (item, wait) = requests.parse(&message).await?;
        let submitted = self.corrections.submit(&origin, item, until(wait)).await?;
        let standings = self.standings_of_replayed([&submitted], deadline).await;
        Ok(Response::new(pb::SubmitFeedbackResponse {
            feedback: Some(render::feedback(submitted.feedback, &standings).map(without_query)?),
        }))
    }

    pub(crate) async fn batch_submit_feedback(
        &self,
        request: Request<pb::BatchSubmitFeedbackRequest>,
    ) -> Result<Response<pb::BatchSubmitFeedbackResponse>, Status> {
        let (origin, until, deadline) = (Origin::of(&request), until(&request), deadline_of(&request));
        let Call { access, message } = open(request)?;
        let wait = parse::batch(&message).map_err(Error::from)?;
        let mut requests = self.requests(&origin.caller);
        let mut items = Vec::with_capacity(message.requests.len());
        for request in &message.requests {
            items.push(match admit(&access, request) {
                Ok(()) => requests.parse(request).await.map(|(item, _)| item),
                Err(error) => Err(error),
            });
        }
        let results = self.corrections.submit_batch(&origin, items, until(wait)).await?;
        let standings = self
            .standings_of_replayed(results.iter().flatten(), deadline)
            .await;
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

    pub(crate) async fn get_feedback(
        &self,
        request: Request<pb::GetFeedbackRequest>,
    ) -> Result<Response<pb::GetFeedbackResponse>, Status> {
        let (caller, deadline) = (caller_of(&request), deadline_of(&request));
        let Call { access, message } = open(request)?;
        let (namespace, id) = parse::get(&message).map_err(Error::from)?;
        let own = own(&access, &namespace, &caller);
        let feedback = self.corrections.get(&namespace, id, own).await?;
        let standings = self.present.of([&feedback], latest(LONGEST_READ, deadline)).await;
        let mut feedback = render::feedback(feedback, &standings)?;
        if own.is_some() {
            feedback = without_query(feedback);
        }
        Ok(Response::new(pb::GetFeedbackResponse {
            feedback: Some(feedback),
        }))
    }

    pub(crate) async fn list_feedback(
        &self,
        request: Request<pb::ListFeedbackRequest>,
    ) -> Result<Response<pb::ListFeedbackResponse>, Status> {
        let deadline = deadline_of(&request);
        let Call { message: request, .. } = open(request)?;
        let hash = parse::list_hash(&request);
        let query = parse::list(&request, hash).map_err(Error::from)?;
        let page = self.corrections.list(query).await?;
        let standings = self.present.of(&page.items, latest(LONGEST_READ, deadline)).await;
        Ok(Response::new(render::feedback_page(page, hash, &standings)?))
    }

    pub(crate) async fn retract_feedback(
        &self,
        request: Request<pb::RetractFeedbackRequest>,
    ) -> Result<Response<pb::RetractFeedbackResponse>, Status> {
        let (origin, until) = (Origin::of(&request), until(&request));
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
            let feedback = self.corrections.get(&namespace, id, own).await?;
            if feedback.caller != origin.caller && feedback.submission.scope == Scope::User {
                for_users?;
            }
        }
        let feedback = self
            .corrections
            .retract(&origin, namespace, id, reason, until(wait))
            .await?;
        Ok(Response::new(pb::RetractFeedbackResponse {
            feedback: Some(render::feedback(feedback, &Standings::default()).map(without_query)?),
        }))
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
pub(crate) fn latest(longest: Duration, deadline: Option<Instant>) -> Instant {
    let latest = Instant::now() + longest;
    match deadline {
        Some(deadline) => latest.min(deadline.checked_sub(WAY_BACK).unwrap_or(deadline)),
        None => latest,
    }
}

/// The deadline for an outcome: min(the caller's deadline − 100 ms, 2 s).
pub(crate) fn until<T>(request: &Request<T>) -> impl FnOnce(parse::Wait) -> Option<Instant> + use<T> {
    let deadline = deadline_of(request);
    move |wait| match wait {
        parse::Wait::Recorded => None,
        parse::Wait::Evaluated => Some(latest(LONGEST_WAIT, deadline)),
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
