//! The fleet: which nodes have a stream open, and what they report.
//!
//! Connections and reports are noted in memory without waiting and written in batches, so that any replica can list the
//! whole fleet. A node belongs to the callers that opened a stream as it: only they may report for it.

pub mod metrics;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::Error;
use emend_core::{Caller, Epoch, NodeId};
use emend_proto::learning::v1 as pb;
use emend_serve::fair_semaphore::{ClientKey, FairSemaphore, Permit};
use emend_store::{CorruptRow, StoreError};
use emend_stream::log::Head;
use emend_wire::{
    page::{self, QueryHash},
    render::timestamp_from_micros,
};
use jiff::SignedDuration;
use learning_store::{
    Store,
    nodes::{Connection, NodePage, NodeRow, NodeWrite, Opening},
};
use prost::Message as _;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use self::metrics::NodeMetrics;
use crate::fail_points;

/// How many nodes are read at once where only some are looked for, and how often for one answer.
const READ_PAGE: u32 = 1_000;
const READ_PAGES: usize = 20;
/// How many nodes are written in one transaction.
const WRITE_PAGE: usize = 500;
/// How many nodes may be pending before one that came and went in the meantime is dropped. While the database is away,
/// all other pending nodes are bounded by the number of streams.
const MAX_PENDING: usize = 10_000;
/// How many bytes of reports may be pending or in the middle of a write; further reports are refused.
const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;
/// How many bytes of one report are kept at most. Of the resources a node could not use, the newest that fit.
const MAX_REPORT: usize = 32 * 1024;
/// When a refused report may be worth repeating.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type NodeKey = (NodeId, Caller);

/// What has not been written yet for one node.
#[derive(Debug, Default)]
struct Pending {
    connection: Option<Connection>,
    report: Option<Report>,
}

/// A pending report, with one permit per byte.
#[derive(Debug)]
struct Report {
    bytes: Vec<u8>,
    place: Permit,
}

/// A node with a stream open here.
#[derive(Debug, Default)]
struct OpenNode {
    /// The number of its streams open here.
    streams: usize,
    /// Whether it is forgotten when the last of them ends.
    transient: bool,
    /// The epoch and revision it has applied, as last reported here.
    applied: Option<(Epoch, i64)>,
}

#[derive(Debug, Default)]
struct Registry {
    open: HashMap<NodeKey, OpenNode>,
    pending: BTreeMap<NodeKey, Pending>,
}

