//! What a message of the stream did to the replica.
//!
//! It must know nothing of how it is published.

use std::time::Duration;

use emend_core::{ResourceValue, Revision};
use emend_proto::{
    common::v1::{Cause, ResourceKey},
    learning::v1::SnapshotReason,
};
use jiff::Timestamp;

use super::{judge::Rejection, verify::Verdict};

/// What a message did.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing: a message that this version does not know.
    Ignored,
    /// The stream goes on from here; nothing comes again.
    Resumed(Revision),
    /// A snapshot begins. What is held stays in use.
    SnapshotBegun {
        /// Why it comes.
        reason: SnapshotReason,
        /// The revision that it shows.
        revision: Revision,
        /// How many resources follow.
        count: u64,
    },
    /// Part of a snapshot or of an update was taken; nothing is to be seen of it yet.
    Staged,
    /// A snapshot has replaced all that was held.
    Installed(Installed),
    /// An update was applied, all of it.
    Applied(Applied),
    /// Nothing at or below this revision is missing, unless the digests differ: then nothing has moved on.
    Current {
        /// Everything up to here is applied, if so.
        revision: Revision,
        /// Whether the server holds the same.
        verdict: Verdict,
    },
    /// The server ends the stream.
    Drain {
        /// Wait so long before connecting again.
        reconnect_after: Duration,
        /// Why, in `UPPER_SNAKE_CASE`.
        reason: String,
    },
}

/// A snapshot that replaced all that was held.
#[derive(Debug, Clone, PartialEq)]
pub struct Installed {
    /// Why it came.
    pub reason: SnapshotReason,
    /// The revision that it shows.
    pub revision: Revision,
    /// How many resources it holds.
    pub count: usize,
    /// How many of them this node cannot use.
    pub rejected: usize,
    /// Whether the server holds the same.
    pub verdict: Verdict,
}

/// An update that was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The revision before it.
    pub from: Revision,
    /// The revision after it.
    pub to: Revision,
    /// What changed, ordered by revision.
    pub changes: Vec<AppliedChange>,
    /// Whether the server holds the same of the groups that changed.
    pub verdict: Verdict,
}

/// One key's newest state.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedChange {
    /// Which.
    pub key: ResourceKey,
    /// The revision that changed it last.
    pub revision: Revision,
    /// What it is now.
    pub state: State,
    /// Why it changed.
    pub cause: Cause,
    /// When the revision was committed, by the database's clock.
    pub committed_at: Option<Timestamp>,
    /// When the feedback that caused it was received; none where none did.
    pub feedback_received_at: Option<Timestamp>,
    /// W3C trace context of that feedback; may be empty.
    pub traceparent: String,
}

/// What a key is now.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It has this value.
    Learned(ResourceValue),
    /// It has a value that this node cannot use.
    Rejected(Rejection),
    /// It is gone.
    Deleted,
}
