//! Hashes that nobody outside this process can predict.
//!
//! Tables keyed by user text use XXH3 with secrets drawn at start. Without a secret, anybody who may submit corrections
//! could craft colliding phrases (XXH3 is not a cryptographic hash) and so slow look-ups down or, where a 128-bit hash
//! stands for the phrase itself, make one phrase answer for another. With a secret of 192 random bytes, phrases collide
//! only by chance: among a million phrases with a probability of about 10^-27.

use std::fmt;

use emend_base::Entropy;
use xxhash_rust::xxh3::{SecretInput, xxh3_64_with_secret_input, xxh3_128_with_secret_input};

const SECRET_BYTES: usize = 192;

type Secret = SecretInput<[u8; SECRET_BYTES]>;

/// A family of hash functions, with one secret for each part of a key.
pub(crate) struct KeyedHash {
    namespace: Secret,
    user: Secret,
    phrase: Secret,
}

impl KeyedHash {
    /// Draws the secrets.
    pub(crate) fn new(entropy: &Entropy) -> Self {
        let draw = || {
            let mut secret = [0; SECRET_BYTES];
            entropy.fill(&mut secret);
            SecretInput::new(secret)
        };
        Self {
            namespace: draw(),
            user: draw(),
            phrase: draw(),
        }
    }

    /// Hash of a phrase alone.
    #[inline]
    pub(crate) fn phrase(&self, phrase: &str) -> u128 {
        xxh3_128_with_secret_input(phrase.as_bytes(), &self.phrase)
    }

    /// Hash of a namespace alone.
    #[inline]
    pub(crate) fn namespace(&self, namespace: &str) -> u128 {
        xxh3_128_with_secret_input(namespace.as_bytes(), &self.namespace)
    }

    /// Hash of a user alone. The empty user (everybody) hashes to 0, so that a look-up for everybody hashes nothing
    /// more.
    #[inline]
    pub(crate) fn user(&self, user_id: &str) -> u128 {
        if user_id.is_empty() {
            0
        } else {
            xxh3_128_with_secret_input(user_id.as_bytes(), &self.user)
        }
    }

    /// Hash of all three: the exclusive or of their hashes. Each part has its own secret, so this collides no more
    /// often than a single hash would (tabulation hashing: Zobrist, "A New Hashing Method with Application for Game
    /// Playing", 1970).
    pub(crate) fn entry(&self, namespace: &str, user_id: &str, phrase: &str) -> u128 {
        self.namespace(namespace) ^ self.user(user_id) ^ self.phrase(phrase)
    }

    /// Hash of any bytes, for tables that also compare the bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_secret_input(bytes, &self.phrase)
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash(secret)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_same_texts_in_other_parts_hash_differently() {
        let hash = KeyedHash::new(&Entropy::seeded(1));
        let entries = [
            ("a", "", "b"),
            ("b", "", "a"),
            ("a", "a", "b"),
            ("a", "b", "b"),
            ("b", "b", "b"),
            ("a", "a", "a"),
        ];
        let distinct: HashSet<_> = entries.iter().map(|(n, u, p)| hash.entry(n, u, p)).collect();
        assert_eq!(distinct.len(), entries.len());
    }

    #[test]
    fn two_processes_hash_differently() {
        let one = KeyedHash::new(&Entropy::seeded(1));
        let other = KeyedHash::new(&Entropy::seeded(2));
        assert_ne!(one.phrase("set up a csa"), other.phrase("set up a csa"));
        assert_ne!(one.bytes(b"set up a csa"), other.bytes(b"set up a csa"));
    }
}
