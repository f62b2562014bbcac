//! The checks on a message before any of it is applied, and the conversion of a received resource.
//!
//! It must know nothing of what is held.

use std::borrow::Cow;

use emend_core::Kind;
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{self as pb, Cursor},
    wire::{self, ChangeKind},
};
use emend_wire::parse;
use jiff::SignedDuration;

use super::{
    AppliedChange, Effect, ProtocolViolation, State, holdings::Envelope, judge, key::KeyParts,
    rejected::Rejected,
};
use crate::view::Fact;

/// One resource as held before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
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
            State::Learned(value) => Some(Cow::Borrowed(value.learned.maps_to())),
            State::Rejected(_) | State::Deleted => None,
        },
    })
}

pub(super) fn drained(drain: pb::Drain) -> Effect {
    let reconnect_after = drain
        .reconnect_after
        .and_then(|after| parse::duration(&after, SignedDuration::ZERO, SignedDuration::MAX).ok())
        .map(SignedDuration::unsigned_abs)
        .unwrap_or_default();
    Effect::Drain {
        reconnect_after,
        reason: drain.reason,
    }
}

/// Whether both are of the same epoch and filter.
pub(super) fn follows(position: &Cursor, cursor: &Cursor) -> bool {
    position.epoch == cursor.epoch && position.filter_hash == cursor.filter_hash
}

/// Checks that every change lies in (held, to], is not older than its predecessor, and that every resource has a key.
pub(super) fn check_order(changes: &[wire::Change], held: i64, to: i64) -> Result<(), ProtocolViolation> {
    let mut least = held + 1;
    for change in changes {
        if change.revision <= held {
            return Err(ProtocolViolation::NotNew {
                held,
                revision: change.revision,
            });
        }
        if change.revision < least || change.revision > to {
            return Err(ProtocolViolation::malformed(
                "Update",
                "its changes are not in order",
            ));
        }
        least = change.revision;
        match &change.change {
            Some(ChangeKind::Put(resource)) => {
                key_of(resource.key.as_ref(), "Update")?;
                if resource.revision != change.revision {
                    return Err(ProtocolViolation::malformed(
                        "Update",
                        "a resource has not the revision of its change",
                    ));
                }
            }
            Some(ChangeKind::Deleted(_)) | None => {}
        }
    }
    Ok(())
}

pub(super) fn key_of<'a>(
    key: Option<&'a ResourceKey>,
    message: &'static str,
) -> Result<&'a ResourceKey, ProtocolViolation> {
    key.ok_or_else(|| ProtocolViolation::malformed(message, "a resource has no key"))
}

pub(super) fn envelope_of(
    key: KeyParts<'_>,
    resource: &wire::Resource,
    rejected: &mut Rejected,
) -> (Envelope, State) {
    judged(
        key,
        &resource.value,
        resource.revision,
        resource.value_checksum,
        rejected,
    )
}

/// The resource as it is kept, and its state on this node. A rejected one is recorded in `rejected`.
pub(super) fn judged(
    key: KeyParts<'_>,
    value: &[u8],
    revision: i64,
    value_checksum: u64,
    rejected: &mut Rejected,
) -> (Envelope, State) {
    let verdict = judge::judge(key, value, value_checksum);
    let envelope = Envelope::new(key, value, revision, value_checksum, verdict.is_ok());
    let state = match verdict {
        Ok(value) => State::Learned(value),
        Err(why) => {
            rejected.insert(&envelope, why.clone());
            State::Rejected(why)
        }
    };
    (envelope, state)
}
