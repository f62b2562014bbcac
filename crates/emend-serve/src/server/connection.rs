//! A connection and one of its streams, polled in one task.
//!
//! hyper wants a task per stream beside the connection's own. A node's connection has one stream for as long as it
//! lives, so each message would queue two tasks, one waking the other. Here a stream that begins while the connection's
//! task has none is polled in that task; streams open at the same time get tasks of their own, and so other cores. Each
//! part is polled only when it was woken itself, however the task was woken.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError, TryLockError, Weak,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use emend_base::lifecycle::Lifecycle;
use futures::{FutureExt as _, future::BoxFuture, task::AtomicWaker};

use super::unread::given_up_if_unread;

/// How often the parts may wake each other before the task yields.
const ROUNDS: usize = 8;

/// A part that the task polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Ends the connection from outside.
    End,
    /// The connection.
    Connection,
    /// The stream.
    Stream,
}

impl Part {
    /// In polling order: a stream's message leaves with the connection's poll that follows.
    const ALL: [Self; 3] = [Self::End, Self::Stream, Self::Connection];

    const fn bit(self) -> u8 {
        match self {
            Self::End => 1,
            Self::Connection => 2,
            Self::Stream => 4,
        }
    }
}

/// Set while the parts are polled: a part woken meanwhile is polled before the task waits, without queueing the task.
const POLLING: u8 = 8;

/// Which parts were woken.
#[derive(Debug, Default)]
struct Woken {
    parts: AtomicU8,
    task: AtomicWaker,
}

impl Woken {
    fn wake(&self, part: Part) {
        // If another part was already woken, the task was woken with it.
        if self.parts.fetch_or(part.bit(), Ordering::AcqRel) == 0 {
            self.task.wake();
        }
    }
}

/// Wakes one part.
struct PartWaker {
    woken: Arc<Woken>,
    part: Part,
}

impl Wake for PartWaker {
    fn wake(self: Arc<Self>) {
        self.woken.wake(self.part);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.wake(self.part);
    }
}

/// The slot for the stream polled here. Its memory must be freed with the task, not with the last of its wakers.
type Slot = Mutex<Option<BoxFuture<'static, ()>>>;

/// The parts of one task.
pub(crate) struct Parts {
    woken: Arc<Woken>,
    slot: Arc<Slot>,
    wakers: [Waker; 3],
}

impl Parts {
    /// The connection and its end are polled first; there is no stream yet.
    pub(crate) fn new() -> Self {
        let woken = Arc::new(Woken::default());
        let waker = |part| {
            Waker::from(Arc::new(PartWaker {
                woken: Arc::clone(&woken),
                part,
            }))
        };
        let wakers = Part::ALL.map(waker);
        woken
            .parts
            .store(Part::End.bit() | Part::Connection.bit(), Ordering::Release);
        Self {
            woken,
            slot: Arc::default(),
            wakers,
        }
    }

    /// Runs streams: one at a time in this task, others in `lifecycle`.
    pub(crate) fn executor(&self, lifecycle: Lifecycle) -> Streams {
        Streams {
            woken: Arc::clone(&self.woken),
            slot: Arc::downgrade(&self.slot),
            lifecycle,
        }
    }

    /// Has a part polled again before the task waits.
    pub(crate) fn wake(&self, part: Part) {
        self.woken.wake(part);
    }

    /// Polls the parts that were woken: the stream here, the others with `poll`, until one of those is ready.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(Part, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Woken { parts, task } = &*self.woken;
        task.register(cx.waker());
        for _ in 0..ROUNDS {
            let woken = parts.swap(POLLING, Ordering::AcqRel);
            for (part, waker) in Part::ALL.into_iter().zip(&self.wakers) {
                if woken & part.bit() == 0 {
                    continue;
                }
                let mut cx = Context::from_waker(waker);
                if part == Part::Stream {
                    self.poll_stream(&mut cx);
                } else if let Poll::Ready(ended) = poll(part, &mut cx) {
                    return Poll::Ready(ended);
                }
            }
            if parts
                .compare_exchange(POLLING, 0, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return Poll::Pending;
            }
        }
        // Parts that were woken stay so.
        parts.fetch_and(!POLLING, Ordering::AcqRel);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_stream(&self, cx: &mut Context<'_>) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = &mut *slot
            && stream.as_mut().poll(cx).is_ready()
        {
            *slot = None;
        }
    }
}

