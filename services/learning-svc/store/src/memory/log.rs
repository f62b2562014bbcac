//! The log's side of the store in memory: revisions as streamed, and nodes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use emend_core::{Epoch, InstallationId, NodeId, OperationId, Revision};
use emend_store::simulation::conflict;
use emend_stream::log::{Head, Loaded, LoggedChange, LoggedRevision};
use jiff::SignedDuration;
use tokio::time::Instant;

use super::{Defect, MemoryStore, Result, State, locks::Row, micros, reads, tables::Tables};
use crate::{
    log::{LogPage, LogStore, PageSize, RevisionFilter, RevisionRecord, Sink},
    nodes::{Connection, NodeCounts, NodePage, NodeRow, NodeStore, NodeWrite, Opening},
};

/// Search nodes as last seen.
#[derive(Default, Clone)]
pub(super) struct Nodes {
    /// Each with the replica that holds its stream.
    rows: BTreeMap<(String, String), (NodeRow, String)>,
    /// When each node opened the stream that counts: the store's own clock may stand still between openings.
    opened: BTreeMap<(String, String), Instant>,
}

impl MemoryStore {
    /// Changes the head, once its lock is free.
    async fn change_head<T>(
        &self,
        name: &'static str,
        change: impl FnOnce(&mut State, i64) -> Result<T> + Send,
    ) -> Result<T> {
        self.interference.before(name).await?;
        self.answers()?;
        let locks = &self.shared.locks;
        let owner = locks.new_owner();
        // Released even if this future is dropped while waiting.
        let held = Released(self, owner);
        let taken = locks.take(owner, Row::Head).await;
        taken.map_err(|_| conflict("deadlock"))?;
        let answer = {
            let mut state = self.state();
            let now = self.now(&state);
            change(&mut state, now)?
        };
        drop(held);
        self.interference.after(name).await?;
        Ok(answer)
    }
}

struct Released<'a>(&'a MemoryStore, super::locks::Owner);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.shared.locks.release(self.1);
    }
}

/// The newest change of each key.
fn newest(tables: &Tables) -> Vec<LoggedChange> {
    let mut newest = HashMap::new();
    for change in tables.log.values().flat_map(|revision| &revision.changes) {
        let key = (
            change.namespace.as_str(),
            change.kind,
            change.key.as_str(),
            change.qualifier.as_str(),
            change.user_id.as_str(),
        );
        newest.insert(key, change);
    }
    let mut newest: Vec<_> = newest.into_values().cloned().collect();
    newest.sort_by(|a, b| {
        (a.revision, &a.namespace, a.kind, &a.key).cmp(&(b.revision, &b.namespace, b.kind, &b.key))
    });
    newest
}

#[async_trait]
impl LogStore for MemoryStore {
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head> {
        self.call("create_head", |state| {
            Ok(*state.tables.head.get_or_insert(Head {
                epoch,
                installation,
                revision: 0,
                horizon: 0,
            }))
        })
        .await
    }

    async fn find_head(&self) -> Result<Option<Head>> {
        self.call("find_head", |state| Ok(state.tables.head)).await
    }

    async fn head(&self) -> Result<Head> {
        self.call("head", |state| state.tables.head()).await
    }

    async fn load(&self, sink: Sink<'_>) -> Result<Loaded> {
        let (loaded, changes) = self
            .call("load", |state| {
                let head = state.tables.head()?;
                let loaded = Loaded {
                    head,
                    committed_at: state
                        .tables
                        .log
                        .get_max()
                        .map_or(0, |(_, last)| last.committed_at),
                };
                let mut changes = newest(&state.tables);
                changes.retain(|change| change.value.is_some() || change.revision > head.horizon);
                Ok((loaded, changes))
            })
            .await?;
        sink(changes);
        Ok(loaded)
    }

