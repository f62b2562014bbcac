//! A call repeated until it is acknowledged, as a client does that must not lose it.

use std::{future::Future, sync::atomic::Ordering, time::Duration};

use emend_runtime::status::Explained;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use super::Writer;
use crate::harness::wait::PATIENCE;

/// After which a call is made anew, unless it is one that takes long.
const CALL: Duration = Duration::from_secs(6);
/// Between two tries. Less than refusals ask for: a load that waits tests nothing.
const PAUSE: Duration = Duration::from_millis(25);

/// Clients of the replicas of one service.
#[derive(Debug)]
pub(super) struct Clients<C> {
    all: Vec<C>,
    at: usize,
    call: Duration,
}

/// How a call ended that is not worth repeating as it is.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// It was answered. Whether it is certain that no earlier try of it took effect.
    Acknowledged(T, Tries),
    /// Refused for good.
    Refused(Explained),
}

/// How many tries a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tries {
    /// One.
    One,
    /// Several: those before may have taken effect without an answer.
    Several,
}

impl<C: Clone> Clients<C> {
    /// Begins with that one.
    pub(super) fn new(all: &[C], at: usize) -> Self {
        assert!(!all.is_empty(), "a load has somebody to talk to");
        Self {
            all: all.to_vec(),
            at: at % all.len(),
            call: CALL,
        }
    }

    /// Calls may take so long.
    pub(super) fn patient(self, call: Duration) -> Self {
        Self { call, ..self }
    }

    /// Makes the call until it is answered, by another replica after each failure.
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
            if !is_worth_another_try(&failed) {
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

/// What may go away by itself: a refusal of the service that says so, or a connection that broke.
fn is_worth_another_try(failed: &Explained) -> bool {
    match (&failed.reason, failed.code) {
        (_, Code::Unavailable | Code::ResourceExhausted) => {
            // Whoever is sent away is told when to come back; a broken connection tells nothing.
            assert!(
                failed.reason.is_none() || failed.retry_after.is_some(),
                "a refusal says when to come back: {failed}"
            );
            true
        }
        (Some(_), code) => matches!(code, Code::Aborted | Code::DeadlineExceeded | Code::Cancelled),
        // What a connection's end looks like to a client.
        (None, code) => matches!(
            code,
            Code::Cancelled | Code::DeadlineExceeded | Code::Unknown | Code::Internal
        ),
    }
}
