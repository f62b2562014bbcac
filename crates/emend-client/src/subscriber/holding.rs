//! Everything a node holds, for tests that compare it with what the server stored.

use std::{collections::BTreeMap, sync::PoisonError};

use emend_core::Digest;
use emend_proto::{common::v1::ResourceKey, learning::v1::Cursor};

use super::NodeHandle;
use crate::replica::Group;

/// All that a node holds at one moment, including resources it cannot use.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The state of the log that is held; `None` before the first one.
    pub position: Option<Cursor>,
    /// Every resource, in no particular order.
    pub resources: Vec<HeldResource>,
    /// The digests that the node compares with the server's, for every non-empty group.
    pub digests: BTreeMap<Group, Digest>,
}

/// A resource as received.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldResource {
    /// Its key.
    pub key: ResourceKey,
    /// The revision that set its value.
    pub revision: i64,
    /// The encoded value.
    pub value: Vec<u8>,
}

impl NodeHandle {
    /// What the node holds now.
    pub fn holding(&self) -> Holding {
        // Cloned under the lock, which is cheap, and read without it.
        let (position, held) = {
            let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            (engine.replica.position().cloned(), engine.replica.held().clone())
        };
        let resources = held.iter().map(|envelope| {
            let key = envelope.key();
            HeldResource {
                key: ResourceKey {
                    namespace: key.namespace.to_owned(),
                    kind: key.kind,
                    key: key.key.to_owned(),
                    qualifier: key.qualifier.to_owned(),
                    user_id: key.user_id.to_owned(),
                },
                revision: envelope.revision(),
                value: envelope.value().to_vec(),
            }
        });
        Holding {
            position,
            resources: resources.collect(),
            digests: held.digests().clone(),
        }
    }
}