impl Report {
    /// Replaces the report if permits allow, else leaves it as it is. Returns whether it did.
    fn replace(&mut self, bytes: Vec<u8>) -> bool {
        let fits = self.place.try_resize(bytes.len());
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

impl Registry {
    /// Makes a report pending in place of the node's last one, if permits allow. Returns whether it did.
    fn wait(&mut self, key: &NodeKey, bytes: Vec<u8>, none: impl FnOnce() -> Permit) -> bool {
        let last = self
            .pending
            .get_mut(key)
            .and_then(|pending| pending.report.as_mut());
        if let Some(last) = last {
            return last.replace(bytes);
        }
        let mut first = Report {
            bytes: Vec::new(),
            place: none(),
        };
        let fits = first.replace(bytes);
        if fits {
            self.pending.entry(key.clone()).or_default().report = Some(first);
        }
        fits
    }
}

/// The registry of one replica. Clones share it.
#[derive(Clone)]
pub struct Nodes {
    store: Arc<dyn Store>,
    /// Identifies this running replica in the table.
    replica: Arc<str>,
    connected_within: SignedDuration,
    /// How long a report waits for the database.
    patience: Duration,
    metrics: NodeMetrics,
    /// One permit per byte of report, held until it is written.
    permits: FairSemaphore,
    registry: Arc<Mutex<Registry>>,
    dirty: Arc<Notify>,
}

/// An open stream. Dropping it records that the stream is gone.
pub struct OpenStream {
    nodes: Nodes,
    key: NodeKey,
}

impl Nodes {
    /// `replica` names this running process. A node counts as connected if its replica was heard from `connected_within` this
    /// time; a report waits for the database for `patience`.
    pub fn new(
        store: Arc<dyn Store>,
        replica: &str,
        connected_within: SignedDuration,
        patience: Duration,
        metrics: NodeMetrics,
    ) -> Self {
        Self {
            store,
            replica: replica.into(),
            connected_within,
            patience,
            metrics,
            permits: FairSemaphore::with_share(MAX_PENDING_BYTES, MAX_REPORT),
            registry: Arc::default(),
            dirty: Arc::default(),
        }
    }

    /// Notes that a stream was opened as that node.
    pub fn open(&self, caller: Caller, node_id: NodeId, info: &pb::NodeInfo) -> OpenStream {
        let key = (node_id, caller);
        {
            let mut registry = self.lock();
            let open = registry.open.entry(key.clone()).or_default();
            open.streams += 1;
            open.transient = info.transient;
            let pending = registry.pending.entry(key.clone()).or_default();
            pending.connection = Some(Connection::Opened(Opening {
                info: info.encode_to_vec(),
                at: Instant::now(),
            }));
        }
        self.dirty.notify_one();
        OpenStream {
            nodes: self.clone(),
            key,
        }
    }

    /// Notes a report if the caller has opened a stream as this node. Until written, it counts against the client's
    /// permits.
    pub async fn report(
        &self,
        (caller, client): (Caller, ClientKey),
        node_id: NodeId,
        report: &pb::ReportStatusRequest,
    ) -> Result<(), Error> {
        let key = (node_id, caller);
        if !self.knows(&key) {
            let callers = self.store.node_callers(&key.0).await?;
            if !callers.iter().any(|caller| caller == key.1.as_str()) {
                return Err(not_subscribed(&key.0));
            }
        }
        let bytes = kept(report);
        {
            let mut registry = self.lock();
            if let (Some(open), Some(applied)) = (registry.open.get_mut(&key), &report.applied) {
                // Epochs were validated on parsing; a malformed one would count as nothing reported.
                open.applied = Epoch::parse(&applied.epoch)
                    .ok()
                    .map(|epoch| (epoch, applied.revision));
            }
            let none = || self.permits.empty_permit(client);
            if !registry.wait(&key, bytes, none) {
                return Err(too_many_reports());
            }
        }
        self.metrics.reported(report);
        self.dirty.notify_one();
        Ok(())
    }

    /// Refuses a report of something that this epoch of the log does not have yet. A replica may lag behind others: the
    /// database is asked only where the replica, which is at this epoch and revision, does not have it either, and where it
    /// does not answer, nothing is refused.
    pub async fn check_applied(
        &self,
        report: &pb::ReportStatusRequest,
        (epoch, revision): (Epoch, i64),
    ) -> Result<(), Error> {
        let Some(applied) = &report.applied else {
            return Ok(());
        };
        let is_ahead = |epoch: Epoch, revision| {
            Epoch::parse(&applied.epoch).is_ok_and(|applied_epoch| applied_epoch == epoch)
                && applied.revision > revision
        };
        if !is_ahead(epoch, revision) {
            return Ok(());
        }
        let head = match timeout(self.patience, self.store.head()).await {
            Ok(Ok(head)) => head,
            Ok(Err(StoreError::Unavailable(_))) | Err(_) => return Ok(()),
            Ok(Err(error)) => return Err(error.into()),
        };
        if is_ahead(head.epoch, head.revision) {
            let why = format!("is ahead of the newest revision, {}", head.revision);
            return Err(Error::invalid("applied.revision", why));
        }
        Ok(())
    }

    fn knows(&self, key: &NodeKey) -> bool {
        let registry = self.lock();
        registry.open.contains_key(key) || registry.pending.contains_key(key)
    }

    /// Waits until there is something to write.
    pub async fn dirty(&self) {
        self.dirty.notified().await;
    }

    /// The largest number of revisions a node is behind this one, among nodes that have a stream open here and have
    /// reported; 0 if there are none.
    pub fn furthest_behind(&self, (epoch, revision): (Epoch, i64)) -> i64 {
        let behind = |(reported, applied): (Epoch, i64)| {
            // A revision of another epoch counts for nothing.
            let applied = if reported == epoch { applied } else { 0 };
            (revision - applied).max(0)
        };
        let registry = self.lock();
        let reported = registry.open.values().filter_map(|open| open.applied);
        reported.map(behind).max().unwrap_or(0)
    }

    /// The number of nodes with a stream open here.
    pub fn connected(&self) -> usize {
        self.lock().open.len()
    }

    /// Writes what is pending and returns the number of nodes written. What could not be written stays pending, unless
    /// something newer has replaced it.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let mut written = 0;
        loop {
            let (writes, places) = self.take_pending();
            if writes.is_empty() {
                return Ok(written);
            }
            fail_points::NODES_TAKEN.pass();
            if let Err(error) = self.write(&writes).await {
                self.put_back(writes, places);
                self.dirty.notify_one();
                return Err(error);
            }
            written += writes.len();
        }
    }

    async fn write(&self, writes: &[NodeWrite]) -> Result<(), StoreError> {
        let mut work = self.store.begin().await?;
        work.nodes().write(&self.replica, writes).await?;
        fail_points::NODES_WRITTEN.pass();
        work.commit().await
    }

    /// Records that this replica's streams are still open.
    pub async fn heartbeat(&self) -> Result<(), StoreError> {
        let mut work = self.store.begin().await?;
        work.nodes().touch(&self.replica).await?;
        work.commit().await
    }

    /// Takes the next nodes to write, and the permit each one's report holds until it is written.
    fn take_pending(&self) -> (Vec<NodeWrite>, Vec<Option<Permit>>) {
        let mut registry = self.lock();
        let (mut writes, mut places) = (Vec::new(), Vec::new());
        while writes.len() < WRITE_PAGE
            && let Some(((node_id, caller), pending)) = registry.pending.pop_first()
        {
            let (report, place) = pending
                .report
                .map(|Report { bytes, place }| (bytes, place))
                .unzip();
            writes.push(NodeWrite {
                node_id,
                caller,
                connection: pending.connection,
                report,
            });
            places.push(place);
        }
        (writes, places)
    }

    fn put_back(&self, writes: Vec<NodeWrite>, places: Vec<Option<Permit>>) {
        let mut registry = self.lock();
        for (write, place) in writes.into_iter().zip(places) {
            let key = (write.node_id, write.caller);
            let newer = registry.pending.entry(key).or_default();
            newer.connection = merge(write.connection, newer.connection.take());
            if newer.report.is_none() {
                let report = write.report.zip(place);
                newer.report = report.map(|(bytes, place)| Report { bytes, place });
            }
        }
    }

    /// A page of the whole fleet, or of what the query picks from it.
    pub async fn list(&self, query: ListNodes) -> Result<pb::ListNodesResponse, Error> {
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let read_at_once = if query.filter.is_any() {
            query.limit
        } else {
            READ_PAGE
        };
        let (mut nodes, mut places) = (Vec::new(), Vec::new());
        let mut after = query.after;
        let mut answer = pb::ListNodesResponse::default();
        let mut more = true;
        for _ in 0..READ_PAGES {
            let page = self
                .store
                .list_nodes(after.take(), read_at_once.into(), query.seen_within)
                .await?;
            let alive_since = self.alive_since(&page);
            answer.head_revision = page.head.revision;
            more = page.more;
            for row in page.nodes {
                if nodes.len() >= wanted {
                    more = true;
                    break;
                }
                let place = (row.node_id.clone(), row.caller.clone());
                let node = render(row, page.head, alive_since).map_err(StoreError::from)?;
                if query.filter.has(&node) {
                    nodes.push(node);
                    places.push(place.clone());
                }
                after = Some(place);
            }
            if !more || nodes.len() >= wanted {
                break;
            }
        }
        let (nodes, was_cut) = page::cut(nodes);
        if was_cut {
            after = places.into_iter().take(nodes.len()).next_back();
        }
        if let Some((id, caller)) = after.filter(|_| more || was_cut) {
            let place = [id.as_bytes(), &[0], caller.as_bytes()].concat();
            answer.next_page_token = page::token(query.hash, &place);
        }
        answer.nodes = nodes;
        Ok(answer)
    }

    /// Whoever was heard from since then is connected, in microseconds by the database's clock.
    fn alive_since(&self, page: &NodePage) -> i64 {
        let within = i64::try_from(self.connected_within.as_micros()).unwrap_or(i64::MAX);
        page.now.saturating_sub(within)
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        {
            let mut registry = self.nodes.lock();
            let mut ended = Connection::Closed;
            if let Some(open) = registry.open.get_mut(&self.key) {
                open.streams -= 1;
                if open.streams > 0 {
                    // Another stream of the same node is open here.
                    return;
                }
                if open.transient {
                    ended = Connection::Left;
                }
                registry.open.remove(&self.key);
            }
            let waiting = registry.pending.len();
            let pending = registry.pending.entry(self.key.clone()).or_default();
            pending.connection = merge(pending.connection.take(), Some(ended));
            let has_gone = matches!(
                pending.connection,
                Some(Connection::OpenedAndClosed(_) | Connection::Left)
            );
            let is_forgotten = waiting > MAX_PENDING && has_gone;
            if is_forgotten {
                registry.pending.remove(&self.key);
            }
        }
        self.nodes.dirty.notify_one();
    }
}

/// Which nodes to list.
#[derive(Debug, Clone)]
pub struct ListNodes {
    /// Tells this query's page tokens from those of others.
    pub hash: QueryHash,
    /// At most this many.
    pub limit: u32,
    /// After this id and caller.
    pub after: Option<(String, String)>,
    /// Only nodes heard from within this time.
    pub seen_within: SignedDuration,
    /// Only these of them.
    pub filter: NodeFilter,
}

/// Which nodes are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// In this state; unspecified: in any.
    pub state: pb::NodeState,
    /// In this zone; empty: in any.
    pub zone: String,
    /// With these labels; without a value: with any.
    pub labels: Vec<(String, Option<String>)>,
}

