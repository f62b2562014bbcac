//! Opening SQLite and PostgreSQL, for stores that bring their own schema and queries.
//!
//! [`sql`] is SQL written once for both. [`sqlite`] and [`postgres`] open a database and its pools; [`available`] waits for one that is away at start-up.
//! [`error`] says what to do about a database's errors. [`audit`] reads a database without changing it, and [`copies`]
//! copies two that belong together while they are written to. [`storage`] chooses the database from the command line, and
//! [`metrics`] shows its connections and errors.
//!
//! For tests: `testing` (feature `testing`: a fresh PostgreSQL database for each test) and `simulation` (feature
//! `simulation`: faults injected into in-memory stores).

pub mod audit;
pub mod available;
pub mod copies;
pub mod error;
pub mod metrics;
pub mod postgres;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod sql;
pub mod sqlite;
pub mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod url;

use std::{future::Future, time::Duration};

use sqlx::migrate::Migrator;
use tokio::time::timeout;

pub use self::{
    error::{Connections, CorruptRow, MayConflict, Reason, StoreError, is_unique_violation, retry_conflicts},
    url::{DatabaseUrl, DatabaseUrlError, PostgresUrl},
};

/// How long closing connections may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits for a pool that closes its connections gracefully, but not for one that is still waiting on a database that
/// fell silent.
pub async fn close(closing: impl Future<Output = ()>) {
    if timeout(CLOSE_TIMEOUT, closing).await.is_err() {
        tracing::warn!("connections to the database did not close in time; leaving them open");
    }
}

/// The same migrations, applicable to a database that a newer release has migrated further. In a rolling upgrade the
/// first new replica migrates while old ones still serve, and any of those may be restarted before its turn or after a
/// rollback. Migrations keep the previous release working (see CONTRIBUTING.md), so serving is safe.
pub(crate) fn also_of_newer(migrations: &Migrator) -> Migrator {
    Migrator {
        migrations: migrations.migrations.clone(),
        ignore_missing: true,
        locking: migrations.locking,
        no_tx: migrations.no_tx,
        table_name: migrations.table_name.clone(),
        create_schemas: migrations.create_schemas.clone(),
    }
}
