//! What time it is, injected.
//!
//! The core and the services never read the ambient clock: they are handed a [`Clock`], so that a test can hold time
//! still.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + Debug + 'static {
    /// The current instant.
    fn now(&self) -> Timestamp;
}

/// A clock with shared ownership.
pub type SharedClock = Arc<dyn Clock>;

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The system clock, ready to be shared.
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where ambient time enters, and the only place"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until a test moves it. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Shows `instant` from now on; it may be earlier than before.
    pub fn set(&self, instant: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = instant;
    }

    /// Advances by `step`; a negative step goes back. Stops at the first and last representable instants.
    pub fn advance(&self, step: SignedDuration) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = shown.saturating_add(step).unwrap_or(*shown);
    }

    /// The same clock, ready to be shared.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }
}

impl Default for ManualClock {
    /// Starts at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::new(Timestamp::constant(1_767_225_600, 0))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = ManualClock::default();
        let shared = clock.shared();
        assert_eq!(shared.now().to_string(), "2026-01-01T00:00:00Z");
        clock.advance(SignedDuration::from_secs(90));
        assert_eq!(shared.now().to_string(), "2026-01-01T00:01:30Z");
        clock.advance(SignedDuration::from_secs(-60));
        assert_eq!(shared.now().to_string(), "2026-01-01T00:00:30Z");
    }

    #[test]
    fn the_system_clock_advances() {
        let clock = SystemClock::shared();
        let first = clock.now();
        let later = (0..1_000_000).map(|_| clock.now()).find(|now| *now > first);
        assert!(later.is_some());
    }
}
