//! A log in memory, for the stream's tests: it keeps the same contract as the databases, and can be made to lag or fail.

mod client;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use emend_core::{Epoch, NodeId};
use emend_runtime::{Entropy, ManualClock, store::StoreError};
use jiff::SignedDuration;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::client::{Client, Held, Key, covered, model};
use super::{Settings, Stream};
use crate::store::log::{
    Connection, Head, Loaded, LogPage, LogStore, LoggedChange, LoggedRevision, NodePage, NodeRow, NodeWrite,
    Opening, Sink,
    suite::{TestLog, Written, stamp},
};

#[derive(Debug)]
struct Inner {
    head: Option<Head>,
    revisions: Vec<LoggedRevision>,
    /// With the replica that holds its stream.
    nodes: BTreeMap<(String, String), (NodeRow, String)>,
    /// When each node opened the stream that counts: this log's own clock stands still while streams are opened.
    opened: BTreeMap<(String, String), Instant>,
    now: i64,
    failing: bool,
}

/// The log. Clones share it; several streams on one are replicas on one database.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLog(Arc<Mutex<Inner>>);

stamp!(async { Some((MemoryLog::new(), ())) });

impl MemoryLog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            head: None,
            revisions: Vec::new(),
            nodes: BTreeMap::new(),
            opened: BTreeMap::new(),
            now: 1_767_225_600_000_000,
            failing: false,
        })))
    }

    /// From now on every method fails, or none.
    pub(crate) fn fail(&self, failing: bool) {
        self.lock().failing = failing;
    }

    /// Moves the database's clock.
    pub(crate) fn advance(&self, step: SignedDuration) {
        self.lock().now += micros(step);
    }

    /// Takes one revision out of the middle.
    pub(crate) fn tear(&self, revision: i64) {
        self.lock().revisions.retain(|logged| logged.revision != revision);
    }

    /// What a client of everything holds at a revision.
    pub(crate) fn model(&self, revision: i64) -> BTreeMap<Key, Held> {
        model(
            self.lock()
                .revisions
                .iter()
                .take_while(|logged| logged.revision <= revision),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    fn open(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let inner = self.lock();
        if inner.failing {
            return Err(StoreError::Unavailable(sqlx::Error::PoolClosed));
        }
        Ok(inner)
    }
}

fn micros(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap()
}

impl Inner {
    fn head(&self) -> Head {
        self.head.expect("create_head comes first")
    }

    /// The newest change of every key.
    fn newest(&self) -> Vec<LoggedChange> {
        let mut newest = HashMap::new();
        for change in self.revisions.iter().flat_map(|revision| &revision.changes) {
            let key = (
                change.namespace.clone(),
                change.kind,
                change.key.clone(),
                change.qualifier.clone(),
                change.user_id.clone(),
            );
            newest.insert(key, change.clone());
        }
        newest.into_values().collect()
    }
}

#[async_trait]
impl TestLog for MemoryLog {
    async fn append_aged(&self, changes: &[Written], age: SignedDuration) -> i64 {
        let mut inner = self.lock();
        inner.now += 1;
        let committed_at = inner.now - micros(age);
        let mut head = inner.head();
        head.revision += 1;
        inner.head = Some(head);
        inner.revisions.push(LoggedRevision {
            revision: head.revision,
            committed_at,
            changes: changes
                .iter()
                .map(|change| change.logged(head.revision, committed_at))
                .collect(),
        });
        head.revision
    }

    async fn lose_above(&self, revision: i64) {
        let mut inner = self.lock();
        inner.revisions.retain(|logged| logged.revision <= revision);
        let mut head = inner.head();
        head.revision = revision;
        inner.head = Some(head);
    }
}

#[async_trait]
impl LogStore for MemoryLog {
    async fn create_head(&self, epoch: Epoch) -> Result<(), StoreError> {
        let mut inner = self.open()?;
        inner.head.get_or_insert(Head {
            epoch,
            revision: 0,
            horizon: 0,
        });
        Ok(())
    }

    async fn head(&self) -> Result<Head, StoreError> {
        Ok(self.open()?.head())
    }

    async fn load(&self, sink: Sink<'_>) -> Result<Loaded, StoreError> {
        let inner = self.open()?;
        let head = inner.head();
        for change in inner.newest() {
            if change.value.is_some() || change.revision > head.horizon {
                sink(change);
            }
        }
        Ok(Loaded {
            head,
            committed_at: inner.revisions.last().map_or(0, |last| last.committed_at),
        })
    }

    async fn revisions_after(&self, revision: i64, limit: i64) -> Result<LogPage, StoreError> {
        let inner = self.open()?;
        Ok(LogPage {
            head: inner.head(),
            anchor: inner
                .revisions
                .iter()
                .find(|logged| logged.revision == revision)
                .map(|logged| logged.committed_at),
            revisions: inner
                .revisions
                .iter()
                .filter(|logged| logged.revision > revision && logged.revision <= revision + limit)
                .cloned()
                .collect(),
        })
    }

    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64, StoreError> {
        let mut inner = self.open()?;
        let mut head = inner.head();
        let cutoff = inner.now - micros(max_age);
        let by_age = inner
            .revisions
            .iter()
            .take_while(|logged| logged.committed_at <= cutoff)
            .last()
            .map_or(0, |logged| logged.revision);
        let by_count = inner
            .revisions
            .iter()
            .rev()
            .flat_map(|logged| &logged.changes)
            .filter(|change| change.value.is_none() && change.revision > head.horizon)
            .nth(usize::try_from(max_tombstones).unwrap())
            .map_or(0, |change| change.revision);
        head.horizon = head.horizon.max(by_age).max(by_count);
        inner.head = Some(head);
        Ok(head.horizon)
    }

    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch, StoreError> {
        let mut inner = self.open()?;
        let mut head = inner.head();
        if head.epoch == old {
            head.epoch = new;
        }
        inner.head = Some(head);
        Ok(head.epoch)
    }

    async fn write_nodes(&self, replica: &str, writes: &[NodeWrite]) -> Result<(), StoreError> {
        let mut inner = self.open()?;
        let now = inner.now;
        for write in writes {
            let key = (
                write.node_id.as_str().to_owned(),
                write.caller.as_str().to_owned(),
            );
            let opening = match &write.connection {
                Some(Connection::Opened(opening) | Connection::OpenedAndClosed(opening)) => Some(opening),
                Some(Connection::Closed) | None => None,
            };
            let counts = |opening: &&Opening| {
                let held = inner.nodes.get(&key).is_some_and(|(_, by)| by == replica);
                held || inner.opened.get(&key).is_none_or(|at| *at <= opening.at)
            };
            if let Some(opening) = opening.filter(counts) {
                inner.opened.insert(key.clone(), opening.at);
                let (row, by) = inner.nodes.entry(key.clone()).or_insert_with(|| {
                    let row = NodeRow {
                        node_id: key.0.clone(),
                        caller: key.1.clone(),
                        info: Vec::new(),
                        report: Vec::new(),
                        connected: true,
                        connected_at: now,
                        seen_at: now,
                    };
                    (row, String::new())
                });
                row.info.clone_from(&opening.info);
                row.connected = true;
                (row.connected_at, row.seen_at) = (now, now);
                replica.clone_into(by);
            }
            let Some((row, by)) = inner.nodes.get_mut(&key) else {
                continue;
            };
            let closed = matches!(
                write.connection,
                Some(Connection::Closed | Connection::OpenedAndClosed(_))
            );
            if closed && by == replica {
                row.connected = false;
                row.seen_at = now;
            }
            if let Some(report) = &write.report {
                row.report.clone_from(report);
                row.seen_at = now;
            }
        }
        Ok(())
    }

    async fn touch_nodes(&self, replica: &str) -> Result<(), StoreError> {
        let mut inner = self.open()?;
        let now = inner.now;
        for (row, by) in inner.nodes.values_mut() {
            if row.connected && by == replica {
                row.seen_at = now;
            }
        }
        Ok(())
    }

    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>, StoreError> {
        let inner = self.open()?;
        let callers = inner.nodes.keys().filter(|(id, _)| id == node_id.as_str());
        Ok(callers.map(|(_, caller)| caller.clone()).collect())
    }

    async fn list_nodes(
        &self,
        after: Option<(String, String)>,
        limit: i64,
        seen_within: SignedDuration,
    ) -> Result<NodePage, StoreError> {
        let inner = self.open()?;
        let since = inner.now - micros(seen_within);
        let after = after.unwrap_or_default();
        Ok(NodePage {
            nodes: inner
                .nodes
                .iter()
                .filter(|(key, (row, _))| **key > after && row.seen_at >= since)
                .take(usize::try_from(limit).unwrap())
                .map(|(_, (row, _))| row.clone())
                .collect(),
            head: inner.head(),
            now: inner.now,
        })
    }

    async fn forget_nodes(&self, unseen_for: SignedDuration) -> Result<u64, StoreError> {
        let mut inner = self.open()?;
        let since = inner.now - micros(unseen_for);
        let before = inner.nodes.len();
        inner.nodes.retain(|_, (row, _)| row.seen_at >= since);
        Ok(u64::try_from(before - inner.nodes.len()).unwrap())
    }
}

/// A replica on the log whose workers are stepped by hand, at the log's head.
pub(crate) async fn replica(log: &MemoryLog, settings: Settings) -> Stream {
    let stream = Stream::new(
        Arc::new(log.clone()),
        settings,
        ManualClock::default().shared(),
        Entropy::seeded(1),
    );
    log.create_head(Epoch(Uuid::from_u128(1))).await.unwrap();
    catch_up(&stream).await;
    stream
}

/// Steps the tailer until it is at the log's head.
pub(crate) async fn catch_up(stream: &Stream) {
    use super::tailer::Tailed;
    while stream.tailer().run_once().await.unwrap() != Tailed::Current {}
}
