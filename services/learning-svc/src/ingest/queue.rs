//! One queue for the events of all streams, so that events that arrive together are committed together.
//!
//! A worker takes what is queued, up to a group, and applies it, without waiting for a group to fill. A sender that
//! goes away does not withdraw what it sent. The queue is bounded: senders wait.

use std::sync::Arc;

use emend_base::{Error, Lifecycle};
use tokio::sync::{
    Mutex,
    mpsc::{self, Receiver, Sender},
    oneshot,
};
use tokio_util::sync::CancellationToken;

use crate::{
    fail_points,
    ingest::{
        Ingest,
        event::{EventResult, IngestEvent},
        trace,
    },
};

/// Maximum queued events.
const CAPACITY: usize = 1_024;

struct Queued {
    event: IngestEvent,
    answer: oneshot::Sender<EventResult>,
}

/// The queue of events to apply. Clones share it.
#[derive(Debug, Clone)]
pub struct IngestQueue(Sender<Queued>);

impl IngestQueue {
    /// Starts `workers` workers in `lifecycle`, each applying one group at a time. On a soft stop they apply what is
    /// queued.
    pub fn start(ingest: &Ingest, workers: usize, lifecycle: &Lifecycle) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..workers.max(1) {
            let worker = work(ingest.clone(), Arc::clone(&receiver), lifecycle.soft().clone());
            lifecycle.spawn("apply events", worker);
        }
        Self(sender)
    }

    /// Applies events; returns one result per event, in order.
    pub async fn submit(&self, events: Vec<IngestEvent>) -> Vec<EventResult> {
        let mut waiting = Vec::with_capacity(events.len());
        for event in events {
            let (answer, answered) = oneshot::channel();
            // Fails only when the workers have stopped, and then `answer` is dropped with the event.
            let _ = self.0.send(Queued { event, answer }).await;
            waiting.push(answered);
        }
        let mut results = Vec::with_capacity(waiting.len());
        for answered in waiting {
            results.push(answered.await.unwrap_or_else(|_| Err(stopping())));
        }
        results
    }
}

fn stopping() -> Error {
    Error::unavailable("STOPPING", "this replica is stopping; try another")
}

async fn work(ingest: Ingest, queue: Arc<Mutex<Receiver<Queued>>>, soft: CancellationToken) {
    while let Some((mut events, answers)) = next_group(&queue, ingest.store.group(), &soft).await {
        fail_points::GROUP_TAKEN.pass();
        let spans = trace::begin(&mut events);
        let results = ingest.apply(&events).await;
        trace::end(spans, &results);
        for (answer, result) in answers.into_iter().zip(results) {
            // The submitter may be gone.
            let _ = answer.send(result);
        }
        fail_points::GROUP_TOLD.pass();
    }
}

/// What is queued, at most `most` events; none once the queue is closed and empty.
async fn next_group(
    queue: &Mutex<Receiver<Queued>>,
    most: usize,
    soft: &CancellationToken,
) -> Option<(Vec<IngestEvent>, Vec<oneshot::Sender<EventResult>>)> {
    let mut queue = queue.lock().await;
    let first = tokio::select! {
        biased;
        first = queue.recv() => first,
        () = soft.cancelled() => {
            queue.close();
            queue.recv().await
        }
    }?;
    let mut group = (vec![first.event], vec![first.answer]);
    while group.0.len() < most
        && let Ok(next) = queue.try_recv()
    {
        group.0.push(next.event);
        group.1.push(next.answer);
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use emend_core::correction::Form;

    use super::*;
    use crate::tests::world::World;

    #[tokio::test]
    async fn queued_events_are_applied_before_the_queue_stops() {
        let world = World::sqlite();
        let app = world.instance().await;
        let lifecycle = Lifecycle::new();
        let queue = IngestQueue::start(&app.ingest, 1, &lifecycle);
        let events: Vec<_> = (0..200)
            .map(|n| world.feedback("ann", Form::Entity, &format!("alias {n}"), "e"))
            .collect();
        let submitted = tokio::spawn({
            let queue = queue.clone();
            async move { queue.submit(events).await }
        });
        // Everything is queued or being applied once the task has run until it waits itself.
        while queue.0.capacity() == CAPACITY && !submitted.is_finished() {
            tokio::task::yield_now().await;
        }
        lifecycle.shutdown(Duration::from_secs(30)).await;
        let results = submitted.await.unwrap();
        let applied = results.iter().filter(|result| result.is_ok()).count();
        assert!(applied > 0, "queued events are applied");
        let refused = results.iter().filter_map(|result| result.as_ref().err());
        assert!(refused.map(Error::reason).all(|reason| reason == "STOPPING"));
        assert_eq!(
            app.store.contents().await.unwrap().head.0,
            i64::try_from(applied).unwrap()
        );

        let late = queue
            .submit(vec![world.feedback("ann", Form::Entity, "late", "e")])
            .await;
        assert_eq!(late[0].as_ref().unwrap_err().reason(), "STOPPING");
    }

    #[tokio::test]
    async fn events_of_a_disconnected_sender_are_still_applied() {
        let world = World::sqlite();
        let app = world.instance().await;
        let lifecycle = Lifecycle::new();
        let queue = IngestQueue::start(&app.ingest, 1, &lifecycle);
        {
            let gone = queue.submit(vec![world.feedback("ann", Form::Entity, "alias", "e")]);
            tokio::pin!(gone);
            // Sent, but not answered yet.
            assert!(futures::poll!(gone.as_mut()).is_pending());
        }
        lifecycle.shutdown(Duration::from_secs(30)).await;
        assert_eq!(app.store.contents().await.unwrap().head.0, 1);
    }
}
