//! A model of learning-svc's log: all its states, and the messages a server would send for them.

use std::collections::BTreeMap;

use emend_core::{
    Learned, ResourceValue,
    digest::{Digest, Item, value_checksum},
};
use emend_proto::{
    common::v1::{Cause, ResourceKey},
    learning::v1::{
        self as pb, Bookmark, Cursor, Drain, Resumed, SnapshotBegin, SnapshotEnd, SnapshotReason,
    },
    wire::{Change, ChangeKind, Message, Resource, SnapshotChunk, SubscribeResponse, Update},
};

/// (namespace, kind, key, qualifier, user)
pub(crate) type Key = (String, i32, String, String, String);
pub(crate) type State = BTreeMap<Key, (i64, Vec<u8>)>;

/// The key of a phrase's verb for everybody.
pub(crate) fn verb_key(phrase: &str) -> Key {
    (
        "fund-admin".into(),
        1,
        phrase.into(),
        String::new(),
        String::new(),
    )
}

pub(crate) fn verb(phrase: &str, verb: &str) -> Vec<u8> {
    encoded(phrase, Learned::Verb(verb.into()))
}

pub(crate) fn encoded(display: &str, learned: Learned) -> Vec<u8> {
    emend_wire::value::encode(&ResourceValue::new(display, learned)).to_vec()
}

/// The installation of every log that is not given another one.
pub(crate) const INSTALLATION: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

#[derive(Clone)]
pub(crate) struct ServerLog {
    pub(crate) installation: String,
    pub(crate) epoch: String,
    pub(crate) filter_hash: u64,
    /// By revision; the first is empty.
    pub(crate) states: Vec<State>,
    changed: Vec<Vec<Key>>,
}

impl ServerLog {
    pub(crate) fn new(epoch: &str) -> Self {
        Self {
            installation: INSTALLATION.into(),
            epoch: epoch.into(),
            filter_hash: 7,
            states: vec![State::new()],
            changed: vec![Vec::new()],
        }
    }

    pub(crate) fn head(&self) -> i64 {
        number(self.states.len()) - 1
    }

    pub(crate) fn state(&self, revision: i64) -> &State {
        &self.states[index(revision)]
    }

    /// Commits one revision. `None` deletes the key.
    pub(crate) fn commit(&mut self, changes: impl IntoIterator<Item = (Key, Option<Vec<u8>>)>) -> i64 {
        let mut state = self.state(self.head()).clone();
        let revision = self.head() + 1;
        let mut keys = Vec::new();
        for (key, value) in changes {
            match value {
                Some(value) => state.insert(key.clone(), (revision, value)),
                None => state.remove(&key),
            };
            keys.push(key);
        }
        self.states.push(state);
        self.changed.push(keys);
        revision
    }

    pub(crate) fn cursor(&self, revision: i64) -> Cursor {
        Cursor {
            epoch: self.epoch.clone(),
            revision,
            filter_hash: self.filter_hash,
        }
    }