    async fn revisions_after(&self, revision: i64, size: PageSize) -> Result<LogPage> {
        self.call("revisions_after", |state| {
            let log = &state.tables.log;
            let following = log.range(revision.saturating_add(1)..=revision.saturating_add(size.revisions));
            let mut bytes = 0;
            let mut is_full = false;
            let mut revisions: Vec<LoggedRevision> = Vec::new();
            for (_, logged) in following {
                is_full = bytes >= size.bytes && !revisions.is_empty();
                if is_full {
                    break;
                }
                bytes += logged.changes.iter().map(LoggedChange::bytes).sum::<usize>();
                revisions.push(LoggedRevision::clone(logged));
            }
            let mut page = LogPage {
                head: state.tables.head()?,
                anchor: log.get(&revision).map(|logged| logged.committed_at),
                revisions,
                is_full,
            };
            match state.defect {
                Some(Defect::SkipsChanges) if page.revisions.len() > 1 => {
                    page.revisions[0].changes.clear();
                }
                Some(Defect::HidesDeletions) => {
                    for revision in &mut page.revisions {
                        revision.changes.retain(|change| change.value.is_some());
                    }
                }
                _ => {}
            }
            Ok(page)
        })
        .await
    }

    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64> {
        self.change_head("raise_horizon", |state, now| {
            let mut head = state.tables.head()?;
            let cutoff = now.saturating_sub(micros(max_age));
            let log = &state.tables.log;
            let by_age = log
                .values()
                .take_while(|logged| logged.committed_at <= cutoff)
                .last()
                .map_or(0, |logged| logged.revision);
            let by_count = log
                .values()
                .rev()
                .flat_map(|logged| &logged.changes)
                .filter(|change| change.value.is_none() && change.revision > head.horizon)
                .nth(usize::try_from(max_tombstones).unwrap_or(usize::MAX))
                .map_or(0, |change| change.revision);
            head.horizon = head.horizon.max(by_age).max(by_count);
            state.tables.head = Some(head);
            Ok(head.horizon)
        })
        .await
    }

    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch> {
        self.change_head("mint_epoch", |state, _| {
            let mut head = state.tables.head()?;
            if head.epoch == old && state.defect != Some(Defect::MintsNoEpoch) {
                head.epoch = new;
            }
            state.tables.head = Some(head);
            Ok(head.epoch)
        })
        .await
    }

    async fn revisions_of(
        &self,
        operation: OperationId,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Revision>> {
        self.call("revisions_of", |state| {
            let revisions = state.tables.revisions.iter();
            let found = revisions
                .filter(|(revision, (write, _))| **revision > after && write.operation == Some(operation));
            Ok(found
                .map(|(revision, _)| *revision)
                .take(limit as usize)
                .collect())
        })
        .await
    }

    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)> {
        self.call("list_revisions", |state| {
            reads::list_revisions(state, filter, before, limit)
        })
        .await
    }
}

#[async_trait]
impl NodeStore for MemoryStore {
    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>> {
        self.call("node_callers", |state| {
            let callers = state.nodes.rows.keys().filter(|(id, _)| id == node_id.as_str());
            Ok(callers.map(|(_, caller)| caller.clone()).collect())
        })
        .await
    }

    async fn list_nodes(
        &self,
        after: Option<(String, String)>,
        limit: i64,
        seen_within: SignedDuration,
    ) -> Result<NodePage> {
        let clock = Arc::clone(&self.shared.clock);
        self.call("list_nodes", |state| {
            let now = clock.now().as_microsecond() + state.clock_offset;
            let since = now - micros(seen_within);
            let after = after.unwrap_or_default();
            let seen = state
                .nodes
                .rows
                .iter()
                .filter(|(key, (row, _))| **key > after && row.seen_at >= since);
            let mut page = NodePage::begin(state.tables.head()?, now);
            for (_, (row, _)) in seen {
                if !page.take(row.clone(), limit) {
                    break;
                }
            }
            Ok(page)
        })
        .await
    }

    async fn count_nodes(
        &self,
        connected_within: SignedDuration,
        seen_within: SignedDuration,
    ) -> Result<NodeCounts> {
        let clock = Arc::clone(&self.shared.clock);
        self.call("count_nodes", |state| {
            let now = clock.now().as_microsecond() + state.clock_offset;
            let seen = |row: &NodeRow, within| row.seen_at >= now - micros(within);
            let mut counts = NodeCounts::default();
            for (row, _) in state
                .nodes
                .rows
                .values()
                .filter(|(row, _)| seen(row, seen_within))
            {
                if row.connected && seen(row, connected_within) {
                    counts.connected += 1;
                } else {
                    counts.disconnected += 1;
                }
            }
            Ok(counts)
        })
        .await
    }
}

