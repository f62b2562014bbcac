//! How much a server takes on at once, and how long it waits for its clients. Operators set the bounds in
//! [`args`](crate::server::args); [`serve`](crate::server) and [`admission`](crate::server::admission) enforce them.

use std::time::Duration;

/// The bounds of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls in progress at once, not counting streams that have begun. Further calls are refused with
    /// `RESOURCE_EXHAUSTED`.
    pub calls: usize,
    /// Connections open at once, and never more than a third of the files that the process may open. Further
    /// connections are closed, and so are those in the last quarter whose address already has a 64th of all.
    pub connections: usize,
    /// Bytes that calls may hold at once, in requests and unread answers, not counting the first 4 KiB of each call.
    /// What exceeds it is refused with `RESOURCE_EXHAUSTED`.
    pub bytes: usize,
    /// How long to wait for a client in the middle of a call.
    pub patience: ClientTimeouts,
    /// How to detect a client that vanished without a word.
    pub keep_alive: KeepAlive,
    /// How long a connection accepts new calls, on average; then its client is told to reconnect, and calls in progress
    /// run to their end. None: for as long as it is open.
    pub connection_age: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A submission that waits for its outcome takes at most 2 s, so this allows 8,000 of those per second.
            calls: 16_384,
            connections: 32_768,
            bytes: 128 << 20,
            patience: ClientTimeouts::default(),
            keep_alive: KeepAlive::default(),
            connection_age: None,
        }
    }
}

/// How long a server waits for a client in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// For a whole request, from its headers on. Calls with a streaming request bound its silence themselves.
    pub request: Duration,
    /// For the client to read more of a response, unless that is a long-lived stream.
    pub response: Duration,
}

impl Default for ClientTimeouts {
    /// A 4 MiB message must arrive at 140 KB/s, and 64 KiB of a response must be read within a minute.
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            response: Duration::from_mins(1),
        }
    }
}

/// How one end of a connection detects that the other vanished without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// How often a silent connection is pinged.
    pub interval: Duration,
    /// How long the other end has to answer; then the connection is closed.
    pub timeout: Duration,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(20),
        }
    }
}
