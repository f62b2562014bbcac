//! The revision log as the truth: what every key was at every revision.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Held, Key, Stored, stored::StoredLog};

/// All that the database knows of the log, with former lives of it where a run changed the epoch.
#[derive(Debug, Clone)]
pub struct RevisionLog {
    /// The life that the database is in.
    pub current: Life,
    /// Those before, as far as the run noted them.
    pub former: Vec<Life>,
}

/// One life of the log: the revisions under one epoch.
#[derive(Debug, Clone)]
pub struct Life {
    /// Its epoch.
    pub epoch: String,
    /// Its newest revision, as far as it is known.
    pub head: i64,
    /// Deletions at or below it may have been forgotten.
    pub horizon: i64,
    /// It had revisions beyond `head` that are lost: what was streamed of them can't be judged.
    pub tail_lost: bool,
    versions: BTreeMap<Key, Vec<Version>>,
    changed: BTreeMap<i64, Vec<Key>>,
}

#[derive(Debug, Clone)]
struct Version {
    revision: i64,
    /// None: deleted.
    value: Option<Vec<u8>>,
}

/// What a key was made by one revision: its value, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State<'a> {
    pub(super) revision: i64,
    pub(super) value: Option<&'a [u8]>,
}

impl RevisionLog {
    /// Reads it. To be done once nobody writes any more: what is streamed after it was read is ahead of it.
    pub async fn read(stored: &Stored) -> Self {
        Self {
            current: Life::from(stored.log().await),
            former: Vec::new(),
        }
    }

    /// Adds a life that ended before the current one began, read while it lasted.
    #[must_use]
    pub fn with_former(mut self, life: Life) -> Self {
        self.former.push(life);
        self
    }

    /// Adds a former life that the current one continues from `revision` on: what it had beyond is lost, as in a failover.
    #[must_use]
    pub fn with_lost_tail(self, epoch: &str, revision: i64) -> Self {
        let life = Life {
            epoch: epoch.to_owned(),
            tail_lost: true,
            ..self.current.up_to(revision)
        };
        self.with_former(life)
    }

    pub(super) fn life(&self, epoch: &str) -> Option<&Life> {
        std::iter::once(&self.current)
            .chain(&self.former)
            .find(|life| life.epoch == epoch)
    }
}

impl From<StoredLog> for Life {
    fn from(stored: StoredLog) -> Self {
        let StoredLog {
            epoch,
            head,
            horizon,
            changes,
        } = stored;
        let mut versions: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        let mut changed: BTreeMap<i64, Vec<Key>> = BTreeMap::new();
        // In the order of revisions, so that each key's versions are too.
        for (revision, key, value) in changes {
            changed.entry(revision).or_default().push(key.clone());
            versions.entry(key).or_default().push(Version { revision, value });
        }
        Self {
            epoch,
            head,
            horizon,
            tail_lost: false,
            versions,
            changed,
        }
    }
}

impl Life {
    fn up_to(&self, head: i64) -> Self {
        let mut life = self.clone();
        life.head = head;
        life.horizon = life.horizon.min(head);
        life.changed.retain(|revision, _| *revision <= head);
        life.versions.retain(|_, versions| {
            versions.retain(|version| version.revision <= head);
            !versions.is_empty()
        });
        life
    }

    /// What the key was at that revision; none if it had never been anything.
    pub(super) fn newest(&self, key: &Key, at: i64) -> Option<State<'_>> {
        let versions = self.versions.get(key)?;
        let after = versions.partition_point(|version| version.revision <= at);
        versions.get(after.checked_sub(1)?).map(Version::state)
    }

    /// What that revision itself made of the key.
    pub(super) fn version(&self, key: &Key, revision: i64) -> Option<State<'_>> {
        self.newest(key, revision)
            .filter(|state| state.revision == revision)
    }

    /// The keys that changed in (from, to].
    pub(super) fn changed(&self, from: i64, to: i64) -> BTreeSet<&Key> {
        if from >= to {
            return BTreeSet::new();
        }
        self.changed
            .range(from + 1..=to)
            .flat_map(|(_, keys)| keys)
            .collect()
    }

    /// How many changes of keys that match lie in (from, to].
    pub(super) fn count(&self, from: i64, to: i64, matches: impl Fn(&Key) -> bool) -> usize {
        if from >= to {
            return 0;
        }
        let changes = self.changed.range(from + 1..=to).flat_map(|(_, keys)| keys);
        changes.filter(|key| matches(key)).count()
    }

    /// All that there was at that revision and matches.
    pub(super) fn at(&self, revision: i64, matches: impl Fn(&Key) -> bool) -> BTreeMap<Key, Held> {
        let known = self.versions.keys().filter(|key| matches(key));
        known
            .filter_map(|key| Some((key.clone(), self.newest(key, revision)?.held()?)))
            .collect()
    }
}

impl Version {
    fn state(&self) -> State<'_> {
        State {
            revision: self.revision,
            value: self.value.as_deref(),
        }
    }
}

impl State<'_> {
    pub(super) fn held(self) -> Option<Held> {
        self.value.map(|value| Held {
            revision: self.revision,
            value: value.to_vec(),
        })
    }
}
