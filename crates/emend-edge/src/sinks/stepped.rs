//! Work in steps, which time and the stream wake.

use std::time::Duration;

use emend_base::BackoffConfig;
use emend_client::{Events, Observed, SubscriberEvent};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The least time between two steps: what changes meanwhile is looked at together.
const LEAST: Duration = Duration::from_millis(100);
/// The waits between attempts.
pub(super) const BACKOFF: BackoffConfig = BackoffConfig {
    initial: Duration::from_millis(500),
    max: Duration::from_secs(30),
    multiplier: 2.0,
};

/// Work in steps.
pub(super) trait Stepped: Send {
    /// A step, and when the next one is due.
    fn run_once(&mut self) -> impl Future<Output = Next> + Send;
}

/// When the next step is due.
pub(super) struct Next {
    at: Instant,
    is_idle: bool,
}

impl Next {
    /// Then, or as soon as the state changes.
    pub(super) fn idle(at: Instant) -> Self {
        Self { at, is_idle: true }
    }

    /// After this long, whatever happens.
    pub(super) fn after(wait: Duration) -> Self {
        Self {
            at: Instant::now() + wait,
            is_idle: false,
        }
    }
}

/// Steps until `stop`, or until the node has ended whose events these are.
pub(super) async fn run(mut work: impl Stepped, mut events: Events, stop: CancellationToken) {
    loop {
        let next = work.run_once().await;
        let least = Instant::now() + LEAST;
        let is_open = tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(next.at.max(least)) => true,
            is_open = changed(&mut events), if next.is_idle => is_open,
        };
        if !is_open {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(least) => {}
        }
    }
}

/// Waits until the state may have changed; false once the node has ended. Cancel-safe.
async fn changed(events: &mut Events) -> bool {
    loop {
        match events.next().await {
            None => return false,
            Some(Observed::Missed(_)) => return true,
            Some(Observed::Event(event)) => {
                let is_change = matches!(
                    &*event,
                    SubscriberEvent::Snapshot { .. }
                        | SubscriberEvent::Updated { .. }
                        | SubscriberEvent::Bookmark { .. }
                );
                if is_change {
                    return true;
                }
            }
        }
    }
}
