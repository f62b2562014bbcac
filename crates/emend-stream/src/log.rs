//! The log as states are made of it. Values stay bytes as they were stored, of kinds and with fields that this version may not
//! know.

use bytes::Bytes;
use emend_core::{Epoch, InstallationId, digest::value_checksum};

/// The head of the log in one consistent read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The log's epoch.
    pub epoch: Epoch,
    /// Minted with the log, and kept by backups and new epochs.
    pub installation: InstallationId,
    /// The newest revision; 0 while there is none.
    pub revision: i64,
    /// Deletions at or below this revision may be forgotten.
    pub horizon: i64,
}

/// What a revision did to one key, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// The revision.
    pub revision: i64,
    /// When it was committed, in microseconds since 1970 by the database's clock.
    pub committed_at: i64,
    /// A `Cause`, by its number.
    pub cause: i32,
    /// The search application.
    pub namespace: String,
    /// The kind's number, known to this version or not.
    pub kind: i32,
    /// The normalised key.
    pub key: String,
    /// The qualifier, or empty.
    pub qualifier: String,
    /// The user it belongs to, or empty.
    pub user_id: String,
    /// The encoded value; none if the key was deleted, empty if it is not kept.
    pub value: Option<Bytes>,
    /// XXH3-64 of the value's bytes, also where it is not kept.
    pub checksum: u64,
    /// When the feedback that caused it was received, in microseconds since 1970; 0 if no feedback did.
    pub feedback_received_at: i64,
    /// W3C trace context of its evaluation, in the trace of that feedback, or empty.
    pub traceparent: String,
}

impl LoggedChange {
    /// Whether the log no longer has the value: then it has a newer change of the same key.
    pub fn is_dropped(&self) -> bool {
        let is_empty = self.value.as_ref().is_some_and(Bytes::is_empty);
        is_empty && self.checksum != value_checksum(&[])
    }

    /// Its size for the purposes of how much of the log is read at once.
    pub fn bytes(&self) -> usize {
        let Self {
            namespace,
            key,
            qualifier,
            user_id,
            value,
            ..
        } = self;
        let texts = [namespace, key, qualifier, user_id].map(String::len);
        texts.into_iter().sum::<usize>() + value.as_ref().map_or(0, Bytes::len)
    }
}

/// One revision with all its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRevision {
    /// Its position in the log.
    pub revision: i64,
    /// When it was committed, in microseconds since 1970 by the database's clock.
    pub committed_at: i64,
    /// Its changes, in the order they were written.
    pub changes: Vec<LoggedChange>,
}

/// The end of a full load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// The head at that moment.
    pub head: Head,
    /// When the head revision was committed; 0 while there is none.
    pub committed_at: i64,
}
