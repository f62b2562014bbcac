//! The checks on a message before any of it is applied.

use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::Cursor,
    wire::{self, ChangeKind},
};

use super::ProtocolViolation;

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
                        "a resource's revision differs from its change's",
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
