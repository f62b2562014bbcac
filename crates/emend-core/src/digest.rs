//! Whether two parties hold the same resources: an order-free, incremental hash of sets.
//!
//! The hash of a group is the sum modulo 2^128 of one XXH3-128 per resource, so adding or removing a resource is one
//! addition or subtraction, in any order. (Additive multiset hashing: Clarke et al., "Incremental Multiset Hash
//! Functions and Their Application to Memory Integrity Checking", 2003. XXH3 does not resist deliberate collisions;
//! digests guard against faults, not against forgery.)

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::ids::length_prefixed;

/// The checksum of a value's encoded bytes: XXH3-64.
pub fn value_checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The fields of a resource that enter its group's digest. The kind is a number, so that unknown kinds are included.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// The search application.
    pub namespace: &'a str,
    /// The kind's number on the wire.
    pub kind: i32,
    /// The normalised key.
    pub key: &'a str,
    /// The qualifier, or empty.
    pub qualifier: &'a str,
    /// The user, or empty.
    pub user_id: &'a str,
    /// The revision that gave it its value.
    pub revision: i64,
    /// The checksum of the value's bytes as stored.
    pub value_checksum: u64,
}

impl Item<'_> {
    /// The bytes that are hashed.
    fn hashed(&self) -> Vec<u8> {
        length_prefixed(&[
            self.namespace.as_bytes(),
            &self.kind.to_le_bytes(),
            self.key.as_bytes(),
            self.qualifier.as_bytes(),
            self.user_id.as_bytes(),
            &self.revision.to_le_bytes(),
            &self.value_checksum.to_le_bytes(),
        ])
    }

    fn hash(&self) -> u128 {
        xxh3_128(&self.hashed())
    }
}

/// The digest of one group: (namespace, kind, user-scoped or not).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    /// Number of resources.
    pub count: i64,
    /// The sum of their hashes.
    pub sum: u128,
}

impl Digest {
    /// Adds a resource.
    pub fn add(&mut self, item: &Item<'_>) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(item.hash());
    }

    /// Removes a resource.
    pub fn remove(&mut self, item: &Item<'_>) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(item.hash());
    }

    /// The sum in its wire form: 16 bytes, big-endian.
    pub fn bytes(&self) -> [u8; 16] {
        self.sum.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn item(key: &str, revision: i64) -> Item<'_> {
        Item {
            namespace: "fund-admin",
            kind: 1,
            key,
            qualifier: "",
            user_id: "",
            revision,
            value_checksum: value_checksum(b"value"),
        }
    }

    /// What clients in other languages are held against, too.
    const VECTORS: &str = include_str!("../../../conformance/digests.jsonl");

    /// The bytes that hexadecimal digits stand for.
    fn bytes(hex: &Value) -> Vec<u8> {
        let digits = hex.as_str().expect("a text").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn the_published_vectors_hold() {
        let mut lines = 0;
        for line in VECTORS.lines() {
            let vector: Value = serde_json::from_str(line).unwrap();
            let (listed, answer) = (&vector["input"]["items"], &vector["answer"]);
            let mut digest = Digest::default();
            for (listed, told) in listed
                .as_array()
                .unwrap()
                .iter()
                .zip(answer["items"].as_array().unwrap())
            {
                let text = |name: &str| listed[name].as_str().unwrap();
                let stated = || u64::from_str_radix(text("value_checksum"), 16).unwrap();
                let item = Item {
                    namespace: text("namespace"),
                    kind: i32::try_from(listed["kind"].as_i64().unwrap()).unwrap(),
                    key: text("key"),
                    qualifier: text("qualifier"),
                    user_id: text("user_id"),
                    revision: text("revision").parse().unwrap(),
                    value_checksum: listed
                        .get("value_bytes")
                        .map_or_else(stated, |value| value_checksum(&bytes(value))),
                };
                let checksum = format!("{:016x}", item.value_checksum);
                assert_eq!(told["value_checksum"], checksum, "{line}");
                assert_eq!(item.hashed(), bytes(&told["hashed_bytes"]), "{line}");
                assert_eq!(told["hash"], format!("{:032x}", item.hash()), "{line}");
                digest.add(&item);
            }
            assert_eq!(digest.count, answer["count"].as_i64().unwrap(), "{line}");
            assert_eq!(digest.bytes().to_vec(), bytes(&answer["hash"]), "{line}");
            lines += 1;
        }
        assert!(lines > 5);
    }

    proptest! {
        #[test]
        fn order_never_matters_and_removing_an_item_undoes_adding_it(
            mut keys in proptest::collection::vec(("[a-z]{1,8}", 1i64..100), 1..20),
            extra in "[A-Z]{1,8}",
        ) {
            let mut forwards = Digest::default();
            for (key, revision) in &keys {
                forwards.add(&item(key, *revision));
            }
            let mut backwards = Digest::default();
            backwards.add(&item(&extra, 1));
            keys.reverse();
            for (key, revision) in &keys {
                backwards.add(&item(key, *revision));
            }
            prop_assert_ne!(forwards, backwards);
            backwards.remove(&item(&extra, 1));
            prop_assert_eq!(forwards, backwards);
        }
    }
}