/// A change of nodes.
#[derive(Debug, Clone)]
pub(super) enum NodeChange {
    /// What a replica learned about one.
    Write(String, NodeWrite),
    /// A replica still holds the streams that it opened.
    Touch(String),
    /// Those not heard of for that long are forgotten.
    Forget(SignedDuration),
}

impl Nodes {
    /// Applies a change at a time of the database. Returns how many nodes were forgotten.
    pub(super) fn apply(&mut self, change: &NodeChange, now: i64) -> u64 {
        let before = self.rows.len();
        match change {
            NodeChange::Write(replica, write) => {
                self.write(replica, write, now);
                return 0;
            }
            NodeChange::Touch(replica) => {
                for (row, by) in self.rows.values_mut() {
                    if row.connected && by == replica {
                        row.seen_at = now;
                    }
                }
            }
            NodeChange::Forget(unseen_for) => {
                let since = now - micros(*unseen_for);
                self.rows.retain(|_, (row, _)| row.seen_at >= since);
            }
        }
        (before - self.rows.len()) as u64
    }

    fn write(&mut self, replica: &str, write: &NodeWrite, now: i64) {
        let key = (
            write.node_id.as_str().to_owned(),
            write.caller.as_str().to_owned(),
        );
        let opening = match &write.connection {
            Some(Connection::Opened(opening) | Connection::OpenedAndClosed(opening)) => Some(opening),
            Some(Connection::Left) => {
                if self.rows.get(&key).is_some_and(|(_, by)| by == replica) {
                    self.rows.remove(&key);
                }
                return;
            }
            Some(Connection::Closed) | None => None,
        };
        let counts = |opening: &&Opening| {
            let held = self.rows.get(&key).is_some_and(|(_, by)| by == replica);
            held || self.opened.get(&key).is_none_or(|at| *at <= opening.at)
        };
        if let Some(opening) = opening.filter(counts) {
            self.opened.insert(key.clone(), opening.at);
            let (row, by) = self.rows.entry(key.clone()).or_insert_with(|| {
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
        let Some((row, by)) = self.rows.get_mut(&key) else {
            return;
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
}

/// How the contract suite and the stream's tests write to the log and damage it.
#[cfg(any(test, feature = "testing"))]
#[async_trait]
impl crate::log::testing::TestLog for MemoryStore {
    async fn append_aged(&self, changes: &[crate::log::testing::Written], age: SignedDuration) -> i64 {
        let mut state = self.state();
        state.clock_offset += 1;
        let committed_at = self.now(&state) - micros(age);
        let mut head = state.tables.head().expect("the log has a head");
        head.revision += 1;
        state.tables.head = Some(head);
        let logged = LoggedRevision {
            revision: head.revision,
            committed_at,
            changes: changes
                .iter()
                .map(|change| change.logged(head.revision, committed_at))
                .collect(),
        };
        state.tables.log.insert(head.revision, Arc::new(logged));
        head.revision
    }

    async fn lose_above(&self, revision: i64) {
        let mut state = self.state();
        state.tables.log = state.tables.log.split(&(revision + 1)).0;
        let mut head = state.tables.head().expect("the log has a head");
        head.revision = revision;
        state.tables.head = Some(head);
    }
}

#[cfg(any(test, feature = "testing"))]
impl MemoryStore {
    /// Removes one revision from the middle of the log.
    pub fn tear(&self, revision: i64) {
        self.state().tables.log.remove(&revision);
    }

    /// Drops the first value of a revision and keeps its checksum, as where a window of ratings decides.
    pub fn drop_first_value(&self, revision: i64) {
        let mut state = self.state();
        let logged = state
            .tables
            .log
            .get_mut(&revision)
            .expect("the log has the revision");
        Arc::make_mut(logged).changes[0].value = Some(bytes::Bytes::new());
    }

    /// Puts another installation's log in the place of this one.
    pub fn replace_installation(&self, installation: InstallationId) {
        let mut state = self.state();
        let head = state.tables.head.expect("the log has a head");
        state.tables.head = Some(Head { installation, ..head });
    }
}

#[cfg(test)]
mod contract {
    use crate::memory::open_for_test;

    crate::log::suite::stamp!(open_for_test());
    crate::nodes::suite::stamp!(open_for_test());
}
