//! A call repeated until it is acknowledged, as by a client that must not lose it.

use std::{future::Future, sync::atomic::Ordering, time::Duration};

use emend_base::status::Explained;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use super::Writer;
use crate::harness::wait::PATIENCE;

/// The timeout after which a call is repeated, except for calls that take long.
const CALL: Duration = Duration::from_secs(6);
/// Pause between two attempts. Shorter than refusals ask for: a load that waits tests nothing.
const PAUSE: Duration = Duration::from_millis(25);

/// Clients of the replicas of one service.
#[derive(Debug)]
pub(super) struct Clients<C> {
    all: Vec<C>,
    at: usize,
    call: Duration,
}

/// The outcome of a call that is not to be repeated.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// It was answered; with whether an earlier attempt may have taken effect.
    Acknowledged(T, Tries),
    /// Permanently refused.
    Refused(Explained),
}

/// How many attempts a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tries {
    /// One.
    One,
    /// Several: earlier ones may have taken effect without an answer.
    Several,
}

impl<C: Clone> Clients<C> {
    /// Begins with the client at index `at`, modulo their number.
    pub(super) fn new(all: &[C], at: usize) -> Self {
        assert!(!all.is_empty(), "a load has somebody to talk to");
        Self {
            all: all.to_vec(),
            at: at % all.len(),
            call: CALL,
        }
    }

    /// Sets the timeout of a call.
    pub(super) fn patient(self, call: Duration) -> Self {
        Self { call, ..self }
    }

    /// Repeats the call until it is answered, at the next replica after each failure.
    pub(super) async fn until_answered<T, F: Future<Output = Result<T, Status>>>(
        &mut self,
        writer: &mut Writer,
        what: &str,
        call: impl Fn(C) -> F,
    ) -> Ended<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut tries = Tries::One;
        loop {
            let failed = match timeout(self.call, call(self.all[self.at].clone())).await {
                Ok(Ok(answer)) => return Ended::Acknowledged(answer, tries),
                Ok(Err(status)) => Explained::from(&status),
                Err(_) => Explained::from(&Status::deadline_exceeded("the client waited long enough")),
            };
            if !is_retryable(&failed) {
                return Ended::Refused(failed);
            }
            assert!(
                Instant::now() < deadline,
                "{}: {what} is not acknowledged within {PATIENCE:?}: {failed}",
                writer.name
            );
            writer.progress.refused.fetch_add(1, Ordering::SeqCst);
            writer.record.refusals.add(&failed);
            tries = Tries::Several;
            self.at = (self.at + 1) % self.all.len();
            sleep(PAUSE).await;
        }
    }
}

/// Failures that may pass by themselves: refusals that say so, and broken connections.
fn is_retryable(failed: &Explained) -> bool {
    match (&failed.reason, failed.code) {
        (_, Code::Unavailable | Code::ResourceExhausted) => {
            // A caller that is turned away is told when to come back; a broken connection says nothing.
            assert!(
                failed.reason.is_none() || failed.retry_after.is_some(),
                "a refusal says when to come back: {failed}"
            );
            true
        }
        (Some(_), code) => matches!(code, Code::Aborted | Code::DeadlineExceeded | Code::Cancelled),
        // How a broken connection looks to a client.
        (None, code) => matches!(
            code,
            Code::Cancelled | Code::DeadlineExceeded | Code::Unknown | Code::Internal
        ),
    }
}
