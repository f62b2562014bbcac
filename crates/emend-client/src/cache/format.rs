//! The bytes of a copy. All numbers are little-endian.
//!
//! ```text
//! magic "EMENDLKG" · version u32
//! subscription u64 · written_at i64 ms · current_at i64 ms (minimum: never)
//! installation (u32 length, bytes; empty: not known) · epoch (u32 length, bytes) · revision i64 · filter_hash u64 · count u64
//! count times: key length u32 · value length u32 · revision i64 · value checksum u64 · key · value
//! XXH3-128 of all before, 16 bytes
//! ```
//!
//! The reader trusts nothing: every length is checked against what is left of the file before anything is allocated.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::io::{ErrorKind, Read, Write};

use emend_core::InstallationId;
use emend_proto::learning::v1::Cursor;
use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3Default;

use super::{CopyError, Header, SavedCopy};
use crate::replica::{SavedResource, holdings::Holdings, key::KeyParts};

const MAGIC: &[u8; 8] = b"EMENDLKG";
const VERSION: u32 = 2;
const CHECKSUM_BYTES: u64 = 16;
/// Size of one record without its key and value.
const RECORD_BYTES: u64 = 24;
const NEVER: i64 = i64::MIN;

/// Writes a copy.
pub(super) fn write(to: impl Write, header: &Header, held: &Holdings) -> Result<(), CopyError> {
    let mut to = HashingWriter {
        to,
        hash: Xxh3Default::new(),
    };
    to.put(MAGIC)?;
    to.put(&VERSION.to_le_bytes())?;
    to.put(&header.subscription.to_le_bytes())?;
    to.put(&header.written_at.as_millisecond().to_le_bytes())?;
    to.put(
        &header
            .current_at
            .map_or(NEVER, Timestamp::as_millisecond)
            .to_le_bytes(),
    )?;
    let installation = header.installation.map(|id| id.to_string()).unwrap_or_default();
    to.put_text(&installation)?;
    to.put_text(&header.cursor.epoch)?;
    to.put(&header.cursor.revision.to_le_bytes())?;
    to.put(&header.cursor.filter_hash.to_le_bytes())?;
    to.put(&(held.len() as u64).to_le_bytes())?;
    for envelope in held.iter() {
        to.put(&length(envelope.packed_key())?)?;
        to.put(&length(envelope.value())?)?;
        to.put(&envelope.revision().to_le_bytes())?;
        to.put(&envelope.value_checksum().to_le_bytes())?;
        to.put(envelope.packed_key())?;
        to.put(envelope.value())?;
    }
    let checksum = to.hash.digest128().to_le_bytes();
    to.put(&checksum)
}

fn length(bytes: &[u8]) -> Result<[u8; 4], CopyError> {
    u32::try_from(bytes.len())
        .map(u32::to_le_bytes)
        .map_err(|_| CopyError::Damaged("a resource is too large"))
}

/// Reads a copy of `length` bytes.
pub(super) fn read(from: impl Read, length: u64) -> Result<SavedCopy, CopyError> {
    let mut from = HashingReader {
        from,
        left: length,
        hash: Xxh3Default::new(),
    };
    // A file too short for the magic is not a copy.
    let magic: [u8; 8] = from.array().map_err(|error| match error {
        CopyError::Damaged(_) => CopyError::NotACopy,
        other => other,
    })?;
    if magic != *MAGIC {
        return Err(CopyError::NotACopy);
    }
    let version = u32::from_le_bytes(from.array()?);
    if version != VERSION {
        return Err(CopyError::UnknownVersion(version));
    }
    let subscription = u64::from_le_bytes(from.array()?);
    let written_at = time(i64::from_le_bytes(from.array()?))?;
    let current_at = match i64::from_le_bytes(from.array()?) {
        NEVER => None,
        millis => Some(time(millis)?),
    };
    let installation = match &*from.text()? {
        "" => None,
        id => Some(
            InstallationId::parse(id).map_err(|_| CopyError::Damaged("its installation is not a UUID"))?,
        ),
    };
    let epoch = from.text()?;
    let revision = i64::from_le_bytes(from.array()?);
    let filter_hash = u64::from_le_bytes(from.array()?);
    let count = u64::from_le_bytes(from.array()?);
    if count > from.left / RECORD_BYTES {
        return Err(CopyError::Damaged("it is truncated"));
    }
    let mut held =
        Vec::with_capacity(usize::try_from(count).map_err(|_| CopyError::Damaged("too many resources"))?);
    for _ in 0..count {
        held.push(record(&mut from)?);
    }
    let computed = from.hash.digest128();
    let stated = u128::from_le_bytes(from.array()?);
    if from.left > 0 {
        return Err(CopyError::Damaged("it has extra bytes at its end"));
    }
    if computed != stated {
        return Err(CopyError::Damaged("its checksum differs"));
    }
    let cursor = Cursor {
        epoch,
        revision,
        filter_hash,
    };
    Ok(SavedCopy {
        header: Header {
            subscription,
            installation,
            cursor,
            written_at,
            current_at,
        },
        held,
    })
}

