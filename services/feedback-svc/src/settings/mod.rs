//! Settings: what feedback-svc does with the feedback of one namespace. Each change is a version of its own.

pub(crate) mod grpc;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use emend_base::Error;
use emend_core::Namespace;
use emend_store::StoreError;
use feedback_store::{
    ports::SettingsStore,
    records::settings::{Settings, SettingsUpdate},
};
use tokio::sync::Notify;

/// Reads and changes settings.
#[derive(Debug)]
pub(crate) struct NamespaceSettings {
    pub(crate) store: Arc<dyn SettingsStore>,
    /// Wakes the worker that redacts what is too old.
    pub(crate) wake: Arc<Notify>,
}

impl NamespaceSettings {
    /// The settings in force.
    pub(crate) async fn get(&self, namespace: Namespace) -> Result<Settings, Error> {
        let stored = self.store.settings(&namespace).await?;
        Ok(stored.unwrap_or_else(|| Settings::default_of(namespace)))
    }

    /// Changes settings; an update that changes nothing makes no version.
    pub(crate) async fn update(&self, update: &SettingsUpdate) -> Result<Settings, Error> {
        let before = self.get(update.namespace.clone()).await?;
        if update.etag.as_ref().is_some_and(|etag| *etag != before.etag()) {
            return Err(changed());
        }
        let mut after = before.clone();
        update.personal_retention.apply(&mut after.personal_retention);
        update.rated_targets.apply(&mut after.rated_targets);
        update.query_retention.apply(&mut after.query_retention);
        update.max_queries.apply(&mut after.max_queries);
        update.rating_limits.apply(&mut after.rating_limits);
        if after == before {
            return Ok(before);
        }
        after.version += 1;
        match self.store.save(&after, update).await {
            // Somebody else stored this version first.
            Err(StoreError::Conflict(_)) => return Err(changed()),
            other => other?,
        }
        // What is too old now is redacted at once.
        self.wake.notify_one();
        self.get(update.namespace.clone()).await
    }
}

fn changed() -> Error {
    Error::Aborted {
        reason: "ETAG_MISMATCH",
        message: "the settings have changed since they were read; read them again".to_owned(),
    }
}
