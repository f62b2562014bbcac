//! All that a node can answer with, for who hands it on.

use std::sync::PoisonError;

use emend_core::ResourceValue;
use emend_proto::{common::v1::ResourceKey, learning::v1::Cursor};

use super::NodeHandle;

/// All that a node can answer with, of one state.
#[derive(Debug, Clone, Default)]
pub struct LearnedState {
    /// The state of the log; `None` before the first one.
    pub position: Option<Cursor>,
    /// Every resource that the node can use, in no particular order.
    pub resources: Vec<LearnedResource>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedResource {
    /// Its key.
    pub key: ResourceKey,
    /// The revision that set its value.
    pub revision: i64,
    /// Its value.
    pub value: ResourceValue,
}

impl NodeHandle {
    /// The state of the log that the node holds; `None` before the first one.
    pub fn position(&self) -> Option<Cursor> {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.replica.position().cloned()
    }

    /// All that the node can answer with now. The view answers from this state or from a newer one. It copies and decodes
    /// everything: for who needs all of it, and now and then.
    pub fn learned(&self) -> LearnedState {
        // Cloned under the lock, which is cheap, and read without it.
        let (position, held) = {
            let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            (engine.replica.position().cloned(), engine.replica.held().clone())
        };
        let usable = held.iter().filter(|envelope| envelope.is_usable());
        let resources = usable.filter_map(|envelope| {
            Some(LearnedResource {
                key: envelope.key().to_key(),
                revision: envelope.revision(),
                value: emend_wire::value::decode(envelope.value()).ok()?,
            })
        });
        LearnedState {
            position,
            resources: resources.collect(),
        }
    }
}
