//! How events are delivered to learning-svc.

use std::time::Duration;

use emend_base::BackoffConfig;
use emend_serve::server::bounds::KeepAlive;

/// How events are delivered to learning-svc.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelayConfig {
    /// How long an event is leased to one replica.
    pub lease: Duration,
    /// How often the outbox is polled for events that other replicas left behind or that are due for a retry, give or
    /// take a fifth.
    pub poll: Duration,
    /// How many batches may be in flight at once.
    pub workers: usize,
    /// The most events in a batch, at most 256.
    pub batch_events: usize,
    /// The most bytes in a batch; a larger event is sent alone.
    pub batch_bytes: usize,
    /// How many events may be queued in memory.
    pub queue_events: usize,
    /// An event that has waited in memory for longer than this is looked up in the outbox again before it is sent.
    /// Shorter than any database failover takes.
    pub trusted: Duration,
    /// How long learning-svc may take to answer a batch; well below the lease.
    pub answer_timeout: Duration,
    /// How it detects that learning-svc vanished without a word.
    pub keep_alive: KeepAlive,
    /// The back-off of an event after a refusal that is worth a retry.
    pub retry: BackoffConfig,
    /// The back-off of a worker while learning-svc is unavailable.
    pub reconnect: BackoffConfig,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            workers: 2,
            batch_events: 256,
            batch_bytes: 1024 * 1024,
            queue_events: 4096,
            trusted: Duration::from_millis(250),
            answer_timeout: Duration::from_secs(10),
            keep_alive: KeepAlive {
                interval: Duration::from_secs(10),
                timeout: Duration::from_secs(5),
            },
            retry: BackoffConfig {
                initial: Duration::from_millis(200),
                max: Duration::from_mins(1),
                multiplier: 2.0,
            },
            reconnect: BackoffConfig {
                initial: Duration::from_millis(50),
                max: Duration::from_secs(2),
                multiplier: 2.0,
            },
        }
    }
}
