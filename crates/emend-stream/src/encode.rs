//! Encodes states and changes as the stream's messages, with values spliced in as they were stored.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::Duration,
};

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

use crate::{
    budget::Budget,
    filter::{Filter, GroupId},
    state::{Entry, Group, ReplicaState},
};

/// The length of gRPC's prefix to a message: a flag and a length.
pub const PREFIX: usize = 5;

/// Messages shorter than this go out as they are, in bytes: each node would spend more on decompressing one than it saves.
const WORTH_COMPRESSING: usize = 4096;
/// The fastest that zstd offers beside its negative levels.
const LEVEL: i32 = 1;

/// How the messages of a stream are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Identity,
    /// By zstd, those for which it is worth it.
    Zstd,
}

/// One encoded `SubscribeResponse` after gRPC's prefix, ready for the wire. Clones share the bytes.
#[derive(Debug, Clone)]
pub struct Encoded {
    plain: Bytes,
    /// The same message compressed, if it is long, once a stream wants it so; equal to `plain` where that is not shorter.
    compressed: Option<Arc<OnceLock<Bytes>>>,
    budget: Option<Budget>,
}

/// Equal messages, compressed by now or not.
impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.plain == other.plain
    }
}

impl Encoded {
    /// Encodes a message.
    pub fn new(message: Message) -> Self {
        let response = wire::SubscribeResponse {
            message: Some(message),
        };
        let length = response.encoded_len();
        let mut buffer = prefixed(Compression::Identity, length);
        response
            .encode(&mut buffer)
            .expect("invariant: BytesMut grows as needed");
        Self {
            plain: buffer.freeze(),
            compressed: (length >= WORTH_COMPRESSING).then(Arc::default),
            budget: None,
        }
    }

    /// Counts the bytes towards `budget` until their last holder drops them.
    #[must_use]
    pub fn counted(self, budget: &Budget) -> Self {
        Self {
            plain: budget.count(self.plain),
            compressed: self.compressed,
            budget: Some(budget.clone()),
        }
    }

    /// With the prefix. Compressed by whoever asks first, for all who share it.
    pub fn framed(&self, compression: Compression) -> Bytes {
        match (compression, &self.compressed) {
            (Compression::Zstd, Some(compressed)) => compressed.get_or_init(|| self.compress()).clone(),
            _ => self.plain.clone(),
        }
    }

    fn compress(&self) -> Bytes {
        let message = self.plain.get(PREFIX..).unwrap_or_default();
        match zstd::bulk::compress(message, LEVEL) {
            Ok(shorter) if shorter.len() < message.len() => {
                let mut buffer = prefixed(Compression::Zstd, shorter.len());
                buffer.put_slice(&shorter);
                let framed = buffer.freeze();
                match &self.budget {
                    Some(budget) => budget.count(framed),
                    None => framed,
                }
            }
            // It fails only for want of memory.
            _ => self.plain.clone(),
        }
    }

    /// The message alone, not compressed.
    pub fn message(&self) -> Bytes {
        self.plain.slice(PREFIX..)
    }

    /// Its length on the wire without compression, in bytes, prefix included.
    pub fn wire_len(&self) -> usize {
        self.plain.len()
    }
}

/// A buffer with the prefix to a message of that length, and room for it.
fn prefixed(compression: Compression, length: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(PREFIX + length);
    buffer.put_u8(u8::from(compression != Compression::Identity));
    buffer.put_u32(u32::try_from(length).expect("invariant: batches are bounded far below 4 GiB"));
    buffer
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
    let mut first: Option<Arc<GroupId>> = None;
    state.resources(filter, after, |entry| {
        let group = first.get_or_insert_with(|| Arc::clone(&entry.group));
        part.take(entry, |entry| resource_in_chunk(entry, group))
    });
    let first = first?;
    let chunk = Encoded::new(Message::SnapshotChunk(wire::SnapshotChunk {
        resources: part.items,
        namespace: first.namespace.as_ref().to_owned(),
        kind: first.kind,
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

fn resource(entry: &Entry, key: ResourceKey) -> wire::Resource {
    wire::Resource {
        key: Some(key),
        revision: entry.revision,
        value: entry.value.clone().unwrap_or_default(),
        value_checksum: entry.checksum,
        committed_at: Some(timestamp_from_micros(entry.committed_at)),
        etag: String::new(),
    }
}

/// A resource in a chunk that says the namespace and kind of its first: the key leaves out what is the same.
fn resource_in_chunk(entry: &Entry, first: &GroupId) -> wire::Resource {
    let own = &entry.group;
    let is_same = own.namespace == first.namespace;
    let key = ResourceKey {
        namespace: if is_same {
            String::new()
        } else {
            own.namespace.as_ref().to_owned()
        },
        kind: if own.kind == first.kind { 0 } else { own.kind },
        key: entry.key.as_ref().to_owned(),
        qualifier: entry.qualifier.as_ref().to_owned(),
        user_id: entry.user_id.as_ref().to_owned(),
    };
    resource(entry, key)
}

fn change(entry: &Entry) -> wire::Change {
    wire::Change {
        revision: entry.revision,
        change: Some(if entry.value.is_some() {
            ChangeKind::Put(resource(entry, key(entry)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(length: usize) -> Encoded {
        drain(Duration::ZERO, &"reason ".repeat(length / 7))
    }

    #[test]
    fn a_long_message_is_compressed_once_for_all_who_share_it() {
        let budget = Budget::of(1 << 20);
        let message = encoded(100_000).counted(&budget);
        let (first, second) = (
            message.clone().framed(Compression::Zstd),
            message.framed(Compression::Zstd),
        );
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert_eq!((first[0], message.framed(Compression::Identity)[0]), (1, 0));
        let length = u32::from_be_bytes(first[1..PREFIX].try_into().unwrap());
        assert_eq!(first.len(), PREFIX + length as usize);
        let restored = zstd::bulk::decompress(&first[PREFIX..], 1 << 20).unwrap();
        assert_eq!(restored, message.message());
        assert!(first.len() < 1000, "{} bytes", first.len());
        assert_eq!(budget.held(), message.wire_len() + first.len());
        drop((message, first, second));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn what_compression_does_not_shorten_goes_out_as_it_is() {
        let short = encoded(1_000);
        assert_eq!(
            short.framed(Compression::Zstd),
            short.framed(Compression::Identity)
        );
        // Every character as likely as any other, of which zstd makes nothing shorter than 64 KiB of bytes.
        let noise: Vec<u8> = (0..65_536_u32)
            .flat_map(|n| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes()).to_le_bytes())
            .collect();
        let random = Encoded::new(Message::SnapshotChunk(wire::SnapshotChunk {
            resources: vec![wire::Resource {
                value: noise.into(),
                ..Default::default()
            }],
            ..Default::default()
        }));
        assert_eq!(
            random.framed(Compression::Zstd),
            random.framed(Compression::Identity)
        );
    }
}
