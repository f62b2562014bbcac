//! The pauses between two looks into the database for what another replica may change there.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause; each is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(20);
/// The longest.
const LONGEST: Duration = Duration::from_millis(200);

/// The pauses of one wait.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pauses {
    /// Sleeps, but not beyond `until`.
    pub(crate) async fn sleep(&mut self, until: Instant) {
        sleep(self.0.min(until.saturating_duration_since(Instant::now()))).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
