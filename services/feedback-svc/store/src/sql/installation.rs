//! SQL of installations.

use async_trait::async_trait;
use emend_core::InstallationId;
use emend_store::{CorruptRow, StoreError, sql::Statement};
use uuid::Uuid;

use super::SqlStore;
use crate::ports::{InstallationState, InstallationStore};

type Result<T> = std::result::Result<T, StoreError>;

fn parsed(bytes: &[u8]) -> Result<InstallationId> {
    let id =
        Uuid::from_slice(bytes).map_err(|error| CorruptRow::new("installation", "delivers_to", 1, error))?;
    Ok(InstallationId(id))
}

#[async_trait]
impl InstallationStore for SqlStore {
    async fn installation(&self) -> Result<Option<InstallationState>> {
        let found: Option<(Option<Vec<u8>>,)> = self
            .pools
            .reader()
            .await?
            .optional(Statement::new(
                "SELECT delivers_to FROM installation WHERE one = 1",
            ))
            .await?;
        let Some((delivers_to,)) = found else {
            return Ok(None);
        };
        Ok(Some(InstallationState {
            delivers_to: delivers_to.as_deref().map(parsed).transpose()?,
        }))
    }

    async fn begin(&self) -> Result<()> {
        let statement = Statement::new(
            "INSERT INTO installation (one, begun_at) VALUES (1, (SELECT now FROM database_clock))
             ON CONFLICT (one) DO NOTHING",
        );
        self.pools.writer().await?.execute(statement).await?;
        Ok(())
    }

    async fn deliver_to(&self, installation: InstallationId) -> Result<InstallationId> {
        let statement = Statement::new(
            "UPDATE installation SET delivers_to = COALESCE(delivers_to, $1) WHERE one = 1 RETURNING delivers_to",
        )
        .bind(installation.0.as_bytes().as_slice());
        let remembered: Vec<u8> = self.pools.writer().await?.value(statement).await?;
        parsed(&remembered)
    }

    async fn accept(&self, installation: InstallationId) -> Result<()> {
        let statement = Statement::new("UPDATE installation SET delivers_to = $1 WHERE one = 1")
            .bind(installation.0.as_bytes().as_slice());
        self.pools.writer().await?.execute(statement).await?;
        Ok(())
    }
}
