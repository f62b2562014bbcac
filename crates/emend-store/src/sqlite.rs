//! Opening SQLite so that committed data is durable: WAL, synchronous=FULL, one writer, many readers.
//!
//! Migrations are passed in.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Sqlite, SqlitePool, Transaction,
    migrate::Migrator,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{
    Connections, StoreError, also_of_newer,
    audit::{APPLIED, OpenError, same_schema},
    sql,
};

/// How long a statement waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a use case waits for the writer or for a reader.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many scans may run at once.
const BROWSERS: u32 = 2;
/// How long a scan may take before it is interrupted.
const BROWSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of SQLite VM instructions between two checks of that limit.
const INSTRUCTIONS: i32 = 10_000;
/// The size in pages (4 KiB each) at which the write-ahead log is checkpointed.
const CHECKPOINT_PAGES: &str = "4000";

/// How much of the file the writer keeps in memory at most, in KiB, below 0 as SQLite wants it. A transaction that changes
/// more pages than fit writes some of them out again and again: an import of many keys changes most pages of their index.
const WRITER_CACHE: &str = "-65536";

/// How many rows SQLite's thread may be ahead of who reads them.
const READ_AHEAD: usize = 1_000;

/// The connections to one SQLite file. Clones share them.
#[derive(Debug, Clone)]
pub struct SqlitePools {
    /// One connection: writers queue here in order instead of failing with `SQLITE_BUSY`.
    pub write: SqlitePool,
    /// Readers, which never wait for the writer. They can't write.
    pub read: SqlitePool,
    /// Separate readers for scans: see [`SqlitePools::browse`].
    browse: SqlitePool,
}

/// Opens the file at `path`, creating it and its directory if needed, and migrates its schema.
pub async fn open_sqlite(
    path: &Path,
    readers: u32,
    migrations: &Migrator,
) -> Result<SqlitePools, StoreError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_private_dir(parent).map_err(|error| StoreError::from(sqlx::Error::Io(error)))?;
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("temp_store", "memory")
        // What is deleted is overwritten: what somebody has a right to have erased must not stay in free pages.
        .pragma("secure_delete", "on");
    // No pool closes idle connections: opening one costs more than keeping it, and sqlx's task that does so spins for ever
    // now and then (<https://github.com/launchbadge/sqlx/issues/3645>, not fixed in 0.9.0).
    let pool = |size| {
        SqlitePoolOptions::new()
            .max_connections(size)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            // SQLite itself ends a transaction that can't go on, as on a full disk. The later rollback fails, and sqlx
            // counts the transaction as open from then on: such a connection can't serve another one.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
    };
    let writing = options.clone().pragma("cache_size", WRITER_CACHE);
    let write = pool(1).connect_with(writing).await?;
    let mut connection = write.acquire().await?;
    also_of_newer(migrations)
        .run_direct(None, &mut *connection, false)
        .await
        .map_err(sqlx::Error::from)?;
    drop(connection);
    let reading = options.pragma("query_only", "on").row_buffer_size(READ_AHEAD);
    let read = pool(readers.max(1)).connect_with(reading.clone()).await?;
    let browse = pool(BROWSERS).connect_lazy_with(reading);
    Ok(SqlitePools { write, read, browse })
}

/// Opens the existing file at `path` read-only, with one connection, and begins to read one state of it; the service using it is
/// not disturbed. Sorting may exceed memory.
pub async fn begin_to_read(path: &Path, migrations: &Migrator) -> Result<sql::Transaction, OpenError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("temp_store", "file")
        // What is slow here is meant to be, and its SQL is of no use to whoever reads along.
        .disable_statement_logging();
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options)
        .await?;
    let migrated: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'")
            .fetch_one(&pool)
            .await?;
    let applied = if migrated > 0 {
        sqlx::query_scalar(APPLIED).fetch_all(&pool).await?
    } else {
        Vec::new()
    };
    same_schema(applied, migrations)?;
    Ok(pool.begin().await?.into())
}

