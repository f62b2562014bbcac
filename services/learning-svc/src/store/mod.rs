//! What learning-svc keeps, behind ports that are shaped by its use cases, on SQLite or PostgreSQL.
//!
//! [`decisions`] is the port of the use cases that decide, [`log`] the port of the update stream. Portable SQL is written
//! once, in the files that end in `_sql`, and compiled within [`sqlite`] and [`postgres`], which hold what differs. SQL
//! lives here and nowhere else.

mod batches;
pub mod codes;
pub mod decisions;
pub(crate) mod ledger;
pub mod log;
pub mod postgres;
pub mod records;
mod rows;
pub mod sqlite;
pub mod writes;

use std::sync::Arc;

use emend_core::Epoch;
use emend_runtime::{database::DatabaseUrl, entropy::Entropy, store::StoreError};

pub use decisions::DecisionStore;
pub use log::LogStore;

/// All that the service asks of its database.
pub trait Store: DecisionStore + LogStore {}

impl<S: DecisionStore + LogStore> Store for S {}

/// Opens the database, brings its schema up to date, and gives a new log its epoch. `connections` is how many may read
/// (SQLite) or how many there may be at all (PostgreSQL).
pub async fn open(
    database: &DatabaseUrl,
    connections: u32,
    entropy: &Entropy,
) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = match database {
        DatabaseUrl::Sqlite(path) => Arc::new(sqlite::SqliteStore::open(path, connections).await?),
        DatabaseUrl::Postgres(url) => Arc::new(postgres::PostgresStore::open(url, connections).await?),
    };
    store.create_head(Epoch(entropy.uuid_v4())).await?;
    Ok(store)
}

/// Somebody else was faster, in a way that the database itself does not notice: the use case begins anew.
pub fn conflict(what: &str) -> StoreError {
    StoreError::Conflict(sqlx::Error::Protocol(what.to_owned()))
}

/// Runs statements of a test past the ports, to break what is stored.
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
