//! Values, stream messages, and whole streams.

use emend_core::digest::{Digest, Item, value_checksum};
use emend_proto::{
    common::v1::{
        Cause, EntityAliasValue, InvocationPhraseValue, ProhibitionValue, Resource, ResourceKey,
        ResourceValue, resource_value::Value,
    },
    learning::v1::{
        self as pb, Change, Cursor, SubscribeResponse, Update, change, subscribe_response::Message as Oneof,
    },
};
use prost::Message;

pub(super) fn key() -> ResourceKey {
    key_of("set up a csa")
}

fn key_of(phrase: &str) -> ResourceKey {
    ResourceKey {
        namespace: "fund-admin".into(),
        kind: 1,
        key: phrase.into(),
        qualifier: String::new(),
        user_id: String::new(),
    }
}

pub(super) fn value() -> ResourceValue {
    value_of(Value::InvocationPhrase(InvocationPhraseValue {
        verb: "create_csa".into(),
    }))
}

fn value_of(value: Value) -> ResourceValue {
    ResourceValue {
        display: "Set up a CSA".into(),
        normalization_version: 1,
        value: Some(value),
    }
}

pub(super) fn values() -> Vec<Vec<u8>> {
    let alias = Value::EntityAlias(EntityAliasValue {
        entity_id: "person:jane".into(),
    });
    let forbidden = Value::Prohibition(ProhibitionValue {
        forbidden_choice: "delete_fund".into(),
    });
    [value(), value_of(alias), value_of(forbidden)]
        .map(|value| value.encode_to_vec())
        .to_vec()
}

fn cursor(revision: i64) -> Cursor {
    Cursor {
        epoch: "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into(),
        revision,
        filter_hash: 10,
    }
}

fn resource(phrase: &str, revision: i64) -> Resource {
    let value = value();
    Resource {
        key: Some(key_of(phrase)),
        revision,
        value_checksum: value_checksum(&value.encode_to_vec()),
        value: Some(value),
        committed_at: Some(prost_types::Timestamp { seconds: 5, nanos: 6 }),
        etag: String::new(),
    }
}

fn digests(held: &[Resource]) -> Vec<pb::Digest> {
    let mut digest = Digest::default();
    for Resource {
        key,
        revision,
        value_checksum,
        ..
    } in held
    {
        let key = key.clone().unwrap_or_default();
        digest.add(&Item {
            namespace: &key.namespace,
            kind: key.kind,
            key: &key.key,
            qualifier: &key.qualifier,
            user_id: &key.user_id,
            revision: *revision,
            value_checksum: *value_checksum,
        });
    }
    vec![pb::Digest {
        namespace: "fund-admin".into(),
        kind: 1,
        user_scoped: false,
        count: digest.count,
        hash: digest.bytes().to_vec().into(),
    }]
}

const INSTALLATION: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

fn snapshot(revision: i64, held: &[Resource]) -> Vec<Oneof> {
    let mut messages = vec![Oneof::SnapshotBegin(pb::SnapshotBegin {
        revision,
        reason: 1,
        resource_count: i64::try_from(held.len()).unwrap_or(i64::MAX),
        installation_id: INSTALLATION.into(),
    })];
    messages.extend(held.chunks(2).map(|resources| {
        let mut resources = resources.to_vec();
        let first = resources[0].key.clone().unwrap_or_default();
        for key in resources.iter_mut().filter_map(|resource| resource.key.as_mut()) {
            if key.namespace == first.namespace {
                key.namespace.clear();
            }
            if key.kind == first.kind {
                key.kind = 0;
            }
        }
        Oneof::SnapshotChunk(pb::SnapshotChunk {
            resources,
            namespace: first.namespace,
            kind: first.kind,
        })
    }));
    messages.push(Oneof::SnapshotEnd(pb::SnapshotEnd {
        cursor: Some(cursor(revision)),
        digests: digests(held),
    }));
    messages
}

