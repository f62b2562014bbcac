//! A subscriber that follows the protocol strictly: it applies what it is sent and fails as soon as a guarantee of the
//! stream is broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use emend_core::{
    Digest,
    digest::{Item, value_checksum},
};
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{self as pb, SnapshotReason},
    wire::{self, ChangeKind, Message},
};
use emend_stream::{
    encode::Encoded,
    filter::{Filter, GroupId},
    log::LoggedRevision,
};
use prost::Message as _;

/// Namespace, kind, key, qualifier, user.
pub(crate) type Key = (String, i32, String, String, String);

/// Revision and value.
pub(crate) type Held = (i64, Vec<u8>);

/// What a subscriber that applied these revisions holds.
pub(crate) fn model<'a>(revisions: impl Iterator<Item = &'a LoggedRevision>) -> BTreeMap<Key, Held> {
    let mut held = BTreeMap::new();
    for change in revisions.flat_map(|revision| &revision.changes) {
        let key = (
            change.namespace.clone(),
            change.kind,
            change.key.clone(),
            change.qualifier.clone(),
            change.user_id.clone(),
        );
        match &change.value {
            Some(value) => held.insert(key, (change.revision, value.to_vec())),
            None => held.remove(&key),
        };
    }
    held
}

#[derive(Debug, Default)]
pub(crate) struct Client {
    /// What it answers from.
    pub(crate) held: BTreeMap<Key, Held>,
    /// Where it would resume from.
    pub(crate) cursor: Option<pb::Cursor>,
    /// Every cursor it was given.
    pub(crate) cursors: Vec<pb::Cursor>,
    /// The reasons of the snapshots it was sent.
    pub(crate) snapshots: Vec<SnapshotReason>,
    /// How often it was told that its cursor is good.
    pub(crate) resumed: usize,
    /// How many updates were applied, and in how many parts they came.
    pub(crate) updates: usize,
    pub(crate) parts: usize,
    /// How many changes the updates held.
    pub(crate) changes: usize,
    pub(crate) bookmarks: usize,
    /// How old the server's state was by the last bookmark.
    pub(crate) age: Option<Duration>,
    /// Why the server ended the stream.
    pub(crate) drained: Option<String>,
    staged: Option<(BTreeMap<Key, Held>, pb::SnapshotBegin)>,
    pending: Vec<wire::Change>,
}

impl Client {
    /// Holds nothing and has no cursor.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Holds what it held at that cursor.
    pub(crate) fn at(held: BTreeMap<Key, Held>, cursor: Option<pb::Cursor>) -> Self {
        Self {
            held,
            cursor,
            ..Self::default()
        }
    }

    /// Prepares for a new stream: discards whatever is incomplete and returns the cursor to resume from.
    pub(crate) fn reconnect(&mut self) -> Option<pb::Cursor> {
        self.staged = None;
        self.pending.clear();
        self.drained = None;
        self.cursor.clone()
    }

    /// The revision it is at.
    pub(crate) fn revision(&self) -> i64 {
        self.cursor.as_ref().map_or(0, |cursor| cursor.revision)
    }

    /// Applies one message.
    pub(crate) fn apply(&mut self, message: &Encoded) {
        assert_eq!(self.drained, None, "nothing follows Drain");
        let decoded = wire::SubscribeResponse::decode(message.message()).unwrap();
        match decoded.message.expect("a message") {
            Message::Resumed(resumed) => {
                assert_eq!(resumed.cursor, self.cursor);
                self.resumed += 1;
            }
            Message::SnapshotBegin(begin) => {
                self.snapshots.push(begin.reason());
                self.staged = Some((BTreeMap::new(), begin));
            }
            Message::SnapshotChunk(chunk) => self.stage(chunk),
            Message::SnapshotEnd(end) => {
                let (staged, begin) = self.staged.take().expect("a snapshot that began");
                assert_eq!(i64::try_from(staged.len()).unwrap(), begin.resource_count);
                assert_eq!(end.cursor.as_ref().unwrap().revision, begin.revision);
                self.held = staged;
                self.hand_out(end.cursor.unwrap());
                self.verify_all(&end.digests);
            }
            Message::Update(update) => self.update(update),
            Message::Bookmark(bookmark) => {
                assert!(self.staged.is_none() && self.pending.is_empty());
                let cursor = bookmark.cursor.unwrap();
                assert!(cursor.revision >= self.revision(), "revisions never go back");
                self.hand_out(cursor);
                self.verify_all(&bookmark.digests);
                self.bookmarks += 1;
                self.age = Some(bookmark.age.unwrap().try_into().unwrap());
            }
            Message::Drain(drain) => self.drained = Some(drain.reason),
        }
    }

