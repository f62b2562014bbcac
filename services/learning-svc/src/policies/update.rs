//! Policies: what it takes to learn something, per namespace and kind.

use emend_base::Error;
use emend_core::Policy;
use learning_store::{
    actor::Actor,
    policies::{PolicyKey, PolicyWrite, StoredPolicy},
};

use crate::{etag, failure::Failure, policies::Policies};

/// A policy as callers see it.
#[derive(Debug, Clone)]
pub struct PolicyInForce {
    /// The namespace and kind it applies to.
    pub key: PolicyKey,
    /// As stored.
    pub stored: StoredPolicy,
    /// Contests still to be re-evaluated by it.
    pub remaining: u64,
}

/// A change of a policy.
pub struct PolicyUpdate {
    /// The namespace and kind it applies to.
    pub key: PolicyKey,
    /// Only if it still has this etag.
    pub etag: Option<String>,
    /// Who changes it.
    pub actor: Actor,
    /// The reason given.
    pub reason: Option<String>,
    /// Sets the fields to change.
    pub change: Box<dyn Fn(&mut Policy) + Send + Sync>,
}

impl std::fmt::Debug for PolicyUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyUpdate")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Policies {
    /// The policy in force.
    pub async fn policy(&self, key: &PolicyKey) -> Result<PolicyInForce, Error> {
        let stored = self.store.policy(key).await?;
        let remaining = self
            .store
            .reevaluation_remaining(key, stored.policy.version)
            .await?;
        Ok(PolicyInForce {
            key: key.clone(),
            stored,
            remaining,
        })
    }

    /// Changes a policy and returns; pending contests are re-evaluated in the background.
    pub async fn update_policy(&self, update: &PolicyUpdate) -> Result<PolicyInForce, Error> {
        self.decisions.retry(|| self.try_update_policy(update)).await?;
        self.changed.notify_one();
        self.policy(&update.key).await
    }

    async fn try_update_policy(&self, update: &PolicyUpdate) -> Result<(), Failure> {
        let mut tx = self.store.begin().await?;
        let before = tx.policies().stored(&update.key).await?.policy;
        etag::check(update.etag.as_deref(), &etag::of_version(before.version))?;
        let policy = changed(update, &before)?;
        if policy.version == before.version {
            return Ok(());
        }
        tx.policies()
            .save(&PolicyWrite {
                key: update.key.clone(),
                policy,
                actor: update.actor.clone(),
                reason: update.reason.clone().unwrap_or_default(),
                updated_at: self.decisions.clock.now(),
            })
            .await?;
        tx.commit().await?;
        Ok(())
    }
}

/// The policy after an update, which is a new version if it changes anything.
pub(super) fn changed(update: &PolicyUpdate, before: &Policy) -> Result<Policy, Error> {
    let mut policy = before.clone();
    (update.change)(&mut policy);
    policy.validate().map_err(nested)?;
    if policy != *before {
        policy.version = before.version + 1;
    }
    Ok(policy)
}

fn nested(violations: emend_core::Violations) -> emend_core::Violations {
    let mut nested = emend_core::Violations::new();
    nested.nest("policy", violations);
    nested
}
