//! A resource's key as bytes: one allocation instead of four strings, for tables with a million entries.

use emend_proto::common::v1::ResourceKey;

/// The parts of a key as received, even of kinds and namespaces unknown to this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyParts<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) kind: i32,
    pub(crate) key: &'a str,
    pub(crate) qualifier: &'a str,
    pub(crate) user_id: &'a str,
}

impl<'a> KeyParts<'a> {
    pub(crate) fn of(key: &'a ResourceKey) -> Self {
        Self {
            namespace: &key.namespace,
            kind: key.kind,
            key: &key.key,
            qualifier: &key.qualifier,
            user_id: &key.user_id,
        }
    }

    /// The whole key, where a chunk of a snapshot says for all its keys what they leave out.
    pub(crate) fn in_chunk(self, namespace: &'a str, kind: i32) -> Self {
        Self {
            namespace: if self.namespace.is_empty() {
                namespace
            } else {
                self.namespace
            },
            kind: if self.kind == 0 { kind } else { self.kind },
            ..self
        }
    }

    pub(crate) fn to_key(self) -> ResourceKey {
        ResourceKey {
            namespace: self.namespace.to_owned(),
            kind: self.kind,
            key: self.key.to_owned(),
            qualifier: self.qualifier.to_owned(),
            user_id: self.user_id.to_owned(),
        }
    }

    /// Appends the kind (i32 little-endian), then each text preceded by its length (u32 little-endian).
    pub(crate) fn pack_into(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        for text in [self.namespace, self.key, self.qualifier, self.user_id] {
            let length = u32::try_from(text.len()).expect("invariant: no message is larger than 16 MiB");
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// Reads what [`KeyParts::pack_into`] wrote; `None` for anything else.
    pub(crate) fn unpack(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first_chunk()?;
        let mut text = || {
            let (length, after) = rest.split_first_chunk()?;
            let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            std::str::from_utf8(text).ok()
        };
        let parts = Self {
            kind: i32::from_le_bytes(*kind),
            namespace: text()?,
            key: text()?,
            qualifier: text()?,
            user_id: text()?,
        };
        rest.is_empty().then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packed_key_is_unpacked_unchanged(
            namespace in "\\PC{0,5}", kind in any::<i32>(), key in "\\PC{0,9}", qualifier in "\\PC{0,5}", user_id in "\\PC{0,5}",
        ) {
            let parts = KeyParts {
                namespace: &namespace, kind, key: &key, qualifier: &qualifier, user_id: &user_id,
            };
            let mut bytes = Vec::new();
            parts.pack_into(&mut bytes);
            prop_assert_eq!(KeyParts::unpack(&bytes), Some(parts));
            bytes.push(0);
            prop_assert_eq!(KeyParts::unpack(&bytes), None);
        }

        #[test]
        fn unpacking_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = KeyParts::unpack(&bytes);
        }
    }
}
