//! How much a server takes on at once, and how long it waits for those at the other side. What operators set of it is in
//! [`serve_args`](crate::serve_args); what keeps to it, in [`serve`](crate::serve) and [`admission`](crate::admission).

use std::time::Duration;

/// The bounds of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// RPCs that may be under way at once, streams that have begun not counted. One more is refused with
    /// `RESOURCE_EXHAUSTED`.
    pub calls: usize,
    /// Connections that there may be at once, and never more than a third of the files that the process may have open. One
    /// more is closed; and so is one of the last quarter if its address has a 64th of all already.
    pub connections: usize,
    /// Bytes that calls may hold at once, of requests and of answers that wait to be read, the first 4 KiB of each not
    /// counted. What finds no room is refused with `RESOURCE_EXHAUSTED`.
    pub bytes: usize,
    /// How long a client is waited for in the middle of a call.
    pub patience: Patience,
    /// How it is found out that a client has gone without a word.
    pub keep_alive: KeepAlive,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A submission that waits for its outcome takes 2 s at most: so there may be 8,000 of those in a second.
            calls: 16_384,
            connections: 32_768,
            bytes: 128 << 20,
            patience: Patience::default(),
            keep_alive: KeepAlive::default(),
        }
    }
}

/// How long a server waits for a client in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For the whole of a request, from its headers on. Calls whose request is a stream bound its silence themselves.
    pub request: Duration,
    /// For the client to read some more of a response, unless that is a long-lived stream.
    pub response: Duration,
}

impl Default for Patience {
    /// A message of 4 MiB has to come at 140 KB a second, and 64 KiB of a response have to be read within a minute.
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            response: Duration::from_mins(1),
        }
    }
}

/// How a side of a connection finds out that the other has gone without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// How often a silent connection is asked whether the other side still lives.
    pub interval: Duration,
    /// How long the other side has for its answer; then the connection is closed.
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
