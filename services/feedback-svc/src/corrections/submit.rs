//! Submitting: one correction or several, each stored once however often its request is repeated.

use emend_base::Error;
use emend_core::{Caller, FeedbackId, Namespace};
use feedback_store::{
    ports::Inserted,
    records::{
        event,
        feedback::{Feedback, NewFeedback, RepeatedRequest, Submission},
        outbox::DeliveryState,
    },
};
use tokio::time::Instant;

use crate::{
    corrections::{Corrections, cleaned::cleaned},
    origin::Origin,
    outbox::waiters::Waiter,
};

/// What a valid request asks for.
#[derive(Debug)]
pub(crate) enum Item {
    /// To store this, unless it is found to be stored.
    New(Box<Submission>),
    /// Nothing: it was stored before, as this feedback.
    Stored(Namespace, FeedbackId),
}

/// What becomes of an item: it is with the committer, or was stored before.
enum Ready {
    Sent(Option<Waiter>),
    Stored(Namespace, FeedbackId),
}

/// The committer's result for one item; it is a bug if there is none.
type Stored = Option<Result<(NewFeedback, Inserted), Error>>;

/// A stored correction.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) feedback: Feedback,
    /// Whether an earlier request stored it.
    pub(crate) replayed: bool,
}

impl Corrections {
    /// Stores a correction. With `until`, waits until then for its outcome.
    pub(crate) async fn submit(
        &self,
        origin: &Origin,
        item: Item,
        until: Option<Instant>,
    ) -> Result<Submitted, Error> {
        let submission = match item {
            Item::New(submission) => *submission,
            Item::Stored(namespace, id) => return self.replayed(&namespace, id, until).await,
        };
        let (new, waiter) = self.ready(origin, submission, until.is_some());
        let stored = self
            .committer
            .store(origin.client.clone(), vec![new])
            .await?
            .pop();
        self.answer(stored, waiter, until).await
    }

    /// Stores the valid items in one group, with a result for each item. Fails as a whole only if nothing could be
    /// attempted.
    pub(crate) async fn submit_batch(
        &self,
        origin: &Origin,
        items: Vec<Result<Item, Error>>,
        until: Option<Instant>,
    ) -> Result<Vec<Result<Submitted, Error>>, Error> {
        let mut valid = Vec::with_capacity(items.len());
        let ready: Vec<Result<Ready, Error>> = items
            .into_iter()
            .map(|item| {
                let submission = match item? {
                    Item::New(submission) => *submission,
                    Item::Stored(namespace, id) => return Ok(Ready::Stored(namespace, id)),
                };
                let (new, waiter) = self.ready(origin, submission, until.is_some());
                valid.push(new);
                Ok(Ready::Sent(waiter))
            })
            .collect();
        let stored = if valid.is_empty() {
            Vec::new()
        } else {
            self.committer.store(origin.client.clone(), valid).await?
        };
        let mut stored = stored.into_iter();
        // All have the same deadline, so waiting one after the other takes no longer than waiting at once.
        let mut results = Vec::with_capacity(ready.len());
        for item in ready {
            results.push(match item {
                Ok(Ready::Sent(waiter)) => self.answer(stored.next(), waiter, until).await,
                Ok(Ready::Stored(namespace, id)) => self.replayed(&namespace, id, until).await,
                Err(error) => Err(error),
            });
        }
        Ok(results)
    }

    /// The feedback as which the same request of a caller was stored, if it was.
    pub(crate) async fn stored_as(
        &self,
        caller: &Caller,
        request: &RepeatedRequest,
    ) -> Result<Option<FeedbackId>, Error> {
        Ok(self.store.stored_as(caller, request).await?)
    }

    /// What an earlier request stored.
    async fn replayed(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        until: Option<Instant>,
    ) -> Result<Submitted, Error> {
        Ok(Submitted {
            feedback: self.read(namespace, id, until).await?,
            replayed: true,
        })
    }

    /// The feedback to store, and a waiter for its outcome, registered before it is stored.
    fn ready(&self, origin: &Origin, submission: Submission, waits: bool) -> (NewFeedback, Option<Waiter>) {
        let Origin {
            caller, traceparent, ..
        } = origin;
        // Hashed before masking: requests that differ only in what is masked are different requests.
        let hash = submission.hash();
        let (submission, removed) = cleaned(submission);
        let (id, event_id) = (self.ids.feedback(), self.ids.event());
        let roles = origin.roles(&submission.namespace);
        let event = event::recorded(event_id, id, caller, roles, traceparent, &submission, None);
        let waits = waits && submission.is_delivered();
        let waiter = waits.then(|| self.waiters.register(event_id));
        let new = NewFeedback {
            id,
            caller: caller.clone(),
            traceparent: traceparent.clone(),
            submission,
            hash,
            event,
            removed,
        };
        (new, waiter)
    }

    async fn answer(
        &self,
        stored: Stored,
        waiter: Option<Waiter>,
        until: Option<Instant>,
    ) -> Result<Submitted, Error> {
        let (new, inserted) = stored.ok_or_else(|| Error::internal("the committer gave no answer"))??;
        match inserted {
            // Its query may be known, which says more of it.
            Inserted::Stored(_) if new.submission.correction.search_rating().is_some() => Ok(Submitted {
                feedback: self.read(&new.submission.namespace, new.id, None).await?,
                replayed: false,
            }),
            Inserted::Stored(accepted) => {
                let NewFeedback {
                    id,
                    caller,
                    submission,
                    ..
                } = new;
                let feedback = Feedback {
                    id,
                    submission,
                    caller,
                    accepted,
                    retraction: None,
                    outcome: None,
                    delivery: DeliveryState::Pending,
                    redaction: None,
                    search_rating: None,
                };
                Ok(Submitted {
                    feedback: Self::with_answer(feedback, waiter, until).await,
                    replayed: false,
                })
            }
            Inserted::Replayed(id) => {
                // No answer will come for the event of this attempt: it was not stored.
                drop(waiter);
                self.replayed(&new.submission.namespace, id, until).await
            }
            Inserted::TooOften(wait) => Err(Error::ResourceExhausted {
                reason: "RATING_LIMIT",
                message: "this reporter has rated as often as the settings allow".to_owned(),
                retry_after: Some(wait),
            }),
            Inserted::RequestIdReused => Err(Error::AlreadyExists {
                reason: "REQUEST_ID_REUSED",
                message: "the request_id was used before with other content".to_owned(),
            }),
        }
    }
}
