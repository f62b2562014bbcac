//! The bounded queue of events that are leased to this replica and wait to be sent.
//!
//! Room is reserved before events are stored. If there is none, the events are stored without a lease and claimed
//! later, so memory stays bounded however long learning-svc is away.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_core::{EventId, FeedbackId};
use emend_proto::learning::v1::Event;
use feedback_store::records::outbox::LeaseToken;
use tokio::{sync::Notify, time::Instant};

/// An event that is leased to this replica.
#[derive(Debug, Clone)]
pub(crate) struct Leased {
    /// Its id.
    pub(crate) event_id: EventId,
    /// As it is sent.
    pub(crate) event: Event,
    /// Its approximate encoded length, in bytes.
    pub(crate) size: usize,
    /// How often its delivery failed so far.
    pub(crate) attempts: u32,
    /// The token of its lease.
    pub(crate) token: LeaseToken,
    /// When its lease expires and another replica may claim it. Never later than in the database.
    pub(crate) expires: Instant,
    /// When it was last known to be in the outbox.
    pub(crate) seen: Instant,
}

/// The queue. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    capacity: usize,
    state: Mutex<State>,
    /// Signalled when there is work: queued events, or a claim to make.
    work: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Leased>,
    reserved: usize,
    claim_due: bool,
    /// The due claim has been put off for as long as it may be.
    claim_overdue: bool,
}

/// Room for some events in the queue, released when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    delivery_queue: DeliveryQueue,
    count: usize,
}

/// The limits of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimit {
    /// Events.
    pub(crate) events: usize,
    /// Bytes of them; a larger event is sent alone.
    pub(crate) bytes: usize,
}

