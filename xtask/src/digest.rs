//! Digests of what is packed and generated.

use sha2::{Digest as _, Sha256};

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}
