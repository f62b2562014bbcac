//! Copies as a faulty disk might return them.

use std::sync::Arc;

use emend_base::Entropy;
use xxhash_rust::xxh3::xxh3_128;

use super::{CHECKSUM_BYTES, SavedCopy, read, write};
use crate::{keyed_hash::KeyedHash, replica::Replica};

/// Reads the bytes as a copy, both as they are and with a valid checksum appended. No copy with a wrong checksum is
/// accepted; an accepted one can be held, written and read again.
pub fn copy(bytes: &[u8]) {
    if let Ok(copy) = read(bytes, length(bytes)) {
        let (body, checksum) = bytes.split_at(bytes.len() - 16);
        assert_eq!(checksum, xxh3_128(body).to_le_bytes(), "its checksum is right");
        check_round_trip(&copy);
        let mut flipped = bytes.to_vec();
        let at = usize::try_from(xxh3_128(bytes) % u128::from(length(bytes))).expect("within the bytes");
        flipped[at] ^= 1 << (at % 8);
        assert!(
            read(&flipped[..], length(&flipped)).is_err(),
            "byte {at} has a flipped bit"
        );
        // The file shrinks or grows while it is read.
        assert!(read(bytes, length(bytes) + 1).is_err());
        assert!(read(bytes, length(bytes) - 1).is_err());
    }
    let mut sealed = bytes.to_vec();
    sealed.extend_from_slice(&xxh3_128(bytes).to_le_bytes());
    if let Ok(copy) = read(&sealed[..], length(&sealed)) {
        check_round_trip(&copy);
    }
    assert_eq!(CHECKSUM_BYTES, 16);
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn check_round_trip(copy: &SavedCopy) {
    let hash = Arc::new(KeyedHash::new(&Entropy::seeded(1)));
    let replica = Replica::restore(
        hash,
        &copy.held,
        copy.header.installation,
        copy.header.cursor.clone(),
    );
    assert!(replica.len() <= copy.held.len());
    let mut written = Vec::new();
    write(&mut written, &copy.header, replica.held()).expect("memory takes it");
    let again = read(&written[..], length(&written)).expect("what was written is a copy");
    assert_eq!(again.header, copy.header);
    assert_eq!(again.held.len(), replica.len());
}
