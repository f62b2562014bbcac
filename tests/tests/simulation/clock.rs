//! Clocks that show virtual time, each with its own error, which can be stepped.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use emend_base::{Clock, SharedClock};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A process's or a database's clock. Clones are the same clock.
#[derive(Debug, Clone)]
pub(crate) struct SimClock {
    started: Instant,
    /// Its error, in microseconds.
    error: Arc<AtomicI64>,
}

impl SimClock {
    /// A clock that is right.
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            error: Arc::default(),
        }
    }

    /// Increases its error by this many microseconds.
    pub(crate) fn step(&self, micros: i64) {
        self.error.fetch_add(micros, Ordering::SeqCst);
    }

    pub(crate) fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::ZERO);
        let error = SignedDuration::from_micros(self.error.load(Ordering::SeqCst));
        // 2026-01-01T00:00:00Z
        Timestamp::constant(1_767_225_600, 0)
            .saturating_add(elapsed.saturating_add(error))
            .unwrap_or(Timestamp::MAX)
    }
}
