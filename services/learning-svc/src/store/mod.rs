//! What learning-svc stores, behind ports shaped by its use cases, on SQLite or PostgreSQL.
//!
//! [`decisions`] is the port of the use cases that decide, [`log`] the port of the update stream. Portable SQL is
//! written once, in the files that end in `_sql`, and compiled within [`sqlite`] and [`postgres`], which hold what
//! differs. SQL lives here and nowhere else. A third store, `memory`, is for tests; all three pass the same suites.

pub(crate) mod audit;
mod batches;
pub mod codes;
#[cfg(any(test, feature = "simulation"))]
pub mod contents;
pub mod decisions;
pub mod erasures;
pub mod log;
#[cfg(any(test, feature = "simulation"))]
pub mod memory;
pub mod postgres;
pub mod records;
mod rows;
pub mod sqlite;
pub mod writes;

use std::sync::Arc;

use emend_base::entropy::Entropy;
use emend_core::{Epoch, InstallationId};
use emend_store::{DatabaseUrl, StoreError};

pub use decisions::DecisionStore;
pub use erasures::ErasedLog;
use log::Head;
pub use log::LogStore;
#[cfg(feature = "fuzzing")]
pub(crate) use rows::fuzzing;

/// Everything the service needs of its database.
pub trait Store: DecisionStore + LogStore + ErasedLog {}

impl<S: DecisionStore + LogStore + ErasedLog> Store for S {}

/// Opens the database and migrates its schema. `connections` is the number of readers (SQLite) or of all connections
/// (PostgreSQL).
pub async fn open(database: &DatabaseUrl, connections: u32) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = match database {
        DatabaseUrl::Sqlite(path) => Arc::new(sqlite::SqliteStore::open(path, connections).await?),
        DatabaseUrl::Postgres(url) => Arc::new(postgres::PostgresStore::open(url, connections).await?),
    };
    Ok(store)
}

/// Begins a new installation in an empty database. Of several replicas that do so at once, the first's holds for all; a
/// database that is not empty stays as it is. Returns the head.
pub async fn begin_installation(store: &dyn LogStore, entropy: &Entropy) -> Result<Head, StoreError> {
    store
        .create_head(Epoch(entropy.uuid_v4()), InstallationId(entropy.uuid_v4()))
        .await
}

/// Someone else was faster, in a way the database itself does not notice: the use case is retried.
pub fn conflict(what: &str) -> StoreError {
    StoreError::Conflict(sqlx::Error::Protocol(what.to_owned()))
}

/// Runs a test's statements behind the ports' back, to damage what is stored.
#[cfg(test)]
pub(crate) async fn tamper(database: &DatabaseUrl, sql: &'static str) {
    let done = match database {
        DatabaseUrl::Sqlite(path) => {
            sqlite::SqliteStore::open(path, 1)
                .await
                .unwrap()
                .tamper(sql)
                .await
        }
        DatabaseUrl::Postgres(url) => {
            postgres::PostgresStore::open(url, 1)
                .await
                .unwrap()
                .tamper(sql)
                .await
        }
    };
    done.unwrap();
}