fn change(revision: i64, change: change::Change) -> Change {
    Change {
        revision,
        change: Some(change),
        cause: Cause::Votes.into(),
        committed_at: Some(prost_types::Timestamp { seconds: 5, nanos: 6 }),
        feedback_received_at: Some(prost_types::Timestamp { seconds: 4, nanos: 6 }),
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(),
    }
}

/// An update in two parts: one deletes, one puts.
fn update(from: i64, held: &[Resource]) -> Vec<Oneof> {
    let to = from + 2;
    let part = |changes, last| Update {
        from_revision: from,
        to_revision: to,
        changes,
        last,
        cursor: last.then(|| cursor(to)),
        digests: if last { digests(held) } else { Vec::new() },
    };
    vec![
        Oneof::Update(part(
            vec![change(from + 1, change::Change::Deleted(key_of("a")))],
            false,
        )),
        Oneof::Update(part(
            vec![change(to, change::Change::Put(resource("d", to)))],
            true,
        )),
    ]
}

fn dialogue() -> Vec<Oneof> {
    let (a, b, c) = (resource("a", 1), resource("b", 2), resource("c", 3));
    let after = [b.clone(), c.clone(), resource("d", 5)];
    let mut messages = snapshot(3, &[a, b, c]);
    messages.extend(update(3, &after));
    messages.push(Oneof::Bookmark(pb::Bookmark {
        cursor: Some(cursor(6)),
        digests: digests(&after),
        server_time: Some(prost_types::Timestamp { seconds: 9, nanos: 0 }),
        age: Some(prost_types::Duration { seconds: 1, nanos: 2 }),
    }));
    messages.push(Oneof::Drain(pb::Drain {
        reconnect_after: Some(prost_types::Duration { seconds: 1, nanos: 2 }),
        reason: "SHUTDOWN".into(),
    }));
    messages
}

fn encoded(message: Oneof) -> Vec<u8> {
    SubscribeResponse {
        message: Some(message),
    }
    .encode_to_vec()
}

pub(super) fn messages() -> Vec<Vec<u8>> {
    let resumed = Oneof::Resumed(pb::Resumed {
        cursor: Some(cursor(3)),
        installation_id: INSTALLATION.into(),
    });
    dialogue().into_iter().chain([resumed]).map(encoded).collect()
}

pub(super) fn streams() -> Vec<Vec<u8>> {
    let whole = dialogue();
    // The stream breaks off within an update, and the next one resumes.
    let mut broken: Vec<_> = whole.iter().take(5).cloned().map(encoded).collect();
    broken.push(vec![0xff]);
    broken.push(encoded(Oneof::Resumed(pb::Resumed {
        cursor: Some(cursor(3)),
        installation_id: INSTALLATION.into(),
    })));
    broken.extend(whole.iter().skip(4).cloned().map(encoded));
    // A snapshot in the middle of an update.
    let mut amid: Vec<_> = whole.iter().take(5).cloned().collect();
    amid.extend(snapshot(9, &[resource("z", 9)]));
    amid.extend(update(9, &[resource("d", 11)]));
    // Another installation answers, then the node's own again.
    let mut other = snapshot(3, &[resource("a", 1)]);
    for message in &mut other {
        if let Oneof::SnapshotBegin(begin) = message {
            begin.installation_id = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11".into();
        }
    }
    let other = [
        snapshot(3, &[resource("a", 1)]),
        other,
        snapshot(4, &[resource("b", 4)]),
    ]
    .concat();
    let empty = [snapshot(0, &[]), update(0, &[])].concat();
    [
        sent(whole.into_iter().map(encoded)),
        sent(broken.into_iter()),
        sent(amid.into_iter().map(encoded)),
        sent(empty.into_iter().map(encoded)),
        sent(other.into_iter().map(encoded)),
    ]
    .to_vec()
}

/// Consecutive messages, each as a field 1.
pub(super) fn sent(messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        bytes.push(1 << 3 | 2);
        prost::encode_length_delimiter(message.len(), &mut bytes).expect("a Vec grows as needed");
        bytes.extend(message);
    }
    bytes
}
