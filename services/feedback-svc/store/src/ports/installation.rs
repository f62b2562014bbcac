//! The port of what the database knows of installations.

use std::fmt::Debug;

use async_trait::async_trait;
use emend_core::InstallationId;
use emend_store::StoreError;

/// What a database that was begun knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallationState {
    /// The installation of learning-svc to which events are delivered; none before it answered for the first time.
    pub delivers_to: Option<InstallationId>,
}

/// Remembers to which installation events are delivered.
#[async_trait]
pub trait InstallationStore: Send + Sync + Debug + 'static {
    /// What the database knows; none if it is empty: no service has started on it yet.
    async fn installation(&self) -> Result<Option<InstallationState>, StoreError>;

    /// Begins an empty database; one that was begun stays as it is.
    async fn begin(&self) -> Result<(), StoreError>;

    /// Remembers that events are delivered to this installation, unless another one is remembered. Returns the one that
    /// is remembered from here on.
    async fn deliver_to(&self, installation: InstallationId) -> Result<InstallationId, StoreError>;

    /// Delivers to this installation from here on, whichever was remembered.
    async fn accept(&self, installation: InstallationId) -> Result<(), StoreError>;
}