fn record<R: Read>(from: &mut HashingReader<R>) -> Result<SavedResource, CopyError> {
    let key_length = u32::from_le_bytes(from.array()?);
    let value_length = u32::from_le_bytes(from.array()?);
    let revision = i64::from_le_bytes(from.array()?);
    let value_checksum = u64::from_le_bytes(from.array()?);
    let key = from.bytes(key_length)?;
    if KeyParts::unpack(&key).is_none() {
        return Err(CopyError::Damaged("a bad key"));
    }
    let value = from.bytes(value_length)?;
    Ok(SavedResource {
        key,
        value,
        revision,
        value_checksum,
    })
}

fn time(millis: i64) -> Result<Timestamp, CopyError> {
    Timestamp::from_millisecond(millis).map_err(|_| CopyError::Damaged("a bad time"))
}

struct HashingWriter<W> {
    to: W,
    hash: Xxh3Default,
}

impl<W: Write> HashingWriter<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        self.hash.update(bytes);
        Ok(self.to.write_all(bytes)?)
    }

    fn put_text(&mut self, text: &str) -> Result<(), CopyError> {
        self.put(&length(text.as_bytes())?)?;
        self.put(text.as_bytes())
    }
}

struct HashingReader<R> {
    from: R,
    /// Bytes still to be read.
    left: u64,
    hash: Xxh3Default,
}

impl<R: Read> HashingReader<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], CopyError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, length: u32) -> Result<Box<[u8]>, CopyError> {
        // Checked before allocating: a corrupt length must not cost memory.
        if u64::from(length) > self.left.saturating_sub(CHECKSUM_BYTES) {
            return Err(CopyError::Damaged("it is truncated"));
        }
        let mut bytes = vec![0; length as usize].into_boxed_slice();
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String, CopyError> {
        let length = u32::from_le_bytes(self.array()?);
        String::from_utf8(self.bytes(length)?.into()).map_err(|_| CopyError::Damaged("a text is not UTF-8"))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), CopyError> {
        let truncated = CopyError::Damaged("it is truncated");
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            return Err(truncated);
        };
        self.left = left;
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => truncated,
            _ => error.into(),
        })?;
        self.hash.update(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emend_base::Entropy;
    use proptest::prelude::*;

    use super::*;
    use crate::{keyed_hash::KeyedHash, replica::holdings::Envelope};

    const INSTALLATION: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

    fn written(count: i64) -> Vec<u8> {
        let mut held = Holdings::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))));
        for revision in 1..=count {
            let key = format!("phrase {revision}");
            let key = KeyParts {
                namespace: "n",
                kind: 1,
                key: &key,
                qualifier: "q",
                user_id: "",
            };
            held.put(Envelope::new(key, &revision.to_le_bytes(), revision, 5, true));
        }
        let header = Header {
            subscription: 7,
            installation: InstallationId::parse(INSTALLATION).ok(),
            cursor: Cursor {
                epoch: "epoch".into(),
                revision: 9,
                filter_hash: 3,
            },
            written_at: Timestamp::constant(1_700_000_000, 0),
            current_at: Some(Timestamp::constant(1_600_000_000, 0)),
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &header, &held).unwrap();
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<SavedCopy, CopyError> {
        read(bytes, bytes.len() as u64)
    }

    #[test]
    fn a_copy_is_read_as_it_was_written() {
        let copy = parsed(&written(20)).unwrap();
        assert_eq!(copy.header.installation, InstallationId::parse(INSTALLATION).ok());
        assert_eq!(
            copy.header.cursor,
            Cursor {
                epoch: "epoch".into(),
                revision: 9,
                filter_hash: 3
            }
        );
        assert_eq!(
            copy.header.current_at,
            Some(Timestamp::constant(1_600_000_000, 0))
        );
        assert_eq!(copy.held.len(), 20);
        for SavedResource {
            key, value, revision, ..
        } in &copy.held
        {
            assert_eq!(KeyParts::unpack(key).unwrap().key, format!("phrase {revision}"));
            assert_eq!(**value, revision.to_le_bytes());
        }
    }

    #[test]
    fn a_truncated_copy_is_refused() {
        let bytes = written(3);
        for length in 0..bytes.len() {
            assert!(parsed(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_copy_with_a_flipped_bit_is_refused() {
        let bytes = written(3);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(parsed(&flipped).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn other_files_and_versions_are_refused_with_the_reason() {
        assert!(matches!(parsed(b""), Err(CopyError::NotACopy)));
        assert!(matches!(parsed(b"SQLite format 3\0"), Err(CopyError::NotACopy)));
        let mut newer = written(1);
        newer[8] = 3;
        assert!(matches!(parsed(&newer), Err(CopyError::UnknownVersion(3))));
        let mut longer = written(1);
        longer.push(0);
        assert!(matches!(
            parsed(&longer),
            Err(CopyError::Damaged("it has extra bytes at its end"))
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_without_a_panic(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(parsed(&tail).is_err());
            let mut bytes = written(0)[..12].to_vec();
            bytes.extend(tail);
            prop_assert!(parsed(&bytes).is_err());
        }
    }
}
