//! Copies of two SQLite files that belong together, as of one moment, while others write to them.
//!
//! Each file is copied by `VACUUM INTO`, which reads it in one transaction. What both transactions read is of one moment as
//! far as it matters because nobody writes to the first file until both have begun: what the second one holds about the
//! first is true of its copy, and the copy of the first knows nothing that the second has yet to learn.

use std::{fs, path::Path, time::Duration};

use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::time::sleep;

use crate::StoreError;

/// How long a copy waits for a lock that a writer holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is looked whether both copies have begun.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// A file and its copy, which must not be there yet.
#[derive(Debug, Clone, Copy)]
pub struct FileCopy<'a> {
    /// The file.
    pub from: &'a Path,
    /// The copy.
    pub to: &'a Path,
}

impl FileCopy<'_> {
    async fn open(&self) -> Result<SqliteConnection, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(self.from)
            .busy_timeout(BUSY_TIMEOUT)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // Opening a connection is no reason to bring what others wrote into the file.
            .pragma("wal_autocheckpoint", "0");
        Ok(SqliteConnection::connect_with(&options).await?)
    }

    /// Whether something was copied, so that what is copied is settled: SQLite writes to a copy only in the transaction in
    /// which it reads.
    fn has_begun(&self) -> bool {
        fs::metadata(self.to).is_ok_and(|copy| copy.len() > 0)
    }

    async fn make(&self, mut connection: SqliteConnection) -> Result<(), StoreError> {
        sqlx::query("VACUUM INTO ?")
            .bind(self.to.to_string_lossy().into_owned())
            .execute(&mut connection)
            .await?;
        connection.close().await?;
        let copy = fs::File::open(self.to).and_then(|copy| copy.sync_all());
        copy.map_err(|error| StoreError::from(sqlx::Error::Io(error)))
    }
}

/// Copies both files, of which nobody writes to `held` until both copies have begun: some milliseconds. Others may read and
/// write all the while. On return both copies are on disk.
///
/// # Errors
/// If a file can't be read or a copy can't be written; parts of copies may then be left.
pub async fn copy_together(held: FileCopy<'_>, other: FileCopy<'_>) -> Result<(), StoreError> {
    let (mut lock, of_held, of_other) = tokio::try_join!(held.open(), held.open(), other.open())?;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut lock).await?;
    let release = async move {
        while !(held.has_begun() && other.has_begun()) {
            sleep(CHECK_INTERVAL).await;
        }
        sqlx::query("ROLLBACK").execute(&mut lock).await?;
        lock.close().await?;
        Ok(())
    };
    tokio::try_join!(held.make(of_held), other.make(of_other), release)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use sqlx::migrate::Migrator;

    use super::*;
    use crate::sqlite::{SqlitePools, open_sqlite};

    async fn open(path: &Path) -> SqlitePools {
        let pools = open_sqlite(path, 1, &Migrator::DEFAULT).await.unwrap();
        sqlx::query("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
            .execute(&pools.write)
            .await
            .unwrap();
        pools
    }

    async fn newest(path: &Path) -> i64 {
        let pools = open_sqlite(path, 1, &Migrator::DEFAULT).await.unwrap();
        sqlx::query_scalar("SELECT coalesce(max(id), 0) FROM note")
            .fetch_one(&pools.read)
            .await
            .unwrap()
    }

    /// As between the services: a writer puts each number into `sent` before it puts it into `known`.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_the_held_copy_knows_was_sent_in_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: String| directory.path().join(name);
        let (sent, known) = (at("sent.db".to_owned()), at("known.db".to_owned()));
        let (sending, knowing) = (open(&sent).await, open(&known).await);
        let done = std::sync::Arc::new(AtomicBool::new(false));
        let until = std::sync::Arc::clone(&done);
        let writing = tokio::spawn(async move {
            let mut written = 0;
            while !until.load(Ordering::Relaxed) {
                for pools in [&sending, &knowing] {
                    sqlx::query("INSERT INTO note (text) VALUES (hex(randomblob(2000)))")
                        .execute(&pools.write)
                        .await
                        .unwrap();
                }
                written += 1;
            }
            written
        });
        let mut heads = Vec::new();
        for round in 0..8 {
            let copies = [at(format!("known-{round}.db")), at(format!("sent-{round}.db"))];
            let copy = |from, to| FileCopy { from, to };
            copy_together(copy(&known, &copies[0]), copy(&sent, &copies[1]))
                .await
                .unwrap();
            heads.push((newest(&copies[0]).await, newest(&copies[1]).await));
        }
        done.store(true, Ordering::Relaxed);
        let written: i64 = writing.await.unwrap();
        assert!(
            heads.last().unwrap().0 > heads[0].0,
            "it goes on: {heads:?}, {written}"
        );
        // Whoever is held up has sent one number that is not known yet.
        assert!(
            heads
                .iter()
                .all(|(known, sent)| (*known..=known + 1).contains(sent)),
            "{heads:?}"
        );
    }

    #[tokio::test]
    async fn a_copy_that_is_there_is_kept_and_the_file_can_be_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other, copy, there] =
            ["one", "other", "copy", "there"].map(|name| directory.path().join(name));
        let (pools, _other) = (open(&one).await, open(&other).await);
        fs::write(&there, "mine").unwrap();
        let (from, to) = (
            FileCopy {
                from: &one,
                to: &copy,
            },
            FileCopy {
                from: &other,
                to: &there,
            },
        );
        assert!(copy_together(from, to).await.is_err());
        assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
        assert!(pools.begin_write().await.is_ok());
    }
}
