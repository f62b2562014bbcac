//! What a service is given from outside.

use crate::{Entropy, Lifecycle, SharedClock, SystemClock};

/// What a service is given from outside.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Owns the service's tasks, which run in a scope within it.
    pub lifecycle: Lifecycle,
    /// The time that decisions and new ids depend on. Commits, leases and retention go by the database's clock.
    pub clock: SharedClock,
    /// Source of ids, tokens and jitter.
    pub entropy: Entropy,
}

impl Environment {
    /// The system's clock and randomness.
    pub fn system(lifecycle: &Lifecycle) -> Self {
        Self {
            lifecycle: lifecycle.clone(),
            clock: SystemClock::shared(),
            entropy: Entropy::system(),
        }
    }
}