impl DeliveryQueue {
    /// A queue of at most `capacity` events. Events that are put back may exceed it by what was taken, and claimed
    /// events by the size of a claim.
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Arc::new(Shared {
            capacity,
            state: Mutex::default(),
            work: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for this many events, if there is enough.
    pub(crate) fn reserve(&self, count: usize) -> Option<Reservation> {
        let mut state = self.state();
        if state.queue.len() + state.reserved + count > self.0.capacity {
            return None;
        }
        state.reserved += count;
        Some(Reservation {
            delivery_queue: self.clone(),
            count,
        })
    }

    /// Takes the next batch, dropping events whose leases have expired by `now`. Wakes another worker if more are left.
    pub(crate) fn take(&self, limit: BatchLimit, now: Instant) -> Vec<Leased> {
        let mut state = self.state();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < limit.events
            && let Some(next) = state.queue.front()
        {
            if next.expires <= now {
                state.queue.pop_front();
                // It has to be claimed from the outbox again.
                state.claim_due = true;
                continue;
            }
            bytes += next.size;
            if bytes > limit.bytes && !batch.is_empty() {
                break;
            }
            batch.extend(state.queue.pop_front());
        }
        if !state.queue.is_empty() {
            self.0.work.notify_one();
        }
        batch
    }

    /// Puts events back at the front without waking a worker, because they could not be sent.
    pub(crate) fn put_back(&self, leased: Vec<Leased>) {
        let mut state = self.state();
        for entry in leased.into_iter().rev() {
            state.queue.push_front(entry);
        }
    }

    /// Takes everything that is queued.
    pub(crate) fn take_all(&self) -> Vec<Leased> {
        std::mem::take(&mut self.state().queue).into()
    }

    /// Drops the events of this feedback, because they no longer say what is stored; a claim finds them.
    pub(crate) fn forget(&self, id: FeedbackId) {
        let id = id.to_string();
        let mut state = self.state();
        state.queue.retain(|leased| leased.event.feedback_id != id);
        state.claim_due = true;
    }

    /// Appends claimed events.
    pub(crate) fn append(&self, leased: Vec<Leased>) {
        self.state().queue.extend(leased);
    }

    /// Requests a claim from the outbox and wakes a worker.
    pub(crate) fn ask_for_claim(&self) {
        self.state().claim_due = true;
        self.0.work.notify_one();
    }

    /// Requests a claim on behalf of the timer. A claim that was requested earlier and has not been made becomes
    /// overdue.
    pub(crate) fn remind_of_claim(&self) {
        let mut state = self.state();
        state.claim_overdue = state.claim_due;
        state.claim_due = true;
        self.0.work.notify_one();
    }

    /// Whether the calling worker is to make the requested claim; answering yes clears the request. A worker with
    /// something to send puts a claim off, but not once it is overdue: otherwise a queue that is never empty would
    /// starve events that only a claim finds. What is claimed may exceed the queue's capacity, once.
    pub(crate) fn take_claim(&self, has_something: bool) -> bool {
        let mut state = self.state();
        if has_something && (!state.claim_overdue || state.queue.len() + state.reserved > self.0.capacity) {
            return false;
        }
        state.claim_overdue = false;
        std::mem::take(&mut state.claim_due)
    }

    /// Whether there is work now.
    pub(crate) fn has_work(&self) -> bool {
        let state = self.state();
        state.claim_due || !state.queue.is_empty()
    }

    /// Waits until there may be work.
    pub(crate) async fn work(&self) {
        self.0.work.notified().await;
    }

    /// How many events are queued.
    pub(crate) fn len(&self) -> usize {
        self.state().queue.len()
    }
}

impl Reservation {
    /// Queues events in the reserved room, at most as many as were reserved, and wakes a worker.
    pub(crate) fn fill(self, leased: impl IntoIterator<Item = Leased>) {
        let shared = &self.delivery_queue.0;
        self.delivery_queue
            .state()
            .queue
            .extend(leased.into_iter().take(self.count));
        shared.work.notify_one();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.delivery_queue.state().reserved -= self.count;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    fn leased(number: u128, size: usize) -> Leased {
        Leased {
            event_id: EventId(Uuid::from_u128(number)),
            event: Event::default(),
            size,
            attempts: 0,
            token: LeaseToken(Uuid::from_u128(9)),
            expires: Instant::now() + Duration::from_secs(30),
            seen: Instant::now(),
        }
    }

    fn ids(batch: &[Leased]) -> Vec<u128> {
        batch.iter().map(|leased| leased.event_id.0.as_u128()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn reserved_capacity_counts_until_filled_or_dropped() {
        let delivery_queue = DeliveryQueue::new(3);
        let room = delivery_queue.reserve(2).unwrap();
        assert!(delivery_queue.reserve(2).is_none());
        drop(room);
        let room = delivery_queue.reserve(3).unwrap();
        room.fill([leased(1, 1), leased(2, 1)]);
        assert!(delivery_queue.reserve(2).is_none());
        assert!(delivery_queue.reserve(1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn batches_are_bounded_in_events_and_bytes_and_a_large_event_is_sent_alone() {
        let delivery_queue = DeliveryQueue::new(10);
        delivery_queue.reserve(5).unwrap().fill([
            leased(1, 5),
            leased(2, 5),
            leased(3, 50),
            leased(4, 1),
            leased(5, 1),
        ]);
        let limit = BatchLimit { events: 2, bytes: 10 };
        let take = || ids(&delivery_queue.take(limit, Instant::now()));
        assert_eq!(
            [take(), take(), take(), take()],
            [vec![1, 2], vec![3], vec![4, 5], vec![]]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn events_with_an_expired_lease_are_left_to_a_claim() {
        let delivery_queue = DeliveryQueue::new(10);
        delivery_queue.reserve(1).unwrap().fill([leased(1, 5)]);
        assert!(!delivery_queue.take_claim(false));
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(
            delivery_queue
                .take(BatchLimit { events: 2, bytes: 10 }, Instant::now())
                .is_empty()
        );
        assert!(delivery_queue.take_claim(false));
        assert!(!delivery_queue.take_claim(false));
    }

    #[tokio::test(start_paused = true)]
    async fn events_put_back_are_taken_first() {
        let delivery_queue = DeliveryQueue::new(10);
        delivery_queue
            .reserve(3)
            .unwrap()
            .fill([leased(1, 1), leased(2, 1), leased(3, 1)]);
        let limit = BatchLimit { events: 2, bytes: 10 };
        let batch = delivery_queue.take(limit, Instant::now());
        delivery_queue.put_back(batch);
        assert_eq!(ids(&delivery_queue.take(limit, Instant::now())), [1, 2]);
    }
}
