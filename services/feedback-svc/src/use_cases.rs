//! The use cases. Each is called by one handler and calls the store, the committer and the relay; none knows gRPC or
//! SQL.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Error, Lifecycle, SharedClock};
use emend_core::{Caller, EventId, FeedbackId, Namespace};
use emend_serve::{
    auth::{Access, Role},
    fair_semaphore::{ClientKey, FairSemaphore},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::{
    corrections::{feedback::Feedback, group_commit::Committer},
    outbox::{
        dispatch::Dispatch,
        entry::DeliveryState,
        waiters::{Answer, Waiter, Waiters},
    },
    store::Store,
};

/// The pause between two looks into the store for an outcome that another replica may deliver: the first, and the
/// longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// What can be done with feedback.
#[derive(Debug)]
pub(crate) struct UseCases {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) committer: Committer,
    pub(crate) dispatch: Dispatch,
    pub(crate) waiters: Waiters,
    /// Owns the tasks that go on after their caller has left.
    pub(crate) lifecycle: Lifecycle,
    /// Bounds these tasks, which are retractions.
    pub(crate) retractions: FairSemaphore,
    pub(crate) clock: SharedClock,
    pub(crate) entropy: Entropy,
    /// Wakes the worker that goes on erasing.
    pub(crate) erased: Notify,
}

/// Who calls, and how the call is traced.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The authenticated client.
    pub(crate) caller: Caller,
    /// What the caller may do.
    pub(crate) access: Access,
    /// The client that its permits are counted for.
    pub(crate) client: ClientKey,
    /// W3C trace context; may be empty.
    pub(crate) traceparent: String,
}

impl Origin {
    /// The names of the caller's roles in a namespace.
    pub(crate) fn roles(&self, namespace: &Namespace) -> Vec<String> {
        let held = Role::ALL
            .into_iter()
            .filter(|role| self.access.holds(*role, namespace));
        held.map(|role| role.name().to_owned()).collect()
    }
}

impl UseCases {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        committer: Committer,
        dispatch: Dispatch,
        waiters: Waiters,
        lifecycle: Lifecycle,
        clock: SharedClock,
        entropy: Entropy,
    ) -> Self {
        Self {
            store,
            committer,
            dispatch,
            waiters,
            lifecycle,
            retractions: FairSemaphore::of(crate::corrections::retract::AT_ONCE),
            clock,
            entropy,
            erased: Notify::new(),
        }
    }

    /// Ids sort by time, so new ones go to the end of an index.
    pub(crate) fn new_event_id(&self) -> EventId {
        EventId(self.entropy.uuid_v7(self.clock.now()))
    }

    pub(crate) fn new_feedback_id(&self) -> FeedbackId {
        FeedbackId(self.entropy.uuid_v7(self.clock.now()))
    }

    /// The feedback with the answer to the event that `waiter` waits for, if it comes in time.
    pub(crate) async fn awaited(
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
    pub(crate) async fn looked_for(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        until: Option<Instant>,
    ) -> Result<Feedback, Error> {
        let (mut pause, longest) = LOOK;
        loop {
            let feedback = self
                .store
                .feedback(namespace, id)
                .await?
                .ok_or_else(|| Error::not_found("feedback", id.to_string()))?;
            match until {
                Some(until) if feedback.delivery == DeliveryState::Pending && Instant::now() < until => {
                    sleep(pause.min(until - Instant::now())).await;
                    pause = (pause * 2).min(longest);
                }
                _ => return Ok(feedback),
            }
        }
    }
}
