//! The stream's messages with each resource's value left as encoded bytes.
//!
//! Wire-equal to the generated messages of the same names (a test keeps them so). A value's checksum covers exactly
//! these bytes: a node that re-encoded values could not verify those of a kind it does not know.

use bytes::Bytes;
use prost_types::Timestamp;

use crate::{
    common::v1::{self as common, ResourceKey},
    learning::v1::{self as learning, Bookmark, Cursor, Digest, Drain, Resumed, SnapshotBegin, SnapshotEnd},
};

/// `emend.common.v1.Resource` with an encoded value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Identifies the resource.
    #[prost(message, optional, tag = "1")]
    pub key: Option<ResourceKey>,
    /// The revision that gave it this value.
    #[prost(int64, tag = "2")]
    pub revision: i64,
    /// The encoded `ResourceValue`, as stored.
    #[prost(bytes = "bytes", tag = "3")]
    pub value: Bytes,
    /// XXH3-64 of `value`.
    #[prost(fixed64, tag = "4")]
    pub value_checksum: u64,
    /// When the revision was committed.
    #[prost(message, optional, tag = "5")]
    pub committed_at: Option<Timestamp>,
    /// Empty on the stream.
    #[prost(string, tag = "6")]
    pub etag: String,
}

/// `emend.learning.v1.SubscribeResponse` with encoded values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SubscribeResponse {
    /// `None` for a message this client does not know.
    #[prost(oneof = "Message", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub message: Option<Message>,
}

/// The message carried by a [`SubscribeResponse`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Message {
    /// Resumes from the cursor that was sent.
    #[prost(message, tag = "1")]
    Resumed(Resumed),
    /// A snapshot begins.
    #[prost(message, tag = "2")]
    SnapshotBegin(SnapshotBegin),
    /// Part of a snapshot.
    #[prost(message, tag = "3")]
    SnapshotChunk(SnapshotChunk),
    /// The snapshot is complete.
    #[prost(message, tag = "4")]
    SnapshotEnd(SnapshotEnd),
    /// What changed.
    #[prost(message, tag = "5")]
    Update(Update),
    /// Nothing more follows at or below this revision.
    #[prost(message, tag = "6")]
    Bookmark(Bookmark),
    /// The server is ending this stream.
    #[prost(message, tag = "7")]
    Drain(Drain),
}

/// `emend.learning.v1.SnapshotChunk` with encoded values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SnapshotChunk {
    /// In key order. A key without a namespace or a kind has that of the chunk.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<Resource>,
    /// The namespace of the keys that come without one.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The kind of the keys that come without one.
    #[prost(enumeration = "crate::common::v1::ResourceKind", tag = "3")]
    pub kind: i32,
}

impl SnapshotChunk {
    /// The resources, each with the whole of its key.
    pub fn into_resources(self) -> impl Iterator<Item = Resource> {
        with_whole_keys(self.resources, self.namespace, self.kind, |resource| {
            resource.key.as_mut()
        })
    }
}

impl learning::SnapshotChunk {
    /// The resources, each with the whole of its key.
    pub fn into_resources(self) -> impl Iterator<Item = common::Resource> {
        with_whole_keys(self.resources, self.namespace, self.kind, |resource| {
            resource.key.as_mut()
        })
    }
}

/// Puts into the keys what a chunk says for all that leave it out.
fn with_whole_keys<R>(
    resources: Vec<R>,
    namespace: String,
    kind: i32,
    key_of: impl Fn(&mut R) -> Option<&mut ResourceKey>,
) -> impl Iterator<Item = R> {
    resources.into_iter().map(move |mut resource| {
        if let Some(key) = key_of(&mut resource) {
            if key.namespace.is_empty() {
                namespace.clone_into(&mut key.namespace);
            }
            if key.kind == 0 {
                key.kind = kind;
            }
        }
        resource
    })
}

/// `emend.learning.v1.Update` with encoded values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Update {
    /// The revision before the update.
    #[prost(int64, tag = "1")]
    pub from_revision: i64,
    /// The revision after the update.
    #[prost(int64, tag = "2")]
    pub to_revision: i64,
    /// Ordered by revision, then by key.
    #[prost(message, repeated, tag = "3")]
    pub changes: Vec<Change>,
    /// The last part: apply all parts now.
    #[prost(bool, tag = "4")]
    pub last: bool,
    /// On the last part only.
    #[prost(message, optional, tag = "5")]
    pub cursor: Option<Cursor>,
    /// On the last part only.
    #[prost(message, repeated, tag = "6")]
    pub digests: Vec<Digest>,
}

/// `emend.learning.v1.Change` with an encoded value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Change {
    /// The last revision that changed it.
    #[prost(int64, tag = "1")]
    pub revision: i64,
    /// Put or deleted; `None` for a change this client does not know.
    #[prost(oneof = "ChangeKind", tags = "2, 3")]
    pub change: Option<ChangeKind>,
    /// A `Cause`.
    #[prost(enumeration = "crate::common::v1::Cause", tag = "4")]
    pub cause: i32,
    /// When the revision was committed.
    #[prost(message, optional, tag = "5")]
    pub committed_at: Option<Timestamp>,
    /// When the feedback that caused it was received.
    #[prost(message, optional, tag = "6")]
    pub feedback_received_at: Option<Timestamp>,
    /// W3C trace context of the evaluation, in the trace of that feedback.
    #[prost(string, tag = "7")]
    pub traceparent: String,
}

