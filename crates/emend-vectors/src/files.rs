//! The files of a directory of vectors, and their hash.

use std::{fmt::Write as _, fs, path::Path};

use sha2::{Digest as _, Sha256};

use crate::{MAX_BYTES, ReadError};

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let failed = |error| ReadError::File {
        path: path.to_owned(),
        error,
    };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > MAX_BYTES {
        return Err(ReadError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    fs::read(path).map_err(failed)
}

/// The SHA-256 of files, one after the other, in hexadecimal digits.
pub(crate) fn hash(files: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file);
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        // A `String` takes what is written.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
