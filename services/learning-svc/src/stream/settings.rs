//! The stream's settings, with the defaults that production uses.

use std::time::Duration;

use emend_stream::{metrics::StreamMetrics, transfer::Pace};
use jiff::SignedDuration;
use learning_store::log::PageSize;

use crate::nodes::metrics::NodeMetrics;

/// How the stream behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How often the tailer reads the log without being woken.
    pub scan_interval: Duration,
    /// How much of the log is read at once.
    pub page_size: PageSize,
    /// How long a call waits for a state newer than the one there is.
    pub max_wait: Duration,
    /// The mean lifetime of a stream; it varies by up to a fifth either way.
    pub max_stream_age: Duration,
    /// The longest delay before reconnecting that Drain asks for.
    pub max_reconnect_delay: Duration,
    /// How many streams one replica holds; beyond that it refuses with UNAVAILABLE, and another replica may have room.
    pub max_streams: usize,
    /// The budget for encoded messages in bytes, kept for other streams or unread by clients. While it is spent, kept
    /// batches are dropped and messages are cut to 64 KiB.
    pub encoded_bytes: usize,
    /// How many snapshots and long updates are sent at once.
    pub transfers: usize,
    /// A transfer that does not keep this pace may be taken away while another waits.
    pub transfer_pace: Pace,
    /// How long deletions are remembered.
    pub tombstone_age: SignedDuration,
    /// How many deletions are remembered at most.
    pub max_tombstones: i64,
    /// How often the horizon is raised and nodes last seen long ago are dropped.
    pub retention_interval: Duration,
    /// The shortest time between two writes of node connections and reports.
    pub node_write_interval: Duration,
    /// How often a replica records that it still holds its nodes' streams.
    pub node_heartbeat_interval: Duration,
    /// A node counts as connected only if its replica was heard from within this time.
    pub node_connected_within: SignedDuration,
    /// Nodes not heard from for this long are dropped.
    pub node_forgotten_after: SignedDuration,
    /// The stream's metrics; by default they are exported nowhere.
    pub metrics: StreamMetrics,
    /// The metrics of nodes' reports; by default they are exported nowhere.
    pub node_metrics: NodeMetrics,
}

impl Settings {
    /// Those of the streams themselves.
    pub(super) fn of_streams(&self) -> emend_stream::Settings {
        emend_stream::Settings {
            max_wait: self.max_wait,
            max_stream_age: self.max_stream_age,
            max_reconnect_delay: self.max_reconnect_delay,
            max_streams: self.max_streams,
            encoded_bytes: self.encoded_bytes,
            transfers: self.transfers,
            transfer_pace: self.transfer_pace,
            metrics: self.metrics.clone(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scan_interval: Duration::from_secs(1),
            page_size: PageSize {
                revisions: 64,
                bytes: 8 * 1024 * 1024,
            },
            max_wait: Duration::from_secs(5),
            max_stream_age: Duration::from_hours(1),
            max_reconnect_delay: Duration::from_secs(5),
            max_streams: 20_000,
            encoded_bytes: 64 * 1024 * 1024,
            transfers: 16,
            transfer_pace: Pace {
                stalls_after: Duration::from_secs(10),
                bytes_per_second: 64 * 1024,
            },
            tombstone_age: SignedDuration::from_hours(7 * 24),
            max_tombstones: 1_000_000,
            retention_interval: Duration::from_mins(5),
            node_write_interval: Duration::from_secs(1),
            node_heartbeat_interval: Duration::from_secs(15),
            node_connected_within: SignedDuration::from_secs(60),
            node_forgotten_after: SignedDuration::from_hours(30 * 24),
            metrics: StreamMetrics::default(),
            node_metrics: NodeMetrics::default(),
        }
    }
}
