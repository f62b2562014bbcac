//! The port of settings.

use std::fmt::Debug;

use async_trait::async_trait;
use emend_core::Namespace;
use emend_store::StoreError;

use crate::records::settings::{Settings, SettingsUpdate};

/// Knows the settings in force.
#[async_trait]
pub trait ReadSettings: Send + Sync + Debug + 'static {
    /// Those of a namespace; none if none were set.
    async fn settings(&self, namespace: &Namespace) -> Result<Option<Settings>, StoreError>;
}

/// Keeps settings, version by version.
#[async_trait]
pub trait SettingsStore: ReadSettings {
    /// Stores a new version; a conflict if it is stored already.
    async fn save(&self, settings: &Settings, update: &SettingsUpdate) -> Result<(), StoreError>;
}
