//! The effects of the stream's messages on the replica.

use std::time::Duration;

use emend_core::{InstallationId, ResourceValue, Revision};
use emend_proto::{
    common::v1::{Cause, ResourceKey},
    learning::v1::SnapshotReason,
};
use jiff::Timestamp;

use super::{decode::Rejection, verify::DigestCheck};

/// The effect of one message.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// None: this version does not know the message.
    Ignored,
    /// The stream resumes from this revision; nothing is sent again.
    Resumed(Revision),
    /// Another installation answers than the one whose resources are held, and the node was not told to accept it. What
    /// is held stays as it is; the stream must be closed.
    OtherInstallation {
        /// Whose resources are held.
        held: InstallationId,
        /// Whose server it is.
        answering: InstallationId,
    },
    /// A snapshot begins. What is held stays in use.
    SnapshotBegun {
        /// Why it is sent.
        reason: SnapshotReason,
        /// The revision that it shows.
        revision: Revision,
        /// How many resources follow.
        count: u64,
    },
    /// Part of a snapshot or update was staged; none of it is visible yet.
    Staged,
    /// A snapshot has replaced all that was held.
    Installed(Installed),
    /// An update was applied completely.
    Applied(Applied),
    /// Nothing at or below this revision is missing, unless the digests differ: then the position has not advanced.
    Current {
        /// If the digests agree, everything up to this revision is applied.
        revision: Revision,
        /// How long ago the server last read its log to the end.
        age: Duration,
        /// Whether the server holds the same.
        digest_check: DigestCheck,
    },
    /// The server ends the stream.
    Drain {
        /// How long to wait before reconnecting.
        reconnect_after: Duration,
        /// Why, in `UPPER_SNAKE_CASE`.
        reason: String,
    },
}

/// A snapshot that replaced all that was held.
#[derive(Debug, Clone, PartialEq)]
pub struct Installed {
    /// Why it was sent.
    pub reason: SnapshotReason,
    /// The revision that it shows.
    pub revision: Revision,
    /// How many resources it holds.
    pub count: usize,
    /// How many of them this node cannot use.
    pub rejected: usize,
    /// Whether the server holds the same.
    pub digest_check: DigestCheck,
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
    /// Whether the server holds the same in the groups that changed.
    pub digest_check: DigestCheck,
}

/// One key's newest state.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedChange {
    /// The key.
    pub key: ResourceKey,
    /// The revision that changed it last.
    pub revision: Revision,
    /// What it is now.
    pub state: State,
    /// Why it changed.
    pub cause: Cause,
    /// When the revision was committed, by the database's clock.
    pub committed_at: Option<Timestamp>,
    /// When the feedback that caused it was received; `None` if no feedback caused it.
    pub feedback_received_at: Option<Timestamp>,
    /// The W3C trace context of that feedback; may be empty.
    pub traceparent: String,
}

/// What a key is now.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It has this value. How people write the key: [`ResourceValue::written`].
    Learned(ResourceValue),
    /// It has a value that this node cannot use.
    Rejected(Rejection),
    /// It was deleted.
    Deleted,
}
