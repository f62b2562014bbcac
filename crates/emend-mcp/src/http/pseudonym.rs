//! Names for callers that have none: the same on every replica and after each start, and nothing is learned from them of a token.

use std::fmt::Write as _;

use ring::hmac::{HMAC_SHA256, Key, sign};

/// The bytes of a name: two callers with one name are not to be expected.
const BYTES: usize = 16;

/// The name of whom these parts say: 32 hexadecimal digits, by a keyed hash.
pub fn pseudonym(key: &[u8], parts: &[&[u8]]) -> String {
    let key = Key::new(HMAC_SHA256, key);
    let mut said = Vec::new();
    for part in parts {
        // With its length before it no part is taken for the end of another.
        said.extend_from_slice(&(part.len() as u64).to_be_bytes());
        said.extend_from_slice(part);
    }
    let tag = sign(&key, &said);
    let mut name = String::with_capacity(2 * BYTES);
    for byte in tag.as_ref().iter().take(BYTES) {
        // Writing to a String can't fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_depends_on_the_key_and_on_each_part() {
        let of = |key: &[u8], parts: &[&str]| {
            let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
            pseudonym(key, &parts)
        };
        let name = of(b"key", &["ana", "editor"]);
        assert_eq!(name.len(), 32);
        assert_eq!(name, of(b"key", &["ana", "editor"]));
        for other in [
            of(b"another", &["ana", "editor"]),
            of(b"key", &["anae", "ditor"]),
            of(b"key", &["ana", "editor", ""]),
            of(b"key", &["ana", "shell"]),
        ] {
            assert_ne!(name, other);
        }
    }
}
