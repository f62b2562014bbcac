//! SQLite, the embedded default: one writer at a time, readers that never wait.
//!
//! What is written once for both databases is compiled here against [`Db`]; this file holds what differs.

use std::path::Path;

use emend_core::FeedbackId;
use emend_runtime::{
    audit::OpenError,
    sqlite::{SqlitePools, open_sqlite, open_sqlite_to_read},
    store::{Connections, StoreError},
};
use sqlx::{migrate::Migrator, pool::PoolConnection};

use crate::store::ledger::LedgerRead;

#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "audit_sql.rs"]
mod audit_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "decisions_sql.rs"]
mod decisions_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "ledger_sql.rs"]
mod ledger_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "log_sql.rs"]
mod log_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "queries_sql.rs"]
mod queries_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "writes_sql.rs"]
mod writes_sql;

/// The database that the portable SQL is compiled against.
pub(super) type Db = sqlx::Sqlite;
/// A transaction of the store.
pub(super) type Transaction = sqlx::Transaction<'static, Db>;
/// The store of that database.
pub(super) type Backend = SqliteStore;

/// The database's time in microseconds since 1970, as an SQL expression.
pub(super) const NOW_MICROS: &str = "CAST(round(unixepoch('now', 'subsec') * 1000000) AS INTEGER)";
/// Locks the rows of a SELECT. The one writer holds the whole file.
pub(super) const FOR_UPDATE: &str = "";

/// Begins a transaction that reads one state, however long that takes.
const BEGIN_LEDGER: &str = "BEGIN";

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// The store in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pools: SqlitePools,
}

impl SqliteStore {
    /// Opens the file, creating it if need be.
    pub async fn open(path: &Path, readers: u32) -> Result<Self, StoreError> {
        let pools = open_sqlite(path, readers, &MIGRATIONS).await?;
        Ok(Self { pools })
    }

    /// Begins to read all that is in the file.
    pub(super) async fn read(path: &Path) -> Result<Box<dyn LedgerRead>, OpenError> {
        let pool = open_sqlite_to_read(path, &MIGRATIONS).await?;
        Ok(Box::new(ledger_sql::Reading::begin(pool).await?))
    }

    /// A connection that only reads.
    pub(super) async fn reader(&self) -> Result<PoolConnection<Db>, StoreError> {
        Ok(self.pools.read.acquire().await?)
    }

    /// A connection for a statement that may look through much.
    pub(super) async fn browser(&self) -> Result<PoolConnection<Db>, StoreError> {
        self.pools.browse().await
    }

    /// Begins a transaction that may write; everybody else's waits.
    pub(super) async fn begin_write(&self) -> Result<Transaction, StoreError> {
        self.pools.begin_write().await
    }

    /// Begins a transaction that reads one consistent state.
    pub(super) async fn begin_read(&self) -> Result<Transaction, StoreError> {
        self.pools.begin_read().await
    }

    /// Runs statements of a test.
    #[cfg(test)]
    pub(super) async fn tamper(&self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::raw_sql(sql).execute(&self.pools.write).await?;
        self.close_pools().await;
        Ok(())
    }

    /// All connections, as they are now.
    pub(super) fn pool_connections(&self) -> Connections {
        self.pools.connections()
    }

    /// Closes all connections.
    pub(super) async fn close_pools(&self) {
        self.pools.close().await;
    }
}

/// Nobody else writes while this transaction does.
pub(super) async fn lock_feedback(
    _transaction: &mut Transaction,
    _ids: &[FeedbackId],
) -> Result<(), StoreError> {
    Ok(())
}

/// Whoever tails the log in this process is woken after the commit; nobody else can have the file open.
pub(super) async fn notify(_transaction: &mut Transaction) -> Result<(), StoreError> {
    Ok(())
}

/// A fresh, empty store, and the directory that goes with it.
#[cfg(test)]
pub(super) async fn open_for_test() -> Option<(Backend, tempfile::TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("learning.db"), 2)
        .await
        .unwrap();
    Some((store, directory))
}
