//! The revision log as the truth: the state of every key at every revision.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Held, Key, Stored, stored::StoredLog};

/// Everything the database knows of the log, with former epochs if the run changed the epoch.
#[derive(Debug, Clone)]
pub struct RevisionLog {
    /// The database's current epoch.
    pub current: Life,
    /// Earlier epochs, as far as the run noted them.
    pub former: Vec<Life>,
}

/// The log under one epoch.
#[derive(Debug, Clone)]
pub struct Life {
    /// The epoch's id.
    pub epoch: String,
    /// Its newest known revision.
    pub head: i64,
    /// Deletions at or below this revision may have been forgotten.
    pub horizon: i64,
    /// Revisions beyond `head` existed and are lost: what was streamed of them can't be judged.
    pub tail_lost: bool,
    versions: BTreeMap<Key, Vec<Version>>,
    changed: BTreeMap<i64, Vec<Key>>,
}

#[derive(Debug, Clone)]
struct Version {
    revision: i64,
    /// `None` for a deletion.
    value: Option<Vec<u8>>,
}

/// The state that one revision gave a key: a value, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State<'a> {
    pub(super) revision: i64,
    pub(super) value: Option<&'a [u8]>,
}

impl RevisionLog {
    /// Reads the log. Call this once writing has stopped: anything streamed after the read is ahead of it.
    pub async fn read(stored: &Stored) -> Self {
        Self {
            current: Life::from(stored.log().await),
            former: Vec::new(),
        }
    }

    /// Adds an epoch that ended before the current one began, read while it lasted.
    #[must_use]
    pub fn with_former(mut self, life: Life) -> Self {
        self.former.push(life);
        self
    }

    /// Adds a former epoch that the current one continues from `revision`: whatever it had beyond is lost, as in a
    /// failover.
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
        // In revision order, so that each key's versions are too.
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

    /// The key's state at a revision; `None` if it had none by then.
    pub(super) fn newest(&self, key: &Key, at: i64) -> Option<State<'_>> {
        let versions = self.versions.get(key)?;
        let after = versions.partition_point(|version| version.revision <= at);
        versions.get(after.checked_sub(1)?).map(Version::state)
    }

    /// The state that this very revision gave the key.
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

    /// The number of changes of matching keys in (from, to].
    pub(super) fn count(&self, from: i64, to: i64, matches: impl Fn(&Key) -> bool) -> usize {
        if from >= to {
            return 0;
        }
        let changes = self.changed.range(from + 1..=to).flat_map(|(_, keys)| keys);
        changes.filter(|key| matches(key)).count()
    }

    /// All matching resources that existed at a revision.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "fund-admin".into(),
            kind: 2,
            key: name.into(),
            qualifier: String::new(),
            user_id: String::new(),
        }
    }

    fn log() -> RevisionLog {
        let stored = StoredLog {
            epoch: "now".into(),
            head: 4,
            horizon: 0,
            changes: vec![
                (1, key("a"), Some(b"1".to_vec())),
                (2, key("b"), Some(b"1".to_vec())),
                (3, key("a"), None),
                (4, key("a"), Some(b"2".to_vec())),
            ],
        };
        RevisionLog {
            current: Life::from(stored),
            former: Vec::new(),
        }
    }

    #[test]
    fn a_key_has_at_each_revision_its_latest_value() {
        let life = log().current;
        let values = [
            None,
            Some(Some(b"1".as_slice())),
            Some(Some(b"1")),
            Some(None),
            Some(Some(b"2")),
        ];
        for (at, expected) in (0..).zip(values) {
            let newest = life.newest(&key("a"), at).map(|state| state.value);
            assert_eq!(newest, expected, "at {at}");
        }
        assert_eq!(
            life.version(&key("a"), 2),
            None,
            "changed by another revision only"
        );
        assert_eq!(life.at(3, |_| true).into_keys().collect::<Vec<_>>(), [key("b")]);
        assert_eq!(life.changed(2, 4), BTreeSet::from([&key("a")]));
        assert_eq!(life.count(0, 4, |known| *known == key("a")), 3);
        assert_eq!(life.count(4, 4, |_| true), 0);
    }

    #[test]
    fn a_former_epoch_that_lost_its_tail_is_known_only_up_to_there() {
        let log = log().with_lost_tail("before", 2);
        let before = log.life("before").expect("it was added");
        assert_eq!((before.head, before.tail_lost), (2, true));
        assert_eq!(before.newest(&key("a"), 4).map(|state| state.revision), Some(1));
        assert_eq!(log.life("now").map(|life| life.head), Some(4));
        assert!(log.life("never").is_none());
    }
}