impl NodeFilter {
    fn is_any(&self) -> bool {
        *self == Self::default()
    }

    fn has(&self, node: &pb::Node) -> bool {
        let absent = pb::NodeInfo::default();
        let info = node.info.as_ref().unwrap_or(&absent);
        let is_in_state = match self.state {
            pb::NodeState::Unspecified => true,
            pb::NodeState::Behind => node.lag_revisions > 0,
            pb::NodeState::Disconnected => !node.connected,
            pb::NodeState::Rejecting => node.rejected_count > 0,
        };
        let has_label = |(key, value): &(String, Option<String>)| {
            let known = info.labels.get(key);
            known.is_some_and(|known| value.as_ref().is_none_or(|value| value == known))
        };
        is_in_state && (self.zone.is_empty() || self.zone == info.zone) && self.labels.iter().all(has_label)
    }
}

/// Merges two changes of a connection, in order, into one to write.
fn merge(first: Option<Connection>, then: Option<Connection>) -> Option<Connection> {
    match (first, then) {
        // Closed before the opening was written: the node must still become known.
        (
            Some(Connection::Opened(opening) | Connection::OpenedAndClosed(opening)),
            Some(Connection::Closed),
        ) => Some(Connection::OpenedAndClosed(opening)),
        (first, then) => then.or(first),
    }
}

