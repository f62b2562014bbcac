//! Numbers as they are stored.

use emend_core::digest::value_checksum;
use jiff::SignedDuration;

/// The checksum of a value's bytes.
pub(crate) fn checksum(bytes: &[u8]) -> i64 {
    value_checksum(bytes).cast_signed()
}

/// A count, or the largest number that can be stored.
pub(crate) fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The same for small counts.
pub(crate) fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A span in microseconds.
pub(crate) fn micros(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
