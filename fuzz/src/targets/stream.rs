//! What a node receives.

use emend_proto::{
    common::v1::Resource,
    learning::v1::{self as pb, change::Change, subscribe_response::Message},
    wire,
};
use prost::Message as _;

/// The generated messages and their twins with encoded values are equivalent.
pub(super) fn messages(bytes: &[u8]) -> usize {
    let twin = wire::SubscribeResponse::decode(bytes);
    let Ok(mut message) = pb::SubscribeResponse::decode(bytes) else {
        return bytes.len();
    };
    let twin = twin.expect("the twin reads all that the generated message does");
    assert_eq!(message.message.is_some(), twin.message.is_some());
    // Restrict to what a server sends: an empty value is encoded as none.
    for resource in resources(&mut message) {
        resource.value = resource.value.take().filter(|value| value.encoded_len() > 0);
    }
    let sent = message.encode_to_vec();
    let twin = wire::SubscribeResponse::decode(sent.as_slice()).expect("the twin reads what is sent");
    assert_eq!(twin.encode_to_vec(), sent);
    let values = twin_values(&twin);
    let generated = resources(&mut message);
    assert_eq!(values.len(), generated.len());
    for (bytes, resource) in values.into_iter().zip(generated) {
        assert_eq!(
            bytes,
            resource
                .value
                .as_ref()
                .map(prost::Message::encode_to_vec)
                .unwrap_or_default()
        );
    }
    bytes.len()
}

fn resources(message: &mut pb::SubscribeResponse) -> Vec<&mut Resource> {
    match &mut message.message {
        Some(Message::SnapshotChunk(chunk)) => chunk.resources.iter_mut().collect(),
        Some(Message::Update(update)) => update
            .changes
            .iter_mut()
            .filter_map(|change| match &mut change.change {
                Some(Change::Put(resource)) => Some(resource),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn twin_values(message: &wire::SubscribeResponse) -> Vec<&[u8]> {
    match &message.message {
        Some(wire::Message::SnapshotChunk(chunk)) => {
            chunk.resources.iter().map(|resource| &*resource.value).collect()
        }
        Some(wire::Message::Update(update)) => update
            .changes
            .iter()
            .filter_map(|change| match &change.change {
                Some(wire::ChangeKind::Put(resource)) => Some(&*resource.value),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

pub(super) fn stream(bytes: &[u8]) -> usize {
    emend_client::fuzzing::stream(bytes);
    bytes.len()
}
