//! Reading feedback.

use emend_base::Error;
use emend_core::{Caller, FeedbackId, Namespace};
use feedback_store::records::{
    feedback::{Feedback, FeedbackQuery},
    outbox::DeliveryState,
};
use tokio::time::Instant;

use crate::{
    corrections::Corrections,
    outbox::waiters::{Answer, Waiter},
    page::Page,
    pauses::Pauses,
};

impl Corrections {
    /// One feedback with its current outcome. With `own`, the feedback of other callers counts as not found.
    pub(crate) async fn get(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        own: Option<&Caller>,
    ) -> Result<Feedback, Error> {
        let feedback = self.read(namespace, id, None).await?;
        match own {
            Some(own) if feedback.caller != *own => Err(not_found(id)),
            _ => Ok(feedback),
        }
    }

    /// A page of feedback, newest first.
    pub(crate) async fn list(&self, query: FeedbackQuery) -> Result<Page<Feedback>, Error> {
        let limit = query.limit;
        let query = FeedbackQuery {
            limit: limit.saturating_add(1),
            ..query
        };
        Ok(Page::cut(self.store.list(&query).await?, limit))
    }

    /// The feedback with the answer to the event that `waiter` waits for, if it comes in time.
    pub(super) async fn with_answer(
        mut feedback: Feedback,
        waiter: Option<Waiter>,
        until: Option<Instant>,
    ) -> Feedback {
        if let (Some(waiter), Some(until)) = (waiter, until) {
            match waiter.answer(until).await {
                Some(Answer::Evaluated(outcome)) => {
                    feedback.outcome = Some(outcome);
                    feedback.delivery = DeliveryState::Delivered;
                }
                Some(Answer::Refused) => feedback.delivery = DeliveryState::DeadLetter,
                None => {}
            }
        }
        feedback
    }

    /// A stored feedback, read again until its newest event has been answered or the time is up. For events that this
    /// call did not store: another replica may deliver them.
    pub(crate) async fn read(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        until: Option<Instant>,
    ) -> Result<Feedback, Error> {
        let mut pauses = Pauses::default();
        loop {
            let feedback = self.store.feedback(namespace, id).await?;
            let feedback = feedback.ok_or_else(|| not_found(id))?;
            match until {
                Some(until) if feedback.delivery == DeliveryState::Pending && Instant::now() < until => {
                    pauses.sleep(until).await;
                }
                _ => return Ok(feedback),
            }
        }
    }
}

fn not_found(id: FeedbackId) -> Error {
    Error::not_found("feedback", id.to_string())
}
