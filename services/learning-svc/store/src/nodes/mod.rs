//! What is stored of search nodes, as last seen.

pub(crate) mod sql;
#[cfg(test)]
pub(crate) mod suite;

use async_trait::async_trait;
use emend_core::{Caller, NodeId};
use emend_store::StoreError;
use emend_stream::log::Head;
use jiff::SignedDuration;
use tokio::time::Instant;

type Result<T> = std::result::Result<T, StoreError>;

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
    /// It ended, and the node is forgotten with it.
    Left,
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

/// Nodes in a unit of work.
#[async_trait]
pub trait NodeRepository: Send {
    /// Records what `replica` learned about its nodes. An opening counts only if no other replica's is newer, whichever
    /// was written first, and a close only if no other replica's opening has counted since.
    async fn write(&mut self, replica: &str, writes: &[NodeWrite]) -> Result<()>;

    /// Records that `replica` still holds the streams it opened and did not close.
    async fn touch(&mut self, replica: &str) -> Result<()>;

    /// Forgets nodes not heard of for `unseen_for`. Returns how many.
    async fn forget(&mut self, unseen_for: SignedDuration) -> Result<u64>;
}

/// Nodes outside units of work.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// The callers that have opened a stream as this node.
    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>>;

    /// At most `limit` nodes heard of within `seen_within`, after that position; fewer if much is stored about them.
    async fn list_nodes(
        &self,
        after: Option<(String, String)>,
        limit: i64,
        seen_within: SignedDuration,
    ) -> Result<NodePage>;

    /// Counts the nodes heard of within `seen_within`. Those whose replica was not heard of within `connected_within`
    /// do not count as connected.
    async fn count_nodes(
        &self,
        connected_within: SignedDuration,
        seen_within: SignedDuration,
    ) -> Result<NodeCounts>;
}
