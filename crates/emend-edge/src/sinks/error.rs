//! Why a sink can't do its work.

use std::time::Duration;

use emend_base::http_client::{ErrorKind, ServiceError};

/// The longest wait that an engine or a receiver may ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Why a sink can't do its work now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(super) struct SinkError {
    /// What that means for operators.
    pub(super) problem: Problem,
    /// What happened.
    pub(super) words: String,
    /// How long it asks to wait.
    pub(super) after: Option<Duration>,
}

/// What is wrong with a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// The engine can't be reached.
    Away,
    /// The engine, or this machine, refuses what is asked.
    Refused,
    /// Somebody else changed the set, and it is left so.
    Drift,
}

impl Problem {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Away, Self::Refused, Self::Drift];

    /// As a node reports it.
    pub(super) const fn reported(self) -> &'static str {
        match self {
            Self::Away => "AWAY",
            Self::Refused => "REFUSED",
            Self::Drift => "DRIFT",
        }
    }

    /// As a label of metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Refused => "refused",
            Self::Drift => "drift",
        }
    }
}

impl SinkError {
    /// It is refused.
    pub(super) fn refused(words: impl Into<String>) -> Self {
        Self {
            problem: Problem::Refused,
            words: words.into(),
            after: None,
        }
    }

    /// How long to wait before the next attempt, which is due after this long: longer where that is asked for.
    pub(super) fn wait(&self, due: Duration) -> Duration {
        self.after.map_or(due, |asked| asked.min(LONGEST_WAIT).max(due))
    }
}

impl From<ServiceError> for SinkError {
    fn from(error: ServiceError) -> Self {
        let (problem, advice) = match error.kind {
            ErrorKind::Later => (Problem::Away, ""),
            ErrorKind::Refused(401) => (
                Problem::Refused,
                ": see user and password_file, or token_file, of the sink",
            ),
            ErrorKind::Refused(403) => (
                Problem::Refused,
                ": the sink's user or token lacks the right to do that",
            ),
            ErrorKind::Refused(413) => (
                Problem::Refused,
                ": it, or a proxy before it, must take larger requests",
            ),
            ErrorKind::NotFound | ErrorKind::Misplaced => {
                (Problem::Refused, ": see address, and what the sink names there")
            }
            ErrorKind::Refused(_) | ErrorKind::Never => (Problem::Refused, ""),
        };
        Self {
            problem,
            words: format!("{error}{advice}"),
            after: error.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_asks_for_a_longer_wait_gets_it_up_to_a_bound() {
        let error = |after| SinkError {
            after,
            ..SinkError::refused("no")
        };
        let [second, minute, hour] = [1, 60, 3_600].map(Duration::from_secs);
        assert_eq!(error(None).wait(second), second);
        assert_eq!(error(Some(second)).wait(minute), minute);
        assert_eq!(error(Some(minute)).wait(second), minute);
        assert_eq!(error(Some(hour)).wait(second), LONGEST_WAIT);
    }
}
