//! All resources of the filter exactly as received, including those this node cannot use, with their digests.
//!
//! Cloning is cheap: clones share all shards, and a change copies only the shard it touches. So a copy can be written
//! to disk while updates continue.

use std::{collections::BTreeMap, sync::Arc};

use emend_core::digest::{Digest, Item};
use hashbrown::HashTable;

use super::key::KeyParts;
use crate::keyed_hash::KeyedHash;

const SHARDS: usize = 256;

/// Resources that share a digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The search application.
    pub namespace: String,
    /// The kind's number.
    pub kind: i32,
    /// Whether they are users' own (true) or everybody's (false).
    pub user_scoped: bool,
}

impl Group {
    fn of(key: KeyParts<'_>) -> Self {
        Self {
            namespace: key.namespace.to_owned(),
            kind: key.kind,
            user_scoped: !key.user_id.is_empty(),
        }
    }
}

/// One resource as received.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    /// The packed key, then the value's bytes.
    bytes: Arc<[u8]>,
    key_length: u32,
    usable: bool,
    revision: i64,
    value_checksum: u64,
}

impl Envelope {
    pub(crate) fn new(
        key: KeyParts<'_>,
        value: &[u8],
        revision: i64,
        value_checksum: u64,
        usable: bool,
    ) -> Self {
        let texts = key.namespace.len() + key.key.len() + key.qualifier.len() + key.user_id.len();
        let mut bytes = Vec::with_capacity(20 + texts + value.len());
        key.pack_into(&mut bytes);
        let key_length = u32::try_from(bytes.len()).expect("invariant: no message is larger than 16 MiB");
        bytes.extend_from_slice(value);
        Self {
            bytes: bytes.into(),
            key_length,
            usable,
            revision,
            value_checksum,
        }
    }

    pub(crate) fn key(&self) -> KeyParts<'_> {
        KeyParts::unpack(self.packed_key()).expect("invariant: an envelope is made of a packed key")
    }

    pub(crate) fn packed_key(&self) -> &[u8] {
        &self.bytes[..self.key_length as usize]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.key_length as usize..]
    }

    pub(crate) fn revision(&self) -> i64 {
        self.revision
    }

    pub(crate) fn value_checksum(&self) -> u64 {
        self.value_checksum
    }

    /// Whether this node can use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }

    fn item(&self) -> Item<'_> {
        let KeyParts {
            namespace,
            kind,
            key,
            qualifier,
            user_id,
        } = self.key();
        let Self {
            revision,
            value_checksum,
            ..
        } = *self;
        Item {
            namespace,
            kind,
            key,
            qualifier,
            user_id,
            revision,
            value_checksum,
        }
    }
}

/// All resources.
#[derive(Debug, Clone)]
pub(crate) struct Holdings {
    hash: Arc<KeyedHash>,
    shards: Vec<Arc<HashTable<Envelope>>>,
    digests: BTreeMap<Group, Digest>,
    len: usize,
}

impl Holdings {
    pub(crate) fn new(hash: Arc<KeyedHash>) -> Self {
        Self {
            hash,
            shards: vec![Arc::default(); SHARDS],
            digests: BTreeMap::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All resources, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Envelope> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// The digests of all non-empty groups.
    pub(crate) fn digests(&self) -> &BTreeMap<Group, Digest> {
        &self.digests
    }

    /// Puts the resource in place and returns the key's previous one.
    pub(crate) fn put(&mut self, envelope: Envelope) -> Option<Envelope> {
        let previous = self.remove_packed(envelope.packed_key());
        self.digests
            .entry(Group::of(envelope.key()))
            .or_default()
            .add(&envelope.item());
        let Self { hash, shards, .. } = self;
        let at = hash.bytes(envelope.packed_key());
        let shard = Arc::make_mut(&mut shards[shard_of(at)]);
        shard.insert_unique(at, envelope, |envelope| hash.bytes(envelope.packed_key()));
        self.len += 1;
        previous
    }

    /// Removes the key's resource and returns it.
    pub(crate) fn remove(&mut self, key: KeyParts<'_>) -> Option<Envelope> {
        let mut packed = Vec::new();
        key.pack_into(&mut packed);
        self.remove_packed(&packed)
    }

    fn remove_packed(&mut self, packed: &[u8]) -> Option<Envelope> {
        let at = self.hash.bytes(packed);
        let shard = &mut self.shards[shard_of(at)];
        // Checked first, so that the shard is not copied in vain.
        shard.find(at, |envelope| envelope.packed_key() == packed)?;
        let entry = Arc::make_mut(shard)
            .find_entry(at, |envelope| envelope.packed_key() == packed)
            .ok()?;
        let (removed, _) = entry.remove();
        self.len -= 1;
        let group = Group::of(removed.key());
        if let Some(digest) = self.digests.get_mut(&group) {
            digest.remove(&removed.item());
            if digest.count == 0 {
                self.digests.remove(&group);
            }
        }
        Some(removed)
    }
}

/// Uses the middle bits of the hash: the table within a shard uses the lowest and highest.
fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use emend_base::Entropy;
    use proptest::prelude::*;

    use super::*;

    fn holdings() -> Holdings {
        Holdings::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))))
    }

    fn key(id: u8) -> (String, i32, &'static str) {
        (
            format!("phrase {}", id % 8),
            i32::from(id % 3),
            if id.is_multiple_of(2) { "" } else { "jane" },
        )
    }

    proptest! {
        #[test]
        fn holdings_equal_a_map_and_clones_do_not_change(
            steps in proptest::collection::vec((any::<u8>(), 1i64..50, any::<bool>()), 1..60),
        ) {
            let mut held = holdings();
            let mut model = BTreeMap::new();
            for (id, revision, put) in steps {
                let (text, kind, user_id) = key(id);
                let parts = KeyParts { namespace: "n", kind, key: &text, qualifier: "", user_id };
                let before = held.clone();
                let (count, digests) = (before.len(), before.digests().clone());
                if put {
                    held.put(Envelope::new(parts, b"value", revision, 7, true));
                    model.insert((text.clone(), kind, user_id), revision);
                } else {
                    let removed = held.remove(parts).map(|envelope| envelope.revision());
                    prop_assert_eq!(removed, model.remove(&(text.clone(), kind, user_id)));
                }
                prop_assert_eq!(before.iter().count(), count);
                prop_assert_eq!(before.digests(), &digests);

                prop_assert_eq!(held.len(), model.len());
                let mut rebuilt = holdings();
                for ((text, kind, user_id), revision) in &model {
                    let parts = KeyParts { namespace: "n", kind: *kind, key: text, qualifier: "", user_id };
                    rebuilt.put(Envelope::new(parts, b"value", *revision, 7, true));
                }
                prop_assert_eq!(held.digests(), rebuilt.digests());
                prop_assert_eq!(held.iter().count(), model.len());
            }
        }
    }
}
