//! Waiting for conditions, with a bound. Nothing in these tests sleeps for a fixed time and hopes.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep, timeout};

/// The bound of every wait. Generous, and longer than the lease on events of a killed feedback-svc: on any machine it
/// is reached only if something is broken.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until the condition holds and answers with what it found.
///
/// # Panics
/// If it does not hold within [`PATIENCE`]; the message says what was still wrong.
pub async fn eventually<T, F, Fut>(what: &str, mut condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(5);
    let mut wrong = "the condition never answered".to_owned();
    while let Ok(result) = tokio::time::timeout_at(deadline, condition()).await {
        match result {
            Ok(found) => return found,
            Err(still) => wrong = still,
        }
        if Instant::now() >= deadline {
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    panic!("not within {PATIENCE:?}: {what}: {wrong}");
}

/// A condition in the form that [`eventually`] takes.
pub fn holds(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise()) }
}

/// Awaits `future`, with a bound.
///
/// # Panics
/// If it takes longer than [`PATIENCE`].
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    within_time(PATIENCE, what, future).await
}

/// Awaits `future`, with a bound of its own.
///
/// # Panics
/// If it takes longer.
pub async fn within_time<F: Future>(bound: Duration, what: &str, future: F) -> F::Output {
    timeout(bound, future)
        .await
        .unwrap_or_else(|_| panic!("not within {bound:?}: {what}"))
}
