//! How submissions are grouped.

use std::time::Duration;

/// How concurrent submissions share a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitConfig {
    /// The most submissions in one commit; a larger batch is committed alone.
    pub group_items: usize,
    /// The most bytes of events in one commit.
    pub group_bytes: usize,
    /// The most bytes that may wait for their commit, each submission counting as 4 KiB at least. Beyond that, or
    /// beyond its client's share of the last quarter, a submission is refused with `RESOURCE_EXHAUSTED`.
    pub queue_bytes: usize,
    /// How long a submission may wait for its commit to begin before it, too, is refused with `RESOURCE_EXHAUSTED`. So
    /// callers do not queue for long, however slow the database is.
    pub queue_time: Duration,
}

impl Default for CommitConfig {
    fn default() -> Self {
        Self {
            group_items: 256,
            group_bytes: 2 * 1024 * 1024,
            queue_bytes: 32 * 1024 * 1024,
            queue_time: Duration::from_secs(2),
        }
    }
}
