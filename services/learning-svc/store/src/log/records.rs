//! Revisions as read and as written.

use bytes::Bytes;
use emend_core::{CandidateId, FeedbackId, OperationId, ResourceKey, ResourceValue, Revision, decide::Cause};
use emend_stream::log::{Head, LoggedRevision};
use jiff::Timestamp;

use crate::actor::Actor;

/// How much of the log is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Maximum number of revisions.
    pub revisions: i64,
    /// No further revision is read once the changes so far, keys and values, reach this many bytes; the first is always
    /// read whole.
    pub bytes: usize,
}

/// What follows a revision, read in one consistent state with the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The head at that moment.
    pub head: Head,
    /// When the revision asked about was committed; none if the log does not have it (any more).
    pub anchor: Option<i64>,
    /// The revisions after it, ascending.
    pub revisions: Vec<LoggedRevision>,
    /// Whether the page ended early because of its bytes: the log has more, whatever number of revisions was asked for.
    pub is_full: bool,
}

/// The feedback whose arrival decided something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The feedback's id.
    pub feedback: FeedbackId,
    /// When it was received.
    pub received_at: Timestamp,
    /// Its W3C trace context; may be empty.
    pub traceparent: String,
}

/// The head, locked until the unit of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedHead {
    /// The newest revision, including those of this unit of work.
    pub revision: Revision,
    /// The database's time in microseconds since 1970.
    pub now: i64,
}

/// A change of a revision as written, for reverting it.
#[derive(Debug, Clone)]
pub struct WrittenChange {
    /// The resource.
    pub key: ResourceKey,
    /// The value before.
    pub before: Option<ResourceValue>,
    /// The newest revision that changed the resource.
    pub newest: Revision,
    /// The operation that revision is part of, if it is.
    pub newest_operation: Option<OperationId>,
    /// Whether the resource was deleted because its user was erased.
    pub by_erasure: bool,
}

/// A revision as auditors see it.
#[derive(Debug, Clone)]
pub struct RevisionRecord {
    /// Its position.
    pub revision: Revision,
    /// The import or bulk action it belongs to; may be empty.
    pub operation: String,
    /// The cause.
    pub cause: Cause,
    /// Who did it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// When it was committed, by the database's clock.
    pub committed_at: Timestamp,
    /// Its changes in the namespace.
    pub changes: Vec<ChangeRecord>,
}

/// What a revision did to one resource, as auditors see it.
#[derive(Debug, Clone)]
pub struct ChangeRecord {
    /// The resource.
    pub key: ResourceKey,
    /// The value before.
    pub before: Option<ResourceValue>,
    /// The value after; none: it was deleted, or is not kept.
    pub after: Option<ResourceValue>,
    /// Whether the value after is not kept.
    pub is_dropped: bool,
    /// XXH3-64 of the value after; 0 if it was deleted.
    pub checksum: u64,
    /// The candidate applied or removed; may be empty.
    pub candidate: String,
    /// The feedback that caused it; may be empty.
    pub feedback: String,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
    /// Whether a newer revision changed the same resource.
    pub changed_since: bool,
}

/// One decision's place in the log.
#[derive(Debug, Clone)]
pub struct RevisionWrite {
    /// Its position.
    pub revision: Revision,
    /// The import or bulk action it belongs to.
    pub operation: Option<OperationId>,
    /// The cause.
    pub cause: Cause,
    /// Who did it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
}

/// What a revision did to one resource.
#[derive(Debug, Clone)]
pub struct ChangeWrite {
    /// The revision.
    pub revision: Revision,
    /// Its position in the revision, from 0.
    pub ordinal: i32,
    /// The resource.
    pub key: ResourceKey,
    /// The encoded value; none: it was deleted.
    pub value: Option<Bytes>,
    /// The encoded value before; none: there was nothing.
    pub before: Option<Bytes>,
    /// The candidate applied or removed.
    pub candidate: Option<CandidateId>,
    /// The feedback that caused it.
    pub trigger: Option<Trigger>,
    /// The version of the policy that decided; 0: a person did.
    pub policy_version: i64,
}

/// What a unit of work appends to the log.
#[derive(Debug, Clone, Default)]
pub struct LogWrites {
    /// All committed at [`LogWrites::committed_at`].
    pub revisions: Vec<RevisionWrite>,
    /// What they change.
    pub changes: Vec<ChangeWrite>,
    /// The database's time under the head's lock, in microseconds since 1970.
    pub committed_at: i64,
}
