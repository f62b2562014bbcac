//! Storage. [`records`] is what is stored, [`ports`] what the use cases need of a database. Two stores fulfil all of them, and one in
//! memory, for tests, those that the simulation uses; one contract suite holds them to the same behaviour. [`audit`] reads
//! everything and checks it.
//!
//! Portable SQL is written once and compiled within [`sqlite`] and [`postgres`], which hold what differs.

pub mod audit;
mod chunks;
#[cfg(test)]
mod contract;
mod holders;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod memory;
pub(crate) mod ports;
mod postgres;
pub(crate) mod records;
pub(crate) mod rows;
mod sql;
mod sqlite;

use std::{path::Path, sync::Arc};

use emend_base::Entropy;
use emend_store::DatabaseUrl;
pub(crate) use emend_store::{Connections, StoreError};

use self::ports::{
    Backlog, Claimed, Connected, CorrectionStore, ErasureStore, FeedbackStore, Inserted, LONGEST_WAIT,
    OutboxStore, QueryStore, RatingStore, Retracted, SettingsStore, Settlement,
};
#[cfg(feature = "fuzzing")]
pub(crate) use self::rows::fuzzing;
pub(crate) use self::{postgres::PostgresStore, sqlite::SqliteStore};

/// Everything the service needs of its database.
pub(crate) trait Store:
    FeedbackStore + ErasureStore + SettingsStore + QueryStore + RatingStore + Connected
{
}

impl<S: FeedbackStore + ErasureStore + SettingsStore + QueryStore + RatingStore + Connected> Store for S {}

/// Opens a database and migrates it. The caller holds the lock on the directory of a file.
pub(crate) async fn open(
    database: &DatabaseUrl,
    postgres_connections: u32,
    entropy: &Entropy,
) -> Result<Arc<dyn Store>, StoreError> {
    match database {
        DatabaseUrl::Sqlite(path) => open_sqlite(path, entropy).await,
        DatabaseUrl::Postgres(url) => PostgresStore::open(url, postgres_connections, entropy.clone())
            .await
            .map(|store| Arc::new(store) as _),
    }
}

async fn open_sqlite(path: &Path, entropy: &Entropy) -> Result<Arc<dyn Store>, StoreError> {
    let store = SqliteStore::open(path, entropy.clone()).await?;
    let released = store.release_leases().await?;
    if released > 0 {
        tracing::info!(released, "events leased by the previous process are due now");
    }
    Ok(Arc::new(store))
}
