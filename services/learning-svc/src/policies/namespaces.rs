//! Policies of namespaces as a whole.

use std::sync::Arc;

use emend_base::Error;
use emend_core::{Namespace, evidence::NamespacePolicy};
use learning_store::{
    Database,
    actor::Actor,
    evidence::{NamespacePolicyWrite, StoredNamespacePolicy},
};

use crate::{decisions::Decisions, etag, failure::Failure};

/// A change of the policy of a namespace.
pub struct NamespacePolicyUpdate {
    /// The search application.
    pub namespace: Namespace,
    /// Only if it still has this etag.
    pub etag: Option<String>,
    /// Who changes it.
    pub actor: Actor,
    /// The reason given.
    pub reason: Option<String>,
    /// Sets the fields to change.
    pub change: Box<dyn Fn(&mut NamespacePolicy) + Send + Sync>,
}

impl std::fmt::Debug for NamespacePolicyUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamespacePolicyUpdate")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// The use cases of policies of namespaces as a whole.
#[derive(Debug, Clone)]
pub struct Namespaces {
    database: Arc<dyn Database>,
    decisions: Arc<Decisions>,
}

impl Namespaces {
    /// On one database.
    pub(crate) fn new(database: Arc<dyn Database>, decisions: Arc<Decisions>) -> Self {
        Self { database, decisions }
    }

    /// The policy of a namespace in force.
    pub async fn policy(&self, namespace: &Namespace) -> Result<StoredNamespacePolicy, Error> {
        Ok(self.database.stored_namespace_policy(namespace).await?)
    }

    /// Changes the policy of a namespace and returns; its domains are verified anew in the background.
    pub async fn update(&self, update: &NamespacePolicyUpdate) -> Result<StoredNamespacePolicy, Error> {
        self.decisions.retry(|| self.try_update(update)).await?;
        self.decisions.evidence_changed.notify_one();
        self.policy(&update.namespace).await
    }

    async fn try_update(&self, update: &NamespacePolicyUpdate) -> Result<(), Failure> {
        let mut tx = self.database.begin_whole().await?;
        let evidence = tx.evidence();
        let before = evidence.namespace_policy(&update.namespace).await?.policy;
        etag::check(update.etag.as_deref(), &etag::of_version(before.version))?;
        let mut policy = before;
        (update.change)(&mut policy);
        if policy == before {
            return Ok(());
        }
        policy.version = before.version + 1;
        evidence
            .save_namespace_policy(&NamespacePolicyWrite {
                namespace: update.namespace.clone(),
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
