//! What one subscriber received, in the run's order.
//!
//! Everything here is plain and public, so that a test can tamper with a copy and see the audit object to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use emend_proto::{
    learning::v1::{Cursor, SubscribeRequest},
    wire::Message,
};

use crate::harness::Key;

/// An index in the order of what a run saw. Of two moments of one [`Run`], the smaller was earlier.
pub type Moment = u64;

/// Everything that one subscriber received.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The node id it subscribed with.
    pub subscriber: String,
    /// One per stream asked for, in order.
    pub connections: Vec<Connection>,
    /// The epoch and head that it had to reach before it ended; `None` if it was broken off.
    pub until: Option<(String, i64)>,
    /// What else the run witnessed, in order.
    pub witnessed: Vec<Witnessed>,
}

/// One stream, from the request to its end.
#[derive(Debug, Clone)]
pub struct Connection {
    /// As sent, with its cursor.
    pub request: SubscribeRequest,
    /// When it was sent.
    pub opened: Moment,
    /// In the order of arrival.
    pub messages: Vec<Received>,
    /// How it ended.
    pub ending: Ending,
}

/// A message and when it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// When.
    pub at: Moment,
    /// What.
    pub message: Message,
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was still open when the recording ended.
    Open,
    /// Ended by the subscriber.
    Left,
    /// Ended gracefully by the server.
    Ended,
    /// Broken by an error after it was opened: its code and message.
    Broken(String),
    /// Never opened.
    Refused(String),
}

/// Something that the run saw besides the streams.
#[derive(Debug, Clone)]
pub struct Witnessed {
    /// When.
    pub at: Moment,
    /// What.
    pub what: Witness,
}

/// What can be witnessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// A writer was told that this revision is committed.
    Committed(i64),
    /// A reader was answered from a published state at least as new as this revision.
    Published(i64),
    /// This subscriber stopped reading.
    StallBegins(String),
    /// This subscriber is about to read again, and all others had to reach this revision by now.
    StallEnds(String, i64),
    /// The server's resident memory and its bound, in bytes.
    Resident {
        /// As measured.
        bytes: u64,
        /// The bound.
        bound: u64,
    },
}

/// The time of a run: an index that several recorders and writers share. Clones share it too.
#[derive(Debug, Clone, Default)]
pub struct Run(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    now: Moment,
    witnessed: Vec<Witnessed>,
}

impl Run {
    /// A run that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a writer was told that this revision is committed.
    pub fn committed(&self, revision: i64) {
        self.witness(Witness::Committed(revision));
    }

    /// Notes that a reader was answered from a published state at least as new as this revision.
    pub fn published(&self, revision: i64) {
        self.witness(Witness::Published(revision));
    }

    /// Notes that this subscriber no longer reads.
    pub fn stall_begins(&self, subscriber: &str) {
        self.witness(Witness::StallBegins(subscriber.to_owned()));
    }

    /// Notes that this subscriber is about to read again. From now on any other recording that has not reached `head`
    /// breaks guarantee 9: wait for those subscribers first, within a bound.
    pub fn stall_ends(&self, subscriber: &str, head: i64) {
        self.witness(Witness::StallEnds(subscriber.to_owned(), head));
    }

    /// Notes the server's resident memory, `bytes`, which had to stay within `bound`.
    pub fn resident(&self, bytes: u64, bound: u64) {
        self.witness(Witness::Resident { bytes, bound });
    }

    /// What was witnessed so far.
    pub fn witnessed(&self) -> Vec<Witnessed> {
        self.seen().witnessed.clone()
    }

    /// The next moment.
    pub(super) fn moment(&self) -> Moment {
        let mut seen = self.seen();
        seen.now += 1;
        seen.now
    }

    fn witness(&self, what: Witness) {
        let mut seen = self.seen();
        seen.now += 1;
        let at = seen.now;
        seen.witnessed.push(Witnessed { at, what });
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a subscription with this request covers a key.
pub fn covers(request: &SubscribeRequest, key: &Key) -> bool {
    covers_group(request, &key.namespace, key.kind, !key.user_id.is_empty())
}

/// Whether a subscription with this request covers the resources of a group.
pub(super) fn covers_group(
    request: &SubscribeRequest,
    namespace: &str,
    kind: i32,
    user_scoped: bool,
) -> bool {
    (request.namespaces.is_empty() || request.namespaces.iter().any(|known| known == namespace))
        && (request.kinds.is_empty() || request.kinds.contains(&kind))
        && (request.include_user_scoped || !user_scoped)
}

/// The part of a request that is its filter, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilterForm {
    namespaces: Vec<String>,
    kinds: Vec<i32>,
    include_user_scoped: bool,
}

impl From<&SubscribeRequest> for FilterForm {
    fn from(request: &SubscribeRequest) -> Self {
        let (mut namespaces, mut kinds) = (request.namespaces.clone(), request.kinds.clone());
        namespaces.sort();
        namespaces.dedup();
        kinds.sort_unstable();
        kinds.dedup();
        Self {
            namespaces,
            kinds,
            include_user_scoped: request.include_user_scoped,
        }
    }
}

/// The cursor that a message hands out.
pub(super) fn handed_out(message: &Message) -> Option<&Cursor> {
    match message {
        Message::Resumed(resumed) => resumed.cursor.as_ref(),
        Message::SnapshotEnd(end) => end.cursor.as_ref(),
        Message::Update(update) => update.cursor.as_ref(),
        Message::Bookmark(bookmark) => bookmark.cursor.as_ref(),
        Message::SnapshotBegin(_) | Message::SnapshotChunk(_) | Message::Drain(_) => None,
    }
}