/// The executor to which hyper hands a connection's streams.
#[derive(Clone)]
pub(crate) struct Streams {
    woken: Arc<Woken>,
    /// Weak, because a stream holds its executor and must not own itself.
    slot: Weak<Slot>,
    lifecycle: Lifecycle,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let stream = given_up_if_unread(stream);
        let slot = self.slot.upgrade();
        let free = slot.as_deref().and_then(|slot| match slot.try_lock() {
            Ok(slot) => Some(slot),
            Err(TryLockError::Poisoned(slot)) => Some(slot.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        match free {
            Some(mut slot) if slot.is_none() => {
                // A panic ends only the stream, as in a task of its own.
                *slot = Some(AssertUnwindSafe(stream).catch_unwind().map(drop).boxed());
                self.woken.wake(Part::Stream);
            }
            Some(_) | None => {
                self.lifecycle.spawn_owned(stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        future::{pending, poll_fn},
        sync::atomic::AtomicUsize,
    };

    use hyper::rt::Executor as _;
    use tokio::sync::Notify;

    use super::*;

    /// Polls once and returns the parts that were polled beside the stream.
    fn poll(parts: &Parts, cx: &mut Context<'_>) -> Vec<Part> {
        let polled = RefCell::new(Vec::new());
        let ended: Poll<()> = parts.poll(cx, |part, _| {
            polled.borrow_mut().push(part);
            Poll::Pending
        });
        assert!(ended.is_pending());
        polled.into_inner()
    }

    /// A waker that counts.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn each_part_is_polled_only_when_it_was_woken() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let parts = Parts::new();
        assert_eq!(poll(&parts, &mut cx), [Part::End, Part::Connection]);
        assert_eq!(poll(&parts, &mut cx), []);
        parts.wake(Part::Connection);
        parts.wake(Part::Connection);
        assert_eq!(count.0.load(Ordering::SeqCst), 1, "the task is woken once");
        assert_eq!(poll(&parts, &mut cx), [Part::Connection]);
    }

    #[tokio::test]
    async fn a_part_woken_by_a_stream_is_polled_before_the_task_waits() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let parts = Parts::new();
        poll(&parts, &mut cx);
        let news = Arc::new(Notify::new());
        let (heard, woken) = (Arc::clone(&news), Arc::clone(&parts.woken));
        parts.executor(Lifecycle::new()).execute(async move {
            loop {
                heard.notified().await;
                woken.wake(Part::Connection);
            }
        });
        poll(&parts, &mut cx);
        let before = count.0.load(Ordering::SeqCst);
        news.notify_one();
        assert_eq!(poll(&parts, &mut cx), [Part::Connection]);
        assert_eq!(count.0.load(Ordering::SeqCst), before + 1);
    }

    #[test]
    fn parts_that_keep_waking_each_other_yield_to_other_tasks() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let parts = Parts::new();
        let ended: Poll<()> = parts.poll(&mut cx, |part, cx| {
            if part == Part::Connection {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        assert!(ended.is_pending());
        assert_eq!(count.0.load(Ordering::SeqCst), 1, "it goes on later");
        assert_eq!(poll(&parts, &mut cx), [Part::Connection]);
    }

    #[tokio::test]
    async fn concurrent_streams_get_tasks_of_their_own() {
        let parts = Parts::new();
        let streams = parts.executor(Lifecycle::new());
        streams.execute(pending());
        let (done, is_done) = tokio::sync::oneshot::channel();
        streams.execute(async move { done.send(()).expect("the receiver exists") });
        // Nobody polls the parts.
        is_done.await.expect("the second stream runs");
    }

    #[tokio::test]
    async fn a_stream_that_panics_ends_alone_and_releases_its_slot() {
        let parts = Parts::new();
        let streams = parts.executor(Lifecycle::new());
        let mut cx = Context::from_waker(Waker::noop());
        streams.execute(async { panic!("as tests do") });
        poll(&parts, &mut cx);
        let ran = Arc::new(AtomicUsize::new(0));
        let runs = Arc::clone(&ran);
        streams.execute(async move {
            runs.fetch_add(1, Ordering::SeqCst);
        });
        poll(&parts, &mut cx);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_stream_is_dropped_with_its_connection_although_it_holds_its_waker_and_executor() {
        let held = Arc::new(());
        let parts = Parts::new();
        let streams = parts.executor(Lifecycle::new());
        let (own, executor) = (Arc::clone(&held), streams.clone());
        let mut kept = None;
        streams.execute(poll_fn(move |cx| {
            let _held = (&own, &executor);
            kept.get_or_insert_with(|| cx.waker().clone());
            Poll::<()>::Pending
        }));
        poll(&parts, &mut Context::from_waker(Waker::noop()));
        assert_eq!(Arc::strong_count(&held), 2);
        drop((parts, streams));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
