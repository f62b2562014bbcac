//! Waiting at start-up for a database that is unavailable.

use std::{future::Future, io::ErrorKind, time::Duration};

use emend_base::{
    backoff::{Backoff, BackoffConfig},
    entropy::Entropy,
};
use tokio::time::{Instant, sleep};

use crate::{DatabaseUrl, StoreError};

/// How long start-up waits for the database by default.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Opens a database, retrying for up to `patience` while it is unavailable: unreachable, out of connections, or not
/// serving yet. Any other error, such as a wrong password, a missing database or an untrusted certificate, is returned
/// at once, because waiting does not fix it.
pub async fn once_available<T, F>(
    database: &DatabaseUrl,
    patience: Duration,
    entropy: &Entropy,
    mut open: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let until = Instant::now() + patience;
    let pauses = BackoffConfig {
        max: LONGEST_PAUSE,
        ..BackoffConfig::default()
    };
    let mut pauses = Backoff::new(pauses, entropy.clone());
    loop {
        let error = match open().await {
            Err(error) if is_away(&error) => error,
            opened => return opened,
        };
        let pause = pauses.next();
        if Instant::now() + pause > until {
            return Err(error);
        }
        tracing::warn!(%database, %error, ?pause, "the database is unavailable; trying again");
        sleep(pause).await;
    }
}

fn is_away(error: &StoreError) -> bool {
    match error {
        // A refused certificate is reported as invalid data.
        StoreError::Unavailable(sqlx::Error::Io(error)) => error.kind() != ErrorKind::InvalidData,
        StoreError::Unavailable(sqlx::Error::Tls(_)) => false,
        StoreError::Unavailable(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, io};

    use super::*;

    fn io_error(kind: ErrorKind) -> StoreError {
        StoreError::connecting(sqlx::Error::Io(io::Error::from(kind)))
    }

    /// How often and for how long it is tried, and the outcome, if the database gives `answer` for each attempt.
    async fn tried(
        answer: impl Fn(u32) -> Result<(), StoreError>,
    ) -> (u32, Duration, Result<(), StoreError>) {
        let (tries, begun) = (Cell::new(0), Instant::now());
        let outcome = once_available(
            &DatabaseUrl::sqlite("x.db"),
            PATIENCE,
            &Entropy::seeded(1),
            || {
                tries.set(tries.get() + 1);
                let answer = answer(tries.get());
                async { answer }
            },
        )
        .await;
        (tries.get(), begun.elapsed(), outcome)
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_database_is_waited_for() {
        let (tries, _, outcome) = tried(|number| match number {
            1 | 3 => Err(io_error(ErrorKind::ConnectionRefused)),
            2 => Err(StoreError::connecting(sqlx::Error::PoolTimedOut)),
            _ => Ok(()),
        })
        .await;
        assert_eq!(tries, 4);
        outcome.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_an_unreachable_database_is_bounded() {
        let (tries, waited, outcome) = tried(|_| Err(io_error(ErrorKind::ConnectionRefused))).await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))));
        assert!(
            tries > 20 && waited <= PATIENCE && waited + LONGEST_PAUSE >= PATIENCE,
            "{tries} in {waited:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn errors_that_waiting_can_not_fix_are_returned_at_once() {
        for cause in [
            || StoreError::connecting(sqlx::Error::Tls("server does not support TLS".into())),
            || io_error(ErrorKind::InvalidData),
            || StoreError::connecting(sqlx::Error::RowNotFound),
        ] {
            let (tries, _, outcome) = tried(|_| Err(cause())).await;
            assert_eq!(tries, 1, "{outcome:?}");
            assert!(outcome.is_err());
        }
    }
}
