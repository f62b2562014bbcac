//! Encodes states and changes as the stream's messages, with values spliced in as they were stored.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use emend_core::{Epoch, InstallationId};
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{Bookmark, Cursor, Digest, Drain, Resumed, SnapshotBegin, SnapshotEnd, SnapshotReason},
    wire::{self, ChangeKind, Message},
};
use emend_wire::render::timestamp_from_micros;
use jiff::Timestamp;
use prost::Message as _;

use super::{
    budget::Budget,
    filter::Filter,
    state::{Entry, Group, ReplicaState},
};

/// The length of gRPC's prefix to a message: a flag and a length.
pub const PREFIX: usize = 5;

/// One encoded `SubscribeResponse` after gRPC's prefix, ready for the wire. Clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded(Bytes);

impl Encoded {
    /// Encodes a message.
    pub fn new(message: Message) -> Self {
        let response = wire::SubscribeResponse {
            message: Some(message),
        };
        let length = response.encoded_len();
        let mut buffer = BytesMut::with_capacity(PREFIX + length);
        // Not compressed.
        buffer.put_u8(0);
        buffer.put_u32(u32::try_from(length).expect("invariant: batches are bounded far below 4 GiB"));
        response
            .encode(&mut buffer)
            .expect("invariant: BytesMut grows as needed");
        Self(buffer.freeze())
    }

    /// Counts the bytes towards `budget` until their last holder drops them.
    #[must_use]
    pub fn counted(self, budget: &Budget) -> Self {
        Self(budget.count(self.0))
    }

    /// With the prefix.
    pub fn framed(self) -> Bytes {
        self.0
    }

    /// Without it.
    pub fn message(&self) -> Bytes {
        self.0.slice(PREFIX..)
    }

    /// Its length on the wire, in bytes, prefix included.
    pub fn wire_len(&self) -> usize {
        self.0.len()
    }
}

/// A cursor to resume from.
pub fn cursor(epoch: Epoch, revision: i64, filter_hash: u64) -> Cursor {
    Cursor {
        epoch: epoch.to_string(),
        revision,
        filter_hash,
    }
}

/// `Resumed`: the cursor the subscriber presented is good.
pub fn resumed(cursor: Cursor, installation: InstallationId) -> Encoded {
    Encoded::new(Message::Resumed(Resumed {
        cursor: Some(cursor),
        installation_id: installation.to_string(),
    }))
}

/// `SnapshotBegin`: a snapshot of `state` follows.
pub fn snapshot_begin(state: &ReplicaState, filter: &Filter, reason: SnapshotReason) -> Encoded {
    Encoded::new(Message::SnapshotBegin(SnapshotBegin {
        revision: state.revision(),
        reason: reason.into(),
        resource_count: state.groups(filter).iter().map(|group| group.digest.count).sum(),
        installation_id: state.installation().to_string(),
    }))
}

/// `SnapshotEnd`: the snapshot of `state` is complete.
pub fn snapshot_end(state: &ReplicaState, filter: &Filter) -> Encoded {
    Encoded::new(Message::SnapshotEnd(SnapshotEnd {
        cursor: Some(cursor(state.epoch(), state.revision(), filter.hash())),
        digests: digests(state, filter),
    }))
}

/// `Bookmark`: the subscriber is current up to `state`, to which the log had been read `age` ago.
pub fn bookmark(state: &ReplicaState, filter: &Filter, now: Timestamp, age: Duration) -> Encoded {
    Encoded::new(Message::Bookmark(Bookmark {
        cursor: Some(cursor(state.epoch(), state.revision(), filter.hash())),
        digests: digests(state, filter),
        server_time: Some(emend_wire::render::timestamp(now)),
        age: prost_types::Duration::try_from(age).ok(),
    }))
}

/// `Drain`: the stream ends.
pub fn drain(reconnect_after: Duration, reason: &str) -> Encoded {
    Encoded::new(Message::Drain(Drain {
        reconnect_after: prost_types::Duration::try_from(reconnect_after).ok(),
        reason: reason.to_owned(),
    }))
}

