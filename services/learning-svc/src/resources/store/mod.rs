//! What is stored of resources, what applies now: their values, and how many there are.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{ResourceKey, Revision};
use emend_store::StoreError;

use crate::policies::store::PolicyKey;

type Result<T> = std::result::Result<T, StoreError>;

/// A resource to write.
#[derive(Debug, Clone)]
pub struct ResourceWrite {
    /// The resource.
    pub key: ResourceKey,
    /// The revision that gave it this value.
    pub revision: Revision,
    /// The encoded value; none: it is deleted.
    pub value: Option<Bytes>,
}

/// What a unit of work does to resources.
#[derive(Debug, Clone, Default)]
pub struct ResourceWrites {
    /// Inserted, replaced or deleted.
    pub resources: Vec<ResourceWrite>,
    /// By how much the number of resources changes.
    pub counts: BTreeMap<PolicyKey, i64>,
    /// The database's time under the head's lock, in microseconds since 1970.
    pub committed_at: i64,
}

/// Resources in a unit of work.
#[async_trait]
pub trait ResourceRepository: Send {
    /// How many resources there are.
    async fn counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>>;

    /// How many scopes, each a kind in a namespace, hold any resources.
    async fn scopes_in_use(&mut self) -> Result<u64>;

    /// Writes resources, under the head's lock. Returns the new number of resources for each key in `counts`.
    async fn save(&mut self, writes: &ResourceWrites) -> Result<HashMap<PolicyKey, u64>>;
}
