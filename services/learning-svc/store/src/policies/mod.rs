//! What is stored of policies: every version that was ever set.

pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Kind, Namespace, Policy, ResourceKey};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::actor::Actor;

type Result<T> = std::result::Result<T, StoreError>;

/// The namespace and kind a policy applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyKey {
    /// The search application.
    pub namespace: Namespace,
    /// The kind.
    pub kind: Kind,
}

impl PolicyKey {
    /// The key of the policy that applies to a resource key.
    pub fn of(key: &ResourceKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            kind: key.kind,
        }
    }
}

/// A policy as stored; if never changed, the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// The policy.
    pub policy: Policy,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
}

/// A policy to store as the newest version.
#[derive(Debug, Clone)]
pub struct PolicyWrite {
    /// The namespace and kind it applies to.
    pub key: PolicyKey,
    /// The policy; its version is one above the newest.
    pub policy: Policy,
    /// Who changed it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// When it was changed, by the service's clock.
    pub updated_at: Timestamp,
}

/// Policies in a unit of work.
#[async_trait]
pub trait PolicyRepository: Send {
    /// The policies in force.
    async fn in_force(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>>;

    /// The policy in force, and when it was changed.
    async fn stored(&mut self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// Stores a new version; a conflict if it is already stored.
    async fn save(&mut self, policy: &PolicyWrite) -> Result<()>;
}

/// Policies outside units of work.
#[async_trait]
pub trait PolicyStore: Send + Sync {
    /// The policy in force.
    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy>;

    /// The kinds of a namespace that their policies freeze.
    async fn frozen(&self, namespace: &Namespace) -> Result<Vec<Kind>>;
}
