//! The log's side of the store: what the update stream, the read model and the node registry need of a database.
//!
//! Rows of resources and changes are passed on as stored, unknown kinds included: the code that streams them must not
//! need to understand them. It must know nothing of SQL, of subscribers or of how revisions are decided.

#[cfg(test)]
pub(crate) mod suite;

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{Caller, Epoch, InstallationId, NodeId};
use emend_store::StoreError;
use jiff::SignedDuration;
use tokio::time::Instant;

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
    /// The encoded value; none if the key was deleted.
    pub value: Option<Bytes>,
    /// XXH3-64 of the value's bytes.
    pub checksum: u64,
    /// When the feedback that caused it was received, in microseconds since 1970; 0 if no feedback did.
    pub feedback_received_at: i64,
    /// W3C trace context of its evaluation, in the trace of that feedback, or empty.
    pub traceparent: String,
}

impl LoggedChange {
    /// Its size for the purposes of [`PageSize`].
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

/// The end of a full load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// The head at that moment.
    pub head: Head,
    /// When the head revision was committed; 0 while there is none.
    pub committed_at: i64,
}

/// A stream that a node opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// An encoded `NodeInfo`.
    pub info: Vec<u8>,
    /// When, by this process's clock. Stores subtract its age from the database's time, the one clock replicas share.
    pub at: Instant,
}

impl Opening {
    /// How long ago it was opened, in microseconds.
    pub fn age_micros(&self) -> i64 {
        i64::try_from(self.at.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

/// A change to a node's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It was opened.
    Opened(Opening),
    /// It ended.
    Closed,
    /// It was opened and ended again.
    OpenedAndClosed(Opening),
}

/// What a replica learned about one node since its last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWrite {
    /// The node.
    pub node_id: NodeId,
    /// The caller that opened its stream.
    pub caller: Caller,
    /// The last change to its connection with this replica.
    pub connection: Option<Connection>,
    /// Its last report: an encoded `ReportStatusRequest`.
    pub report: Option<Vec<u8>>,
}

/// A node as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// Its id.
    pub node_id: String,
    /// The caller that opened its stream.
    pub caller: String,
    /// An encoded `NodeInfo`.
    pub info: Vec<u8>,
    /// An encoded `ReportStatusRequest`; empty if it never reported.
    pub report: Vec<u8>,
    /// Whether a replica holds its stream, as far as that replica could record it.
    pub connected: bool,
    /// When its stream was last opened, in microseconds since 1970 by the database's clock.
    pub connected_at: i64,
    /// When it was last heard of, in microseconds since 1970 by the database's clock.
    pub seen_at: i64,
}

/// Bytes stored for the nodes of one page: at most this many, plus one node's.
const NODE_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// A page of nodes and what is needed to judge them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePage {
    /// Ordered by id, then caller.
    pub nodes: Vec<NodeRow>,
    /// Whether more nodes follow.
    pub more: bool,
    bytes: usize,
    /// The log's head.
    pub head: Head,
    /// The database's clock, in microseconds since 1970.
    pub now: i64,
}

impl NodePage {
    /// An empty page.
    pub fn begin(head: Head, now: i64) -> Self {
        Self {
            nodes: Vec::new(),
            more: false,
            bytes: 0,
            head,
            now,
        }
    }

    /// Adds the next node, unless the page already has `limit` nodes or is full: then `more` is set. Returns whether it
    /// was added.
    pub fn take(&mut self, row: NodeRow, limit: i64) -> bool {
        let is_full = usize::try_from(limit).is_ok_and(|limit| self.nodes.len() >= limit)
            || self.bytes >= NODE_PAGE_BYTES;
        if is_full {
            self.more = true;
            return false;
        }
        self.bytes += row.info.len() + row.report.len();
        self.nodes.push(row);
        true
    }
}

/// How many nodes there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// With a stream open somewhere.
    pub connected: u64,
    /// Without.
    pub disconnected: u64,
}

/// Receives what a load finds, one by one.
pub type Sink<'a> = &'a mut (dyn FnMut(LoggedChange) + Send);

/// What the stream needs of a database. Every method is one transaction.
#[async_trait]
pub trait LogStore: Send + Sync + 'static {
    /// Creates the head with this epoch and installation, at revision 0, unless there is one. Returns the head.
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head, StoreError>;

    /// The head; none if the database is empty.
    async fn find_head(&self) -> Result<Option<Head>, StoreError>;

    /// The head.
    async fn head(&self) -> Result<Head, StoreError>;

    /// Passes every resource, and every key whose newest change is a deletion above the horizon, to `sink`: once per
    /// key, in no particular order, all from one consistent state. On an error, discard what was passed before it.
    async fn load(&self, sink: Sink<'_>) -> Result<Loaded, StoreError>;

    /// The revisions after `revision` with all their changes, as many as fit the page.
    async fn revisions_after(&self, revision: i64, size: PageSize) -> Result<LogPage, StoreError>;

    /// Raises the horizon so that no deletion above it is older than `max_age`, and only the newest `max_tombstones`
    /// are above it; never lowers it. Returns the horizon in force.
    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64, StoreError>;

    /// Begins a new epoch of the log, if `old` is still in force. Returns the epoch in force afterwards, so that when
    /// several replicas do this at once, all follow the first.
    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch, StoreError>;

    /// Records what `replica` learned about its nodes. An opening counts only if no other replica's is newer, whichever
    /// was written first, and a close only if no other replica's opening has counted since.
    async fn write_nodes(&self, replica: &str, writes: &[NodeWrite]) -> Result<(), StoreError>;

    /// Records that `replica` still holds the streams it opened and did not close.
    async fn touch_nodes(&self, replica: &str) -> Result<(), StoreError>;

    /// The callers that have opened a stream as this node.
    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>, StoreError>;

    /// At most `limit` nodes heard of within `seen_within`, after that position; fewer if much is stored about them.
    async fn list_nodes(
        &self,
        after: Option<(String, String)>,
        limit: i64,
        seen_within: SignedDuration,
    ) -> Result<NodePage, StoreError>;

    /// Counts the nodes heard of within `seen_within`. Those whose replica was not heard of within `connected_within`
    /// do not count as connected.
    async fn count_nodes(
        &self,
        connected_within: SignedDuration,
        seen_within: SignedDuration,
    ) -> Result<NodeCounts, StoreError>;

    /// Forgets nodes not heard of for `unseen_for`. Returns how many.
    async fn forget_nodes(&self, unseen_for: SignedDuration) -> Result<u64, StoreError>;
}