/// A report as stored, cut to [`MAX_REPORT`].
fn kept(report: &pb::ReportStatusRequest) -> Vec<u8> {
    let whole = report.encode_to_vec();
    if whole.len() <= MAX_REPORT {
        return whole;
    }
    let mut kept = pb::ReportStatusRequest {
        rejected: Vec::new(),
        ..report.clone()
    };
    let mut length = kept.encoded_len();
    for rejected in &report.rejected {
        let part = rejected.encoded_len();
        // Including its tag and length.
        length += 1 + prost::length_delimiter_len(part) + part;
        if length > MAX_REPORT {
            break;
        }
        kept.rejected.push(rejected.clone());
    }
    kept.encode_to_vec()
}

fn too_many_reports() -> Error {
    Error::ResourceExhausted {
        reason: "TOO_MANY_REPORTS",
        message: "too many reports are waiting to be stored on this replica".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

/// The same whether the node has other callers or none: a caller must not learn who else subscribes.
fn not_subscribed(node_id: &NodeId) -> Error {
    Error::PermissionDenied {
        reason: "NODE_NOT_SUBSCRIBED",
        message: format!(
            "the caller has not opened a stream as node {:?}",
            node_id.as_str()
        ),
    }
}

fn render(row: NodeRow, head: Head, alive_since: i64) -> Result<pb::Node, CorruptRow> {
    let corrupt = |column, error: prost::DecodeError| CorruptRow::new("nodes", column, &row.node_id, error);
    let info = pb::NodeInfo::decode(row.info.as_slice()).map_err(|error| corrupt("info", error))?;
    let report =
        pb::ReportStatusRequest::decode(row.report.as_slice()).map_err(|error| corrupt("report", error))?;
    let lag_revisions = report.applied.as_ref().map_or(0, |applied| {
        // A revision of another epoch counts for nothing.
        let same_epoch = applied.epoch == head.epoch.to_string();
        let applied = if same_epoch { applied.revision } else { 0 };
        (head.revision - applied).max(0)
    });
    Ok(pb::Node {
        info: Some(info),
        caller: row.caller,
        connected: row.connected && row.seen_at >= alive_since,
        applied: report.applied,
        lag_revisions,
        rejected: report.rejected,
        rejected_count: report.rejected_count,
        delays: report.delays,
        problem: report.problem,
        connected_at: Some(timestamp_from_micros(row.connected_at)),
        seen_at: Some(timestamp_from_micros(row.seen_at)),
    })
}