/// The newest state of one key.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ChangeKind {
    /// The key has this value.
    #[prost(message, tag = "2")]
    Put(Resource),
    /// The key was deleted.
    #[prost(message, tag = "3")]
    Deleted(ResourceKey),
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn keys_of_a_chunk_are_whole_again() {
        let key = |namespace: &str, kind, key: &str| common::ResourceKey {
            namespace: namespace.into(),
            kind,
            key: key.into(),
            ..Default::default()
        };
        let sent = [
            key("", 0, "a"),
            key("", 99, "b"),
            key("other", 0, "c"),
            key("other", 99, "d"),
        ];
        let whole = [
            key("one", 1, "a"),
            key("one", 99, "b"),
            key("other", 1, "c"),
            key("other", 99, "d"),
        ];
        let chunk = learning::SnapshotChunk {
            resources: sent
                .map(|key| common::Resource {
                    key: Some(key),
                    ..Default::default()
                })
                .into(),
            namespace: "one".into(),
            kind: 1,
        };
        let twin = SnapshotChunk::decode(chunk.encode_to_vec().as_slice()).expect("the twin decodes");
        let keys = |resource: common::Resource| resource.key;
        assert!(chunk.into_resources().filter_map(keys).eq(whole.clone()));
        assert!(
            twin.into_resources()
                .filter_map(|resource| resource.key)
                .eq(whole)
        );
    }

    #[test]
    fn hand_written_messages_equal_the_generated_ones_on_the_wire() {
        let key = common::ResourceKey {
            namespace: "fund-admin".into(),
            kind: common::ResourceKind::Prohibition as i32,
            key: "a phrase".into(),
            qualifier: "choice".into(),
            user_id: "u".into(),
        };
        let value = common::ResourceValue {
            display: "A phrase".into(),
            normalization_version: 1,
            value: Some(common::resource_value::Value::Prohibition(
                common::ProhibitionValue {
                    forbidden_choice: "choice".into(),
                },
            )),
        };
        let at = Some(Timestamp { seconds: 5, nanos: 6 });
        let resource = common::Resource {
            key: Some(key.clone()),
            revision: 7,
            value: Some(value.clone()),
            value_checksum: 8,
            committed_at: at,
            etag: "e".into(),
        };
        let cursor = Some(learning::Cursor {
            epoch: "x".into(),
            revision: 9,
            filter_hash: 10,
        });
        let digests = vec![learning::Digest {
            namespace: "fund-admin".into(),
            kind: 3,
            user_scoped: true,
            count: 1,
            hash: Bytes::from_static(&[1; 16]),
        }];
        let change = |change| learning::Change {
            revision: 7,
            change: Some(change),
            cause: common::Cause::Votes as i32,
            committed_at: at,
            feedback_received_at: at,
            traceparent: "t".into(),
        };
        let messages = [
            learning::subscribe_response::Message::SnapshotChunk(learning::SnapshotChunk {
                resources: vec![resource.clone()],
                namespace: "fund-admin".into(),
                kind: 3,
            }),
            learning::subscribe_response::Message::Update(learning::Update {
                from_revision: 1,
                to_revision: 7,
                changes: vec![
                    change(learning::change::Change::Put(resource)),
                    change(learning::change::Change::Deleted(key)),
                ],
                last: true,
                cursor: cursor.clone(),
                digests: digests.clone(),
            }),
            learning::subscribe_response::Message::Bookmark(learning::Bookmark {
                cursor: cursor.clone(),
                digests: digests.clone(),
                server_time: at,
                age: Some(prost_types::Duration { seconds: 1, nanos: 2 }),
            }),
            learning::subscribe_response::Message::Resumed(learning::Resumed {
                cursor: cursor.clone(),
                ..Default::default()
            }),
            learning::subscribe_response::Message::SnapshotBegin(learning::SnapshotBegin {
                revision: 1,
                reason: 2,
                resource_count: 3,
                ..Default::default()
            }),
            learning::subscribe_response::Message::SnapshotEnd(learning::SnapshotEnd { cursor, digests }),
            learning::subscribe_response::Message::Drain(learning::Drain {
                reconnect_after: Some(prost_types::Duration { seconds: 1, nanos: 2 }),
                reason: "SHUTDOWN".into(),
            }),
        ];
        for message in messages {
            let bytes = learning::SubscribeResponse {
                message: Some(message),
            }
            .encode_to_vec();
            let twin = SubscribeResponse::decode(bytes.as_slice()).expect("the twin decodes");
            assert!(twin.message.is_some(), "the twin knows the message");
            assert_eq!(twin.encode_to_vec(), bytes);
            if let Some(Message::SnapshotChunk(chunk)) = &twin.message {
                assert_eq!(chunk.resources[0].value, value.encode_to_vec());
            }
        }
    }
}
