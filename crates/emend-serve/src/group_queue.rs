//! Calls that wait to be served together, as those do that share one commit.
//!
//! One task takes what waits, round robin over clients, as much as fits together: without waiting for more, so that a
//! call that comes alone is served at once, and those that come while others are served are served together next.
//!
//! The queue is bounded in places and in time, and no single client can fill it. Until it is taken a call belongs to its
//! caller: it is passed over if the caller is gone (its deadline has passed, its connection broke), and refused if it
//! waited for too long. From then on it belongs to the task and is served even if its caller leaves.

use std::time::Duration;

use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    fair_queue::FairQueue,
    fair_semaphore::{ClientKey, FairSemaphore, Permit},
};

/// A handle to the queue. Clones share it.
#[derive(Debug)]
pub struct GroupQueue<T, R> {
    waiting: mpsc::UnboundedSender<WaitingCall<T, R>>,
    places: FairSemaphore,
    patience: Duration,
}

/// The other end: takes what waits.
#[derive(Debug)]
pub struct GroupReceiver<T, R> {
    coming: mpsc::UnboundedReceiver<WaitingCall<T, R>>,
    queue: FairQueue<WaitingCall<T, R>>,
    /// The next one, which did not fit into the last group.
    next: Option<WaitingCall<T, R>>,
}

/// A call whose turn it is.
#[derive(Debug)]
pub struct QueuedCall<T, R> {
    /// What is asked for.
    pub request: T,
    /// Whom to tell.
    pub responder: Responder<R>,
}

/// Who waits for the result of a call that was taken. Its places are free again when this is dropped.
#[derive(Debug)]
pub struct Responder<R> {
    answer: oneshot::Sender<R>,
    _places: Permit,
}

/// Why a call was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotServed {
    /// Too much was waiting, in total or of this client, or it waited for too long.
    Full,
    /// The task has ended.
    Stopped,
}

#[derive(Debug)]
struct WaitingCall<T, R> {
    request: T,
    /// Signalled when it is taken; closed once the caller is gone.
    begun: oneshot::Sender<()>,
    answer: oneshot::Sender<R>,
    places: Permit,
}

impl<T, R> Clone for GroupQueue<T, R> {
    fn clone(&self) -> Self {
        Self {
            waiting: self.waiting.clone(),
            places: self.places.clone(),
            patience: self.patience,
        }
    }
}

impl<T, R> GroupQueue<T, R> {
    /// A queue with that many places, in which nothing waits longer than `patience`, and its other end.
    pub fn new(places: FairSemaphore, patience: Duration) -> (Self, GroupReceiver<T, R>) {
        let (waiting, coming) = mpsc::unbounded_channel();
        let groups = GroupReceiver {
            coming,
            queue: FairQueue::default(),
            next: None,
        };
        let queue = Self {
            waiting,
            places,
            patience,
        };
        (queue, groups)
    }

    /// The places, of which each waiting call holds some.
    pub fn places(&self) -> &FairSemaphore {
        &self.places
    }

    /// Waits until it was served in a group. Refuses at once if too much waits already, and later if its turn does not
    /// come in time. What was refused is not served, nor is that of a caller that leaves before its turn.
    pub async fn serve(&self, client: ClientKey, places: usize, request: T) -> Result<R, NotServed> {
        let places = self
            .places
            .try_acquire_many(client, places)
            .ok_or(NotServed::Full)?;
        let (begun, mut beginning) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let waiting = WaitingCall {
            request,
            begun,
            answer,
            places,
        };
        self.waiting.send(waiting).map_err(|_| NotServed::Stopped)?;
        if let Ok(begun) = timeout(self.patience, &mut beginning).await {
            begun.map_err(|_| NotServed::Stopped)?;
        } else {
            // From here on it can no longer begin, but it may have begun at this very moment.
            beginning.close();
            beginning.try_recv().map_err(|_| NotServed::Full)?;
        }
        answered.await.map_err(|_| NotServed::Stopped)
    }
}

impl<T, R> GroupReceiver<T, R> {
    /// Waits for a call and takes it, with those that wait behind it for as long as each `fits`, which is asked of the
    /// first too. A group may be empty. None once there will be no more. Nothing is lost if this is dropped while it waits.
    pub async fn next(&mut self, mut fits: impl FnMut(&T) -> bool) -> Option<Vec<QueuedCall<T, R>>> {
        let first = loop {
            if let Some(first) = self.turn() {
                break first;
            }
            let came = self.coming.recv().await?;
            self.enqueue(came);
        };
        fits(&first.request);
        let mut group = vec![first];
        while let Some(next) = self.turn() {
            if !fits(&next.request) {
                self.next = Some(next);
                break;
            }
            group.push(next);
        }
        Some(group.into_iter().filter_map(WaitingCall::begin).collect())
    }

    /// Takes no more calls: those that wait are the last ones.
    pub fn close(&mut self) {
        self.coming.close();
    }

    fn enqueue(&mut self, waiting: WaitingCall<T, R>) {
        self.queue.push(waiting.places.client().clone(), waiting);
    }

    /// The next call whose caller is still there, if any.
    fn turn(&mut self) -> Option<WaitingCall<T, R>> {
        while let Ok(came) = self.coming.try_recv() {
            self.enqueue(came);
        }
        let kept = self.next.take().filter(WaitingCall::is_wanted);
        kept.or_else(|| Some(self.queue.pop(|_| true, WaitingCall::is_wanted)?.1))
    }
}

impl<T, R> WaitingCall<T, R> {
    fn is_wanted(&self) -> bool {
        !self.begun.is_closed()
    }

    /// Takes it; none if its caller has left.
    fn begin(self) -> Option<QueuedCall<T, R>> {
        self.begun.send(()).ok()?;
        Some(QueuedCall {
            request: self.request,
            responder: Responder {
                answer: self.answer,
                _places: self.places,
            },
        })
    }
}

impl<R> Responder<R> {
    /// Tells it the result. It may be gone.
    pub fn tell(self, result: R) {
        let _ = self.answer.send(result);
    }

    /// Whether it still waits.
    pub fn waits(&self) -> bool {
        !self.answer.is_closed()
    }
}