    pub(crate) fn digests(&self, revision: i64) -> Vec<pb::Digest> {
        let mut digests: BTreeMap<(String, i32, bool), Digest> = BTreeMap::new();
        for ((namespace, kind, key, qualifier, user_id), (revision, value)) in self.state(revision) {
            digests
                .entry((namespace.clone(), *kind, !user_id.is_empty()))
                .or_default()
                .add(&Item {
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
            .into_iter()
            .map(|((namespace, kind, user_scoped), digest)| pb::Digest {
                namespace,
                kind,
                user_scoped,
                count: digest.count,
                hash: digest.bytes().to_vec().into(),
            })
            .collect()
    }

    pub(crate) fn snapshot(&self, revision: i64, reason: SnapshotReason, chunk: usize) -> Vec<Message> {
        let resources: Vec<_> = self
            .state(revision)
            .iter()
            .map(|(key, (revision, value))| resource(key, *revision, value))
            .collect();
        let begin = SnapshotBegin {
            revision,
            reason: reason.into(),
            resource_count: number(resources.len()),
            installation_id: self.installation.clone(),
        };
        let mut messages = vec![Message::SnapshotBegin(begin)];
        messages.extend(
            resources
                .chunks(chunk)
                .map(|part| Message::SnapshotChunk(chunk_of(part.to_vec()))),
        );
        messages.push(Message::SnapshotEnd(SnapshotEnd {
            cursor: Some(self.cursor(revision)),
            digests: self.digests(revision),
        }));
        messages
    }

    /// An update: the newest state of every key changed in (from, to], in parts of `part` changes.
    pub(crate) fn update(&self, from: i64, to: i64, part: usize) -> Vec<Message> {
        let mut newest: BTreeMap<&Key, i64> = BTreeMap::new();
        for revision in from + 1..=to {
            for key in &self.changed[index(revision)] {
                newest.insert(key, revision);
            }
        }
        let mut newest: Vec<_> = newest
            .into_iter()
            .map(|(key, revision)| (revision, key))
            .collect();
        newest.sort();
        let changes: Vec<_> = newest
            .into_iter()
            .map(|(revision, key)| Change {
                revision,
                change: Some(match self.state(to).get(key) {
                    Some((revision, value)) => ChangeKind::Put(resource(key, *revision, value)),
                    None => ChangeKind::Deleted(to_key(key)),
                }),
                cause: Cause::Votes.into(),
                committed_at: Some(prost_types::Timestamp {
                    seconds: 1_767_225_600,
                    nanos: 0,
                }),
                feedback_received_at: None,
                traceparent: String::new(),
            })
            .collect();
        let mut parts: Vec<Vec<Change>> = changes.chunks(part).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        let count = parts.len();
        parts
            .into_iter()
            .enumerate()
            .map(|(index, changes)| {
                let last = index + 1 == count;
                Message::Update(Update {
                    from_revision: from,
                    to_revision: to,
                    changes,
                    last,
                    cursor: last.then(|| self.cursor(to)),
                    digests: if last { self.digests(to) } else { Vec::new() },
                })
            })
            .collect()
    }

    pub(crate) fn bookmark(&self, revision: i64) -> Message {
        Message::Bookmark(Bookmark {
            cursor: Some(self.cursor(revision)),
            digests: self.digests(revision),
            server_time: None,
            age: None,
        })
    }

    pub(crate) fn resumed(&self, revision: i64) -> Message {
        Message::Resumed(Resumed {
            cursor: Some(self.cursor(revision)),
            installation_id: self.installation.clone(),
        })
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).expect("small")
}

fn index(revision: i64) -> usize {
    usize::try_from(revision).expect("not negative")
}

pub(crate) fn drain() -> Message {
    Message::Drain(Drain {
        reconnect_after: Some(prost_types::Duration {
            seconds: 0,
            nanos: 1_000_000,
        }),
        reason: "SHUTDOWN".into(),
    })
}

pub(crate) fn to_key((namespace, kind, key, qualifier, user_id): &Key) -> ResourceKey {
    ResourceKey {
        namespace: namespace.clone(),
        kind: *kind,
        key: key.clone(),
        qualifier: qualifier.clone(),
        user_id: user_id.clone(),
    }
}

pub(crate) fn resource(key: &Key, revision: i64, value: &[u8]) -> Resource {
    Resource {
        key: Some(to_key(key)),
        revision,
        value: value.to_vec().into(),
        value_checksum: value_checksum(value),
        committed_at: None,
        etag: String::new(),
    }
}

/// A chunk in which keys leave out what they have in common with the first.
fn chunk_of(mut resources: Vec<Resource>) -> SnapshotChunk {
    let first = resources[0].key.clone().unwrap_or_default();
    for key in resources.iter_mut().filter_map(|resource| resource.key.as_mut()) {
        if key.namespace == first.namespace {
            key.namespace.clear();
        }
        if key.kind == first.kind {
            key.kind = 0;
        }
    }
    SnapshotChunk {
        resources,
        namespace: first.namespace,
        kind: first.kind,
    }
}

pub(crate) fn response(message: Message) -> SubscribeResponse {
    SubscribeResponse {
        message: Some(message),
    }
}
