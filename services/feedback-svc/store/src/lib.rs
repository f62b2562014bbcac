//! What Emend's feedback service stores, and how. [`records`] is what is stored, [`ports`] what the use cases need of a database. [`SqlStore`] fulfils all of them on either
//! database, and a store in memory, for tests, those that the simulation uses; one contract suite holds them to the same
//! behaviour. [`audit`] reads everything and checks it.

pub mod audit;
mod chunks;
pub mod fail_points;
#[cfg(any(test, feature = "simulation"))]
pub mod memory;
pub mod ports;
pub mod records;
mod rows;
mod sql;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::sync::Arc;

use emend_base::Entropy;
use emend_store::{DatabaseUrl, StoreError};

#[cfg(feature = "fuzzing")]
pub use self::rows::fuzzing;
pub use self::sql::SqlStore;

/// Opens a database and migrates it. The caller holds the lock on the directory of a file.
pub async fn open(
    database: &DatabaseUrl,
    postgres_connections: u32,
    entropy: &Entropy,
) -> Result<Arc<SqlStore>, StoreError> {
    let entropy = entropy.clone();
    let store = match database {
        DatabaseUrl::Postgres(url) => SqlStore::open_postgres(url, postgres_connections, entropy).await?,
        DatabaseUrl::Sqlite(path) => {
            let store = SqlStore::open_sqlite(path, entropy).await?;
            let released = store.release_leases().await?;
            if released > 0 {
                tracing::info!(released, "events leased by the previous process are due now");
            }
            store
        }
    };
    Ok(Arc::new(store))
}