/// One part of a snapshot: the resources after an entry, at most `max_bytes` of them encoded, or a single larger one.
/// If more follow, also returns the last entry in it. None if there are no resources after that entry.
pub fn snapshot_chunk(
    state: &ReplicaState,
    filter: &Filter,
    after: Option<&Arc<Entry>>,
    max_bytes: usize,
) -> Option<(Encoded, Option<Arc<Entry>>)> {
    let mut part = Part::new(max_bytes);
    state.resources(filter, after, |entry| part.take(entry, resource));
    if part.items.is_empty() {
        return None;
    }
    let chunk = Encoded::new(Message::SnapshotChunk(wire::SnapshotChunk {
        resources: part.items,
    }));
    Some((chunk, part.more.then_some(part.last).flatten()))
}

/// One part of the update from `from` to `state`, like [`snapshot_chunk`]. None if nothing changed (after that entry).
pub fn update_part(
    state: &ReplicaState,
    filter: &Filter,
    from: i64,
    after: Option<&Arc<Entry>>,
    max_bytes: usize,
) -> Option<(Encoded, Option<Arc<Entry>>)> {
    let mut part = Part::new(max_bytes);
    state.changes_since(filter, from, after, |entry| part.take(entry, change));
    if part.items.is_empty() {
        return None;
    }
    let last = !part.more;
    let update = Encoded::new(Message::Update(wire::Update {
        from_revision: from,
        to_revision: state.revision(),
        changes: part.items,
        last,
        cursor: last.then(|| cursor(state.epoch(), state.revision(), filter.hash())),
        digests: if last {
            let groups = state.groups_changed_since(filter, from);
            groups.into_iter().map(digest).collect()
        } else {
            Vec::new()
        },
    }));
    Some((update, part.more.then_some(part.last).flatten()))
}

/// What fits into one message.
struct Part<T> {
    items: Vec<T>,
    bytes: usize,
    max_bytes: usize,
    last: Option<Arc<Entry>>,
    more: bool,
}

impl<T: prost::Message> Part<T> {
    fn new(max_bytes: usize) -> Self {
        Self {
            items: Vec::new(),
            bytes: 0,
            max_bytes,
            last: None,
            more: false,
        }
    }

    fn take(&mut self, entry: &Arc<Entry>, render: impl Fn(&Entry) -> T) -> ControlFlow<()> {
        let item = render(entry);
        let length = item.encoded_len();
        // An element of a repeated field: tag, length, content.
        let length = 1 + prost::length_delimiter_len(length) + length;
        if !self.items.is_empty() && self.bytes + length > self.max_bytes {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.items.push(item);
        self.bytes += length;
        self.last = Some(Arc::clone(entry));
        ControlFlow::Continue(())
    }
}

/// The digests of the non-empty groups a filter covers.
fn digests(state: &ReplicaState, filter: &Filter) -> Vec<Digest> {
    let mut groups = state.groups(filter);
    groups.retain(|group| group.digest.count != 0);
    groups.into_iter().map(digest).collect()
}

fn digest(group: &Group) -> Digest {
    Digest {
        namespace: group.id.namespace.as_ref().to_owned(),
        kind: group.id.kind,
        user_scoped: group.id.user_scoped,
        count: group.digest.count,
        hash: Bytes::copy_from_slice(&group.digest.bytes()),
    }
}

fn key(entry: &Entry) -> ResourceKey {
    ResourceKey {
        namespace: entry.group.namespace.as_ref().to_owned(),
        kind: entry.group.kind,
        key: entry.key.as_ref().to_owned(),
        qualifier: entry.qualifier.as_ref().to_owned(),
        user_id: entry.user_id.as_ref().to_owned(),
    }
}

fn resource(entry: &Entry) -> wire::Resource {
    wire::Resource {
        key: Some(key(entry)),
        revision: entry.revision,
        value: entry.value.clone().unwrap_or_default(),
        value_checksum: entry.checksum,
        committed_at: Some(timestamp_from_micros(entry.committed_at)),
        etag: String::new(),
    }
}

fn change(entry: &Entry) -> wire::Change {
    wire::Change {
        revision: entry.revision,
        change: Some(if entry.value.is_some() {
            ChangeKind::Put(resource(entry))
        } else {
            ChangeKind::Deleted(key(entry))
        }),
        cause: entry.cause,
        committed_at: Some(timestamp_from_micros(entry.committed_at)),
        feedback_received_at: (entry.feedback_received_at != 0)
            .then(|| timestamp_from_micros(entry.feedback_received_at)),
        traceparent: entry.traceparent.as_ref().to_owned(),
    }
}
