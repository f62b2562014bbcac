//! The log as it was committed, including revisions lost in a failover: what streams and nodes are checked against.

use std::{collections::BTreeMap, sync::Arc};

use emend_proto::{common::v1::ResourceKey, learning::v1::SubscribeRequest};
use emend_stream::log::{LoggedChange, LoggedRevision};
use learning_store::memory::{Backup, MemoryStore};

/// Namespace, kind, key, qualifier, user.
pub(crate) type Key = (String, i32, String, String, String);
/// The revision and the value's bytes; `None` if it is deleted.
pub(crate) type Held = BTreeMap<Key, (i64, Option<Vec<u8>>)>;

/// What a stream is to show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Empty for all.
    pub(crate) namespaces: Vec<String>,
    /// Empty for all.
    pub(crate) kinds: Vec<i32>,
    pub(crate) user_scoped: bool,
}

impl Filter {
    pub(crate) fn of(request: &SubscribeRequest) -> Self {
        Self {
            namespaces: request.namespaces.clone(),
            kinds: request.kinds.clone(),
            user_scoped: request.include_user_scoped,
        }
    }

    fn covers(&self, change: &LoggedChange) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(&change.namespace))
            && (self.kinds.is_empty() || self.kinds.contains(&change.kind))
            && (self.user_scoped || change.user_id.is_empty())
    }
}

pub(crate) fn key_of(key: &ResourceKey) -> Key {
    (
        key.namespace.clone(),
        key.kind,
        key.key.clone(),
        key.qualifier.clone(),
        key.user_id.clone(),
    )
}

type Log = Vec<Arc<LoggedRevision>>;

/// The log, and the lost logs.
#[derive(Debug)]
pub(crate) struct History {
    store: MemoryStore,
    current: Log,
    lost: Vec<Log>,
}

impl History {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self {
            store,
            current: Vec::new(),
            lost: Vec::new(),
        }
    }

    fn refresh(&mut self) {
        let known = i64::try_from(self.current.len()).expect("short logs");
        self.current.extend(self.store.logged_after(known));
    }

    /// Restores the database from a backup; the log so far becomes a lost one.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.refresh();
        self.store.restore(backup);
        self.lost.push(std::mem::take(&mut self.current));
        self.refresh();
    }

    /// The newest change of every key in (from, to]; `None` if the log does not cover it.
    fn newest(log: &Log, filter: &Filter, from: i64, to: i64) -> Option<Held> {
        if from < 0 || to < from || log.last().map_or(0, |last| last.revision) < to {
            return None;
        }
        let mut newest = Held::new();
        let revisions = log
            .iter()
            .filter(|logged| logged.revision > from && logged.revision <= to);
        for change in revisions.flat_map(|logged| &logged.changes) {
            if filter.covers(change) {
                let key = (
                    change.namespace.clone(),
                    change.kind,
                    change.key.clone(),
                    change.qualifier.clone(),
                    change.user_id.clone(),
                );
                let value = change.value.as_ref().map(|value| value.to_vec());
                newest.insert(key, (change.revision, value));
            }
        }
        Some(newest)
    }

    /// Checks that these are the newest changes of all keys in (from, to].
    pub(crate) fn explains(
        &mut self,
        filter: &Filter,
        from: i64,
        to: i64,
        changes: &Held,
    ) -> Result<(), String> {
        self.refresh();
        let mut logs = std::iter::once(&self.current).chain(&self.lost);
        if logs.any(|log| Self::newest(log, filter, from, to).as_ref() == Some(changes)) {
            return Ok(());
        }
        let expected = Self::newest(&self.current, filter, from, to);
        Err(format!("({from}, {to}] is {changes:?}, should be {expected:?}"))
    }

    /// What a subscriber holds once it has applied everything up to a revision; `None` if the log does not reach it.
    pub(crate) fn held_at(&mut self, filter: &Filter, revision: i64) -> Option<Held> {
        self.refresh();
        let mut held = Self::newest(&self.current, filter, 0, revision)?;
        held.retain(|_, (_, value)| value.is_some());
        Some(held)
    }

    /// Checks that this is everything that existed at a revision.
    pub(crate) fn explains_all(&mut self, filter: &Filter, revision: i64, held: &Held) -> Result<(), String> {
        self.refresh();
        let mut logs = std::iter::once(&self.current).chain(&self.lost);
        let explained = logs.any(|log| {
            Self::newest(log, filter, 0, revision).is_some_and(|mut all| {
                all.retain(|_, (_, value)| value.is_some());
                all == *held
            })
        });
        if explained {
            return Ok(());
        }
        let expected = Self::newest(&self.current, filter, 0, revision);
        Err(format!("at {revision} there is {held:?}, should be {expected:?}"))
    }

    /// The newest revision.
    pub(crate) fn head(&mut self) -> i64 {
        self.refresh();
        self.current.last().map_or(0, |last| last.revision)
    }
}
