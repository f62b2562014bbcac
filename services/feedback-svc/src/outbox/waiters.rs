//! Waiters for the answers to events.
//!
//! A waiter is registered before its event is stored, so that no answer can come before it, and removed when it is
//! dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_core::EventId;
use feedback_store::records::outbox::EncodedOutcome;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

/// The answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was evaluated.
    Evaluated(EncodedOutcome),
    /// It was refused for good: there will be no outcome for now.
    Refused,
}

/// All waiters. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiters(Arc<Mutex<HashMap<EventId, oneshot::Sender<Answer>>>>);

/// A registered waiter.
#[derive(Debug)]
pub(crate) struct Waiter {
    waiters: Waiters,
    event_id: EventId,
    answer: oneshot::Receiver<Answer>,
}

impl Waiters {
    fn all(&self) -> MutexGuard<'_, HashMap<EventId, oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a waiter for an event that only the caller knows yet.
    pub(crate) fn register(&self, event_id: EventId) -> Waiter {
        let (sender, answer) = oneshot::channel();
        self.all().insert(event_id, sender);
        Waiter {
            waiters: self.clone(),
            event_id,
            answer,
        }
    }

    /// Passes the answer on to the event's waiter, if it has one.
    pub(crate) fn tell(&self, event_id: EventId, answer: Answer) {
        if let Some(sender) = self.all().remove(&event_id) {
            // The waiter may have given up at this very moment.
            let _ = sender.send(answer);
        }
    }

    /// The number of waiters.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }
}

impl Waiter {
    /// The answer, if it comes in time.
    pub(crate) async fn answer(mut self, deadline: Instant) -> Option<Answer> {
        timeout_at(deadline, &mut self.answer).await.ok()?.ok()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.all().remove(&self.event_id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_waiter_is_answered_and_removed_however_it_ends() {
        let waiters = Waiters::default();
        let event_id = EventId(Uuid::from_u128(1));
        let soon = Instant::now() + Duration::from_secs(1);

        let waiter = waiters.register(event_id);
        waiters.tell(event_id, Answer::Refused);
        assert_eq!(waiter.answer(soon).await, Some(Answer::Refused));

        assert_eq!(waiters.register(event_id).answer(soon).await, None);
        drop(waiters.register(event_id));
        assert_eq!(waiters.len(), 0);
        waiters.tell(event_id, Answer::Refused);
    }
}
