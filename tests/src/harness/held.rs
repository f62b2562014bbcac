//! The resources that a party holds, and their digests.

use std::{collections::BTreeMap, fmt};

use emend_core::digest::{Digest as Sum, Item, value_checksum};
use emend_proto::{common::v1::ResourceKey, learning::v1::Digest};

/// A resource key that can be kept in maps, ordered as in the stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The search application.
    pub namespace: String,
    /// The kind's number.
    pub kind: i32,
    /// The normalised key.
    pub key: String,
    /// The qualifier, or empty.
    pub qualifier: String,
    /// The user, or empty.
    pub user_id: String,
}

impl From<&ResourceKey> for Key {
    fn from(key: &ResourceKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            kind: key.kind,
            key: key.key.clone(),
            qualifier: key.qualifier.clone(),
            user_id: key.user_id.clone(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            kind,
            key,
            qualifier,
            user_id,
        } = self;
        write!(f, "{namespace}/{kind}/{key:?}/{qualifier:?}/{user_id:?}")
    }
}

/// The part of a resource that must be the same wherever it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The revision that gave it its value.
    pub revision: i64,
    /// The encoded value, as stored.
    pub value: Vec<u8>,
}

/// The groups that digests are made of: namespace, kind, user-scoped or not.
pub type Group = (String, i32, bool);

/// The digests of a set of held resources.
pub fn sums_of(held: &BTreeMap<Key, Held>) -> BTreeMap<Group, Sum> {
    let mut sums: BTreeMap<Group, Sum> = BTreeMap::new();
    for (key, held) in held {
        sums.entry(group(key)).or_default().add(&Item {
            namespace: &key.namespace,
            kind: key.kind,
            key: &key.key,
            qualifier: &key.qualifier,
            user_id: &key.user_id,
            revision: held.revision,
            value_checksum: value_checksum(&held.value),
        });
    }
    sums
}

/// The group that a key belongs to.
pub fn group(key: &Key) -> Group {
    (key.namespace.clone(), key.kind, !key.user_id.is_empty())
}

/// A digest as received.
///
/// # Panics
/// If its hash is not 16 bytes long.
pub fn sum(digest: &Digest) -> (Group, Sum) {
    let bytes: [u8; 16] = digest.hash[..].try_into().expect("16 bytes");
    (
        (digest.namespace.clone(), digest.kind, digest.user_scoped),
        Sum {
            count: digest.count,
            sum: u128::from_be_bytes(bytes),
        },
    )
}