impl SqlitePools {
    /// Begins a transaction that may write. It takes the write lock at once: reading first and then writing could fail
    /// with `SQLITE_BUSY_SNAPSHOT`.
    pub async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.write.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Begins a transaction that reads one consistent state, whatever is committed in the meantime.
    pub async fn begin_read(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.read.begin().await?)
    }

    /// A reader for a statement that may scan much of the file, as filtered lists do. Scans delay nobody else: there
    /// are few of these readers, they are apart from the others, and their statements fail after ten seconds
    /// ([`StoreError::TooMuch`]).
    pub async fn browse(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.browse_for(BROWSE_TIMEOUT).await
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "looked at on a thread of SQLite's, which knows no clock that tests could pause"
    )]
    async fn browse_for(&self, time: Duration) -> Result<PoolConnection<Sqlite>, StoreError> {
        let mut connection = self.browse.acquire().await.map_err(StoreError::browsing)?;
        let end = Instant::now() + time;
        // Replaces the handler of the connection's previous user.
        connection
            .lock_handle()
            .await?
            .set_progress_handler(INSTRUCTIONS, move || Instant::now() < end);
        Ok(connection)
    }

    /// Brings all that is committed into the file itself and empties the write-ahead log, so that nothing deleted is left
    /// in it. Whether it did: a reader may still need the log.
    pub async fn truncate_log(&self) -> Result<bool, StoreError> {
        let mut connection = self.write.acquire().await?;
        // Fails at once where a reader is in the way; the writers behind this connection must not wait for it.
        let busy: i64 = {
            sqlx::query("PRAGMA busy_timeout = 0")
                .execute(&mut *connection)
                .await?;
            let found = sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)")
                .fetch_one(&mut *connection)
                .await;
            sqlx::query(AssertSqlSafe(format!(
                "PRAGMA busy_timeout = {}",
                BUSY_TIMEOUT.as_millis()
            )))
            .execute(&mut *connection)
            .await?;
            found?
        };
        Ok(busy == 0)
    }

    /// All connections and their current state.
    pub fn connections(&self) -> Connections {
        Connections::of(&[&self.write, &self.read, &self.browse])
    }

    /// Closes all connections; pending requests for one fail.
    pub async fn close(&self) {
        self.browse.close().await;
        self.read.close().await;
        self.write.close().await;
    }
}

/// A data directory that only this process uses, until this is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Holds the lock; the system releases it however the process ends.
    _lock: File,
}

/// Why a data directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process, or another service of this one, uses it.
    #[error(
        "the data directory {0} is in use by another process; stop that one, or choose another directory"
    )]
    InUse(PathBuf),
    /// The system refused.
    #[error("can't use the data directory {path}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl DataDir {
    /// Locks the directory at `path` for this process, creating it if needed (accessible to its owner only).
    pub fn lock(path: impl AsRef<Path>) -> Result<Self, DataDirError> {
        let path = path.as_ref().to_path_buf();
        let io_error = |source| DataDirError::Io {
            path: path.clone(),
            source,
        };
        create_private_dir(&path).map_err(io_error)?;
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join("emend.lock"))
            .map_err(io_error)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(path)),
            Err(TryLockError::Error(source)) => Err(io_error(source)),
        }
    }

    /// Locks the directory that contains the file at `path`.
    pub fn lock_parent(path: impl AsRef<Path>) -> Result<Self, DataDirError> {
        match path.as_ref().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => Self::lock(parent),
            _ => Self::lock("."),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `file` in it.
    pub fn join(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }
}

