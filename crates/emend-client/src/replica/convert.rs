//! Resources and changes in the forms in which they are received, held, saved and looked up.

use std::borrow::Cow;

use emend_core::Kind;
use emend_proto::{learning::v1 as pb, wire};
use emend_wire::parse;
use jiff::SignedDuration;

use super::{AppliedChange, Effect, State, decode, holdings::Envelope, key::KeyParts, rejected::Rejected};
use crate::view::Fact;

/// A resource as a copy on disk has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedResource {
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Box<[u8]>,
    pub(crate) revision: i64,
    pub(crate) value_checksum: u64,
}

/// What a change means to a view; `None` if the view does not know the kind.
pub(crate) fn fact_of(change: &AppliedChange) -> Option<Fact<'_>> {
    let key = &change.key;
    Some(Fact {
        namespace: &key.namespace,
        kind: Kind::from_number(key.kind)?,
        key: &key.key,
        qualifier: &key.qualifier,
        user_id: &key.user_id,
        revision: change.revision,
        value: match &change.state {
            State::Learned(value) => Some(Cow::Borrowed(value)),
            State::Rejected(_) | State::Deleted => None,
        },
    })
}

pub(super) fn drain(message: pb::Drain) -> Effect {
    let reconnect_after = message
        .reconnect_after
        .and_then(|after| parse::duration(&after, SignedDuration::ZERO, SignedDuration::MAX).ok())
        .map(SignedDuration::unsigned_abs)
        .unwrap_or_default();
    Effect::Drain {
        reconnect_after,
        reason: message.reason,
    }
}

pub(super) fn envelope_of(
    key: KeyParts<'_>,
    resource: &wire::Resource,
    rejected: &mut Rejected,
) -> (Envelope, State) {
    decoded(
        key,
        &resource.value,
        resource.revision,
        resource.value_checksum,
        rejected,
    )
}

/// The resource as it is held, and its state on this node. A rejected one is recorded in `rejected`.
pub(super) fn decoded(
    key: KeyParts<'_>,
    value: &[u8],
    revision: i64,
    value_checksum: u64,
    rejected: &mut Rejected,
) -> (Envelope, State) {
    let decoded = decode::decode(key, value, value_checksum);
    let envelope = Envelope::new(key, value, revision, value_checksum, decoded.is_ok());
    let state = match decoded {
        Ok(value) => State::Learned(value),
        Err(why) => {
            rejected.insert(&envelope, why.clone());
            State::Rejected(why)
        }
    };
    (envelope, state)
}
