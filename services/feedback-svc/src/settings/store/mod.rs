//! The port of settings.

use std::fmt::Debug;

use async_trait::async_trait;
use emend_core::Namespace;
use emend_store::StoreError;

use super::{Settings, SettingsUpdate};

/// Keeps settings, version by version.
#[async_trait]
pub(crate) trait SettingsStore: Send + Sync + Debug {
    /// The settings in force; none if none were set.
    async fn settings(&self, namespace: &Namespace) -> Result<Option<Settings>, StoreError>;

    /// Stores a new version; a conflict if it is stored already.
    async fn save(&self, settings: &Settings, update: &SettingsUpdate) -> Result<(), StoreError>;
}
