//! When a call is retried: while the server is unreachable or overloaded, after at least the wait it asks for, until
//! the deadline. So every call must be idempotent.

use std::{future::Future, time::Duration};

use emend_base::{
    Backoff,
    status::{Explained, is_expired_here},
};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status};

/// Calls until it succeeds, fails permanently or reaches the deadline, of which the error then says `unanswered`, and why the attempt
/// before failed if there was one. `call` is given the time left.
pub(super) async fn retry<T, F>(
    deadline: Instant,
    unanswered: &'static str,
    mut backoff: Backoff,
    mut call: impl FnMut(Duration) -> F,
) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>>,
{
    let mut before = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let status = match tokio::time::timeout(left, call(left)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) if !is_expired_here(&status) => status,
            Ok(Err(_)) | Err(_) => return Err(expired(unanswered, before.as_ref())),
        };
        let Some(at) = next_attempt(&status, &mut backoff, deadline) else {
            return Err(status);
        };
        before = Some(status);
        sleep_until(at).await;
    }
}

/// The time is up during an attempt. What the one before failed of is most likely why: a certificate, a closed port.
fn expired(unanswered: &str, before: Option<&Status>) -> Status {
    let reason = before.map(|status| {
        let Explained { message, .. } = Explained::from(status);
        format!("; the attempt before failed: {message}")
    });
    Status::deadline_exceeded(format!("{unanswered}{}", reason.unwrap_or_default()))
}

/// When to retry; `None` if that is pointless or would not be before the deadline.
pub(super) fn next_attempt(status: &Status, backoff: &mut Backoff, deadline: Instant) -> Option<Instant> {
    if !is_transient(status) {
        return None;
    }
    let asked = Explained::from(status).retry_after.unwrap_or_default();
    // A server may ask for a wait beyond what an `Instant` can hold.
    let at = Instant::now().checked_add(backoff.next().max(asked))?;
    (at < deadline).then_some(at)
}

/// Whether the server is unreachable or overloaded, or the connection broke before it answered.
fn is_transient(status: &Status) -> bool {
    let broken = std::error::Error::source(status).is_some();
    matches!(status.code(), Code::Unavailable | Code::ResourceExhausted)
        || broken && matches!(status.code(), Code::Unknown | Code::Internal | Code::Cancelled)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use emend_base::{BackoffConfig, Entropy, status::NO_ANSWER};
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(BackoffConfig::default(), Entropy::seeded(1))
    }

    async fn tried(outcomes: &[Result<u8, Status>], within: Duration) -> (Result<u8, Status>, usize) {
        let tries = Cell::new(0);
        let answer = retry(Instant::now() + within, NO_ANSWER, backoff(), |_| {
            let outcome = outcomes[tries.get()].clone();
            tries.set(tries.get() + 1);
            async move { outcome }
        });
        let answer = answer.await;
        (answer, tries.get())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_or_overloaded_server_is_called_again() {
        let outcomes = [
            Err(Status::unavailable("down")),
            Err(Status::resource_exhausted("busy")),
            Ok(7),
        ];
        let (answer, tries) = tried(&outcomes, Duration::from_secs(10)).await;
        assert_eq!((answer.unwrap(), tries), (7, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permanent_failure_is_not_retried() {
        for code in [
            Code::InvalidArgument,
            Code::AlreadyExists,
            Code::Internal,
            Code::Unknown,
        ] {
            let (answer, tries) = tried(&[Err(Status::new(code, "no"))], Duration::from_secs(10)).await;
            assert_eq!((answer.unwrap_err().code(), tries), (code, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_is_not_called_before_the_wait_it_asks_for() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(4)));
        let busy = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        let start = Instant::now();
        let (answer, _) = tried(&[Err(busy.clone()), Ok(1)], Duration::from_secs(10)).await;
        assert!(answer.is_ok());
        assert_eq!(start.elapsed(), Duration::from_secs(4));
        // A wait beyond the deadline: the error is returned at once.
        let start = Instant::now();
        let (answer, tries) = tried(&[Err(busy)], Duration::from_secs(3)).await;
        assert_eq!((answer.unwrap_err().code(), tries), (Code::ResourceExhausted, 1));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_the_channel_gave_up_has_exceeded_the_deadline() {
        let expired = || Status::from_error(Box::new(tonic::TimeoutExpired(())));
        let (answer, tries) = tried(&[Err(expired())], Duration::from_secs(10)).await;
        assert_eq!((answer.unwrap_err().code(), tries), (Code::DeadlineExceeded, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_after_an_attempt_that_failed_says_why_that_failed() {
        let tries = Cell::new(0);
        let answer = retry(
            Instant::now() + Duration::from_secs(3),
            NO_ANSWER,
            backoff(),
            |_| {
                tries.set(tries.get() + 1);
                let first = tries.get() == 1;
                async move {
                    if first {
                        return Err::<(), _>(Status::unavailable("its certificate has expired"));
                    }
                    std::future::pending().await
                }
            },
        );
        let error = answer.await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert_eq!(
            error.message(),
            format!("{NO_ANSWER}; the attempt before failed: its certificate has expired")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_a_hanging_call() {
        let start = Instant::now();
        let hanging = retry(start + Duration::from_secs(3), NO_ANSWER, backoff(), |_| {
            std::future::pending::<Result<(), _>>()
        });
        assert_eq!(hanging.await.unwrap_err().code(), Code::DeadlineExceeded);
        assert_eq!(start.elapsed(), Duration::from_secs(3));
    }
}
