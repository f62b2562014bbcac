//! The portable SQL of installations. Written once, compiled for each database.

use async_trait::async_trait;
use emend_core::InstallationId;
use emend_store::CorruptRow;
use uuid::Uuid;

use super::super::StoreError;
use super::Backend;
use crate::store::ports::{InstallationState, InstallationStore};

type Result<T> = std::result::Result<T, StoreError>;

fn parsed(bytes: &[u8]) -> Result<InstallationId> {
    let id =
        Uuid::from_slice(bytes).map_err(|error| CorruptRow::new("installation", "delivers_to", 1, error))?;
    Ok(InstallationId(id))
}

#[async_trait]
impl InstallationStore for Backend {
    async fn installation(&self) -> Result<Option<InstallationState>> {
        let found: Option<(Option<Vec<u8>>,)> =
            sqlx::query_as("SELECT delivers_to FROM installation WHERE one = 1")
                .fetch_optional(&mut *self.reader().await?)
                .await?;
        let Some((delivers_to,)) = found else {
            return Ok(None);
        };
        Ok(Some(InstallationState {
            delivers_to: delivers_to.as_deref().map(parsed).transpose()?,
        }))
    }

    async fn begin(&self) -> Result<()> {
        sqlx::query(
            "INSERT INTO installation (one, begun_at) VALUES (1, (SELECT now FROM database_clock))
             ON CONFLICT (one) DO NOTHING",
        )
        .execute(&mut *self.writer().await?)
        .await?;
        Ok(())
    }

    async fn deliver_to(&self, installation: InstallationId) -> Result<InstallationId> {
        let remembered: Vec<u8> = sqlx::query_scalar(
            "UPDATE installation SET delivers_to = COALESCE(delivers_to, $1) WHERE one = 1 RETURNING delivers_to",
        )
        .bind(installation.0.as_bytes().as_slice())
        .fetch_one(&mut *self.writer().await?)
        .await?;
        parsed(&remembered)
    }

    async fn accept(&self, installation: InstallationId) -> Result<()> {
        sqlx::query("UPDATE installation SET delivers_to = $1 WHERE one = 1")
            .bind(installation.0.as_bytes().as_slice())
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(())
    }
}