    fn stage(&mut self, chunk: wire::SnapshotChunk) {
        let (staged, begin) = self.staged.as_mut().expect("a snapshot that began");
        for resource in chunk.into_resources() {
            assert_eq!(value_checksum(&resource.value), resource.value_checksum);
            assert!(resource.revision <= begin.revision);
            let key = key(&resource.key.unwrap());
            assert!(
                staged.last_key_value().is_none_or(|(last, _)| *last < key),
                "in key order, no key twice"
            );
            staged.insert(key, (resource.revision, resource.value.to_vec()));
        }
    }

    fn update(&mut self, update: wire::Update) {
        assert!(self.staged.is_none(), "no update within a snapshot");
        assert_eq!(update.from_revision, self.revision(), "from where the client is");
        assert!(update.to_revision > update.from_revision);
        self.parts += 1;
        self.pending.extend(update.changes);
        assert_eq!(update.cursor.is_some(), update.last);
        if !update.last {
            return;
        }
        let changes = std::mem::take(&mut self.pending);
        let mut before = None;
        let mut seen = BTreeSet::new();
        for change in changes {
            let (key, after) = match change.change.unwrap() {
                ChangeKind::Put(resource) => {
                    assert_eq!(value_checksum(&resource.value), resource.value_checksum);
                    assert_eq!(resource.revision, change.revision);
                    (key(&resource.key.unwrap()), Some(resource.value.to_vec()))
                }
                ChangeKind::Deleted(deleted) => (key(&deleted), None),
            };
            assert!(
                (update.from_revision + 1..=update.to_revision).contains(&change.revision),
                "between from and to"
            );
            let place = Some((change.revision, key.clone()));
            assert!(before < place, "ordered by revision, then by key");
            before = place;
            assert!(seen.insert(key.clone()), "no key twice in one update");
            let known = match after {
                Some(value) => self.held.insert(key, (change.revision, value)),
                None => self.held.remove(&key),
            };
            assert!(
                known.is_none_or(|(revision, _)| revision < change.revision),
                "no change twice"
            );
            self.changes += 1;
        }
        self.updates += 1;
        let cursor = update.cursor.unwrap();
        assert_eq!(cursor.revision, update.to_revision);
        self.hand_out(cursor);
        let digests = self.digests();
        for digest in &update.digests {
            let held = digests.get(&group(digest)).copied().unwrap_or_default();
            assert_eq!(
                (held.count, held.bytes().to_vec()),
                (digest.count, digest.hash.to_vec())
            );
        }
    }

    fn hand_out(&mut self, cursor: pb::Cursor) {
        self.cursors.push(cursor.clone());
        self.cursor = Some(cursor);
    }

    fn verify_all(&self, digests: &[pb::Digest]) {
        let told: BTreeMap<_, _> = digests
            .iter()
            .map(|digest| (group(digest), (digest.count, digest.hash.to_vec())))
            .collect();
        let held = self.digests();
        let held: BTreeMap<_, _> = held
            .into_iter()
            .map(|(group, digest)| (group, (digest.count, digest.bytes().to_vec())))
            .collect();
        assert_eq!(held, told);
    }

    fn digests(&self) -> BTreeMap<(String, i32, bool), Digest> {
        let mut digests = BTreeMap::<_, Digest>::new();
        for ((namespace, kind, key, qualifier, user_id), (revision, value)) in &self.held {
            let group = (namespace.clone(), *kind, !user_id.is_empty());
            digests.entry(group).or_default().add(&Item {
                namespace,
                kind: *kind,
                key,
                qualifier,
                user_id,
                revision: *revision,
                value_checksum: value_checksum(value),
            });
        }
        digests
    }
}

/// The part of it that a filter covers.
pub(crate) fn covered(held: &BTreeMap<Key, Held>, filter: &Filter) -> BTreeMap<Key, Held> {
    let covers = |key: &Key| {
        filter.covers(&GroupId {
            namespace: key.0.as_str().into(),
            kind: key.1,
            user_scoped: !key.4.is_empty(),
        })
    };
    let held = held.iter().filter(|(key, _)| covers(key));
    held.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn key(key: &ResourceKey) -> Key {
    (
        key.namespace.clone(),
        key.kind,
        key.key.clone(),
        key.qualifier.clone(),
        key.user_id.clone(),
    )
}

fn group(digest: &pb::Digest) -> (String, i32, bool) {
    (digest.namespace.clone(), digest.kind, digest.user_scoped)
}