fn create_private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use sqlx::migrate::{Migration, MigrationType};

    use super::*;
    use crate::is_unique_violation;

    fn migrations() -> Migrator {
        let mut migrator = Migrator::DEFAULT;
        migrator.migrations = Cow::Owned(vec![Migration::new(
            1,
            "note".into(),
            MigrationType::Simple,
            sqlx::SqlStr::from_static(
                "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT",
            ),
            false,
        )]);
        migrator
    }

    async fn open() -> (tempfile::TempDir, SqlitePools) {
        let directory = tempfile::tempdir().unwrap();
        let pools = open_sqlite(&directory.path().join("new/notes.db"), 2, &migrations())
            .await
            .unwrap();
        (directory, pools)
    }

    #[tokio::test]
    async fn it_opens_with_the_settings_that_make_commits_durable() {
        let (_directory, pools) = open().await;
        for (pragma, expected) in [
            ("PRAGMA journal_mode", "wal"),
            ("SELECT synchronous FROM pragma_synchronous", "2"),
            ("SELECT foreign_keys FROM pragma_foreign_keys", "1"),
        ] {
            let query = format!(
                "SELECT CAST(x AS TEXT) FROM (SELECT ({}) AS x)",
                pragma.replace(
                    "PRAGMA journal_mode",
                    "SELECT journal_mode FROM pragma_journal_mode"
                )
            );
            let value: String = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
                .fetch_one(&pools.write)
                .await
                .unwrap();
            assert_eq!(value, expected, "{pragma}");
        }
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_ended_does_not_block_the_next() {
        let (_directory, pools) = open().await;
        let insert = "INSERT OR ROLLBACK INTO note (text) VALUES ('one')";
        for _ in 0..3 {
            let mut transaction = pools.begin_write().await.unwrap();
            let ended = async {
                sqlx::query(insert).execute(&mut *transaction).await?;
                sqlx::query(insert).execute(&mut *transaction).await
            };
            assert!(is_unique_violation(&ended.await.unwrap_err()));
        }
        let mut transaction = pools.begin_write().await.unwrap();
        sqlx::query(insert).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
        let notes: i64 = sqlx::query_scalar("SELECT count(*) FROM note")
            .fetch_one(&pools.read)
            .await
            .unwrap();
        assert_eq!(notes, 1);
    }

    #[tokio::test]
    async fn writers_queue_and_readers_see_one_state() {
        let (_directory, pools) = open().await;
        let mut reader = pools.begin_read().await.unwrap();
        let count = "SELECT count(*) FROM note";
        let before: i64 = sqlx::query_scalar(count).fetch_one(&mut *reader).await.unwrap();

        let writers = (0..20).map(|number| {
            let pools = pools.clone();
            tokio::spawn(async move {
                let mut transaction = pools.begin_write().await.unwrap();
                sqlx::query("INSERT INTO note (text) VALUES ($1)")
                    .bind(format!("note {number}"))
                    .execute(&mut *transaction)
                    .await
                    .unwrap();
                transaction.commit().await.unwrap();
            })
        });
        futures::future::try_join_all(writers).await.unwrap();

        let during: i64 = sqlx::query_scalar(count).fetch_one(&mut *reader).await.unwrap();
        assert_eq!((before, during), (0, 0));
        let after: i64 = sqlx::query_scalar(count).fetch_one(&pools.read).await.unwrap();
        assert_eq!(after, 20);
    }

    /// Practically never ends.
    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

    #[tokio::test]
    async fn a_long_scan_is_stopped_and_blocks_no_other() {
        let (_directory, pools) = open().await;
        // The maximum number of scans, whose callers leave before they end.
        for _ in 0..BROWSERS {
            let mut connection = pools.browse_for(Duration::from_secs(1)).await.unwrap();
            let endless = sqlx::query(ENDLESS).execute(&mut *connection);
            assert!(futures::poll!(Box::pin(endless)).is_pending());
        }
        // Gets the connection of one of those scans.
        let mut browser = pools.browse_for(Duration::from_millis(1)).await.unwrap();
        let stopped = sqlx::query(ENDLESS).execute(&mut *browser).await.unwrap_err();
        assert!(
            matches!(StoreError::from(stopped), StoreError::TooMuch(_)),
            "no fault of the database's"
        );
        let count = "SELECT count(*) FROM note";
        let mut other = pools.browse().await.unwrap();
        for connection in [&mut *pools.read.acquire().await.unwrap(), &mut *other] {
            assert_eq!(
                sqlx::query_scalar::<_, i64>(count)
                    .fetch_one(connection)
                    .await
                    .unwrap(),
                0
            );
        }
    }

    #[tokio::test]
    async fn readers_can_not_write() {
        let (_directory, pools) = open().await;
        assert!(
            sqlx::query("INSERT INTO note (text) VALUES ('x')")
                .execute(&pools.read)
                .await
                .is_err()
        );
        let mut browser = pools.browse().await.unwrap();
        assert!(
            sqlx::query("DELETE FROM note")
                .execute(&mut *browser)
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn applied_migrations_are_not_repeated() {
        let (directory, pools) = open().await;
        pools.close().await;
        let path = directory.path().join("new/notes.db");
        assert!(open_sqlite(&path, 1, &migrations()).await.is_ok());
    }

    #[tokio::test]
    async fn a_database_migrated_by_a_newer_release_is_served() {
        let (directory, pools) = open().await;
        pools.close().await;
        let path = directory.path().join("new/notes.db");
        let pools = open_sqlite(&path, 1, &Migrator::DEFAULT).await.unwrap();
        sqlx::query("INSERT INTO note (text) VALUES ('x')")
            .execute(&pools.write)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_read_only_database_is_readable_and_unchanged() {
        let (directory, pools) = open().await;
        let path = directory.path().join("new/notes.db");
        sqlx::query("INSERT INTO note (text) VALUES ('x')")
            .execute(&pools.write)
            .await
            .unwrap();
        let mut reading = begin_to_read(&path, &migrations()).await.unwrap();
        let count = reading.value::<i64>(sql::Statement::new("SELECT count(*) FROM note"));
        assert_eq!(count.await.unwrap(), 1);
        let written = reading.execute_text("DELETE FROM note").await;
        assert!(written.is_err(), "{written:?}");
        let other = begin_to_read(&path, &Migrator::DEFAULT).await;
        assert!(matches!(other, Err(OpenError::Schema { found, .. }) if found == [1]));
        let none = directory.path().join("none.db");
        assert!(begin_to_read(&none, &migrations()).await.is_err() && !none.exists());
    }

    #[test]
    fn a_data_directory_is_opened_by_one_process_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let held = DataDir::lock(&path).unwrap();
        let refused = DataDir::lock(&path).unwrap_err();
        assert!(matches!(refused, DataDirError::InUse(_)), "{refused}");
        assert!(refused.to_string().contains(path.to_str().unwrap()));
        assert!(DataDir::lock_parent(held.join("feedback.db")).is_err());
        drop(held);
        assert!(DataDir::lock(&path).is_ok());
    }
}
