//! What databases and disks return.

use emend_wire::value;

pub(super) fn feedback_rows(bytes: &[u8]) -> usize {
    feedback_store::fuzzing::row(bytes);
    bytes.len()
}

pub(super) fn learning_rows(bytes: &[u8]) -> usize {
    learning_store::fuzzing::row(bytes);
    bytes.len()
}

/// A usable value has one stored form, which decodes to the same value.
pub(super) fn values(bytes: &[u8]) -> usize {
    if let Ok(value) = value::decode(bytes) {
        let stored = value::encode(&value);
        assert_eq!(value::decode(&stored), Ok(value));
    }
    bytes.len()
}

pub(super) fn disk_copy(bytes: &[u8]) -> usize {
    emend_client::fuzzing::copy(bytes);
    bytes.len()
}
