//! Responses that are not read. A call whose client reads nothing of its response for too long is abandoned, which
//! releases its permit and its memory.
//!
//! A response body can't do that itself: it is polled only when the client has read, so here it is not polled at all.
//! What can be polled, and can end, is the task of the call that makes the body. [`given_up_if_unread`] wraps that
//! task; [`Reading`] is how a body reports progress to it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    /// The watch of the call being polled.
    static CALL: Watch;
}

/// Whether a client has to read, and since when it has not.
#[derive(Debug, Clone, Default)]
struct Watch(Arc<Mutex<Option<Unread>>>);

#[derive(Debug)]
struct Unread {
    /// None while there is nothing to read.
    since: Option<Instant>,
    patience: Duration,
    timer: Pin<Box<Sleep>>,
}

/// A response that has to be read until this is dropped.
#[derive(Debug)]
pub(crate) struct Reading(Watch);

impl Reading {
    /// From now on the client of the call being polled must read something within every `patience`. `None` if no task
    /// watches.
    pub(crate) fn begins(patience: Duration) -> Option<Self> {
        let watch = CALL.try_with(Watch::clone).ok()?;
        let since = Instant::now();
        *watch.lock() = Some(Unread {
            since: Some(since),
            patience,
            timer: Box::pin(sleep_until(since + patience)),
        });
        Some(Self(watch))
    }

    /// The body was polled: the client has read.
    pub(crate) fn gets_on(&self) {
        if let Some(unread) = &mut *self.0.lock() {
            unread.since = Some(Instant::now());
        }
    }

    /// The body was polled and has nothing yet: the client is not what holds it up.
    pub(crate) fn has_nothing_to_read(&self) {
        if let Some(unread) = &mut *self.0.lock() {
            unread.since = None;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Option<Unread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when nothing was read for too long.
    fn poll_given_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut watched = self.lock();
        let Some(unread) = &mut *watched else {
            return Poll::Pending;
        };
        let Some(since) = unread.since else {
            return Poll::Pending;
        };
        loop {
            ready!(unread.timer.as_mut().poll(cx));
            // Reset only after it fires, not for each piece that is read.
            let due = since + unread.patience;
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            unread.timer.as_mut().reset(due);
        }
    }
}

/// Runs the task of a call to its end, or until its response was left unread for too long. Then the task is dropped,
/// which resets the stream and frees what is queued to be sent.
pub(crate) async fn given_up_if_unread(call: impl Future<Output = ()>) {
    let watch = Watch::default();
    let mut call = pin!(call);
    poll_fn(|cx| {
        let ended = CALL.sync_scope(watch.clone(), || call.as_mut().poll(cx));
        if ended.is_ready() {
            return Poll::Ready(());
        }
        ready!(watch.poll_given_up(cx));
        tracing::debug!("a response was abandoned: its client did not read it");
        Poll::Ready(())
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn a_response_that_nobody_reads_ends_its_call() {
        let start = Instant::now();
        given_up_if_unread(async {
            sleep(Duration::from_hours(1)).await;
            let _reading = Reading::begins(PATIENCE);
            pending::<()>().await;
        })
        .await;
        assert_eq!(start.elapsed(), Duration::from_hours(1) + PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_read_slowly_is_sent_to_its_end() {
        let start = Instant::now();
        given_up_if_unread(async {
            let reading = Reading::begins(PATIENCE).expect("the receiver exists");
            for _ in 0..10 {
                sleep(PATIENCE.mul_f64(0.9)).await;
                reading.gets_on();
            }
        })
        .await;
        assert_eq!(start.elapsed(), PATIENCE * 9);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_with_nothing_to_read_is_not_abandoned() {
        let start = Instant::now();
        given_up_if_unread(async {
            let reading = Reading::begins(PATIENCE).expect("the receiver exists");
            reading.has_nothing_to_read();
            sleep(Duration::from_hours(1)).await;
            reading.gets_on();
            pending::<()>().await;
        })
        .await;
        assert_eq!(start.elapsed(), Duration::from_hours(1) + PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_response_was_handed_over_may_continue() {
        let start = Instant::now();
        given_up_if_unread(async {
            drop(Reading::begins(PATIENCE));
            sleep(Duration::from_hours(1)).await;
        })
        .await;
        assert_eq!(start.elapsed(), Duration::from_hours(1));
    }

    #[tokio::test]
    async fn concurrent_calls_are_each_watched_by_their_own_task() {
        assert!(Reading::begins(PATIENCE).is_none(), "no task watches here");
        given_up_if_unread(async {
            let outer = Reading::begins(PATIENCE).expect("this one does");
            given_up_if_unread(async {
                let inner = Reading::begins(PATIENCE).expect("and another does");
                assert!(!Arc::ptr_eq(&outer.0.0, &inner.0.0));
            })
            .await;
        })
        .await;
    }
}
