//! Static bearer tokens: random texts, of which only hashes are kept.
//!
//! A token has 256 bits of randomness, so a plain SHA-256 of it can't be reversed: slow hashes are for passwords.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use emend_base::entropy::Entropy;
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

/// The prefix of every token, by which scanners for leaked secrets recognise it.
const PREFIX: &str = "emend_";
/// How many random bytes a token has.
const BYTES: usize = 32;

/// A new token. Its text is shown once and stored nowhere.
pub fn mint(entropy: &Entropy) -> String {
    let mut bytes = [0; BYTES];
    entropy.fill(&mut bytes);
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The SHA-256 of a token's text.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token's text.
    pub fn of(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    /// From 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Whether they are equal, in a time independent of where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// The hash as a map key.
    pub(super) fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_equals_that_of_sha256sum() {
        // printf %s abc | sha256sum
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TokenHash::of("abc").to_string(), known);
        assert!(TokenHash::parse(known).unwrap().matches(&TokenHash::of("abc")));
        assert!(!TokenHash::parse(known).unwrap().matches(&TokenHash::of("abd")));
        for bad in [
            "",
            "ba78",
            &known.replace('b', "x"),
            &format!("{known}00"),
            &"é".repeat(32),
        ] {
            assert!(TokenHash::parse(bad).is_none(), "{bad}");
        }
        let signs = format!("+1{}", &known[2..]);
        assert!(TokenHash::parse(&signs).is_none(), "no digits");
    }

    #[test]
    fn tokens_are_long_and_unique() {
        let (one, other) = (mint(&Entropy::system()), mint(&Entropy::system()));
        assert_ne!(one, other);
        assert!(one.starts_with(PREFIX) && one.len() == PREFIX.len() + 43, "{one}");
    }
}
