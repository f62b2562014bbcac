//! What a node holds, resource by resource, for tests that compare it with what the server stored.

use std::{collections::BTreeMap, sync::PoisonError};

use emend_core::Digest;
use emend_proto::{common::v1::ResourceKey, learning::v1::Cursor};

use super::NodeHandle;
use crate::replica::Group;

/// All that a node holds at one moment, also what it cannot use.
#[derive(Debug, Clone)]
pub struct Holding {
    /// Of what state of the log it is; none: nothing came yet.
    pub position: Option<Cursor>,
    /// Every resource, in no order.
    pub resources: Vec<HeldResource>,
    /// The digests that the node compares with the server's, of all groups that are not empty.
    pub digests: BTreeMap<Group, Digest>,
}

/// A resource as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldResource {
    /// Its key.
    pub key: ResourceKey,
    /// The revision that gave it its value.
    pub revision: i64,
    /// The encoded value.
    pub value: Vec<u8>,
}

impl NodeHandle {
    /// What the node holds now.
    pub fn holding(&self) -> Holding {
        // Copied under the lock, which is cheap, and looked at without.
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
