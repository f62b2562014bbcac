//! The held resources that this node cannot use.

use std::collections::BTreeMap;

use super::{decode::Rejection, holdings::Envelope, key::KeyParts};

/// The rejected resources, by revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejected(BTreeMap<(i64, Box<[u8]>), Rejection>);

impl Rejected {
    pub(crate) fn insert(&mut self, envelope: &Envelope, why: Rejection) {
        self.0
            .insert((envelope.revision(), envelope.packed_key().into()), why);
    }

    /// Removes a resource that is no longer held, if it was rejected.
    pub(crate) fn remove(&mut self, envelope: &Envelope) {
        if !envelope.is_usable() {
            self.0
                .remove(&(envelope.revision(), envelope.packed_key().into()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (KeyParts<'_>, i64, &Rejection)> {
        self.0
            .iter()
            .rev()
            .filter_map(|((revision, packed), why)| Some((KeyParts::unpack(packed)?, *revision, why)))
    }
}
