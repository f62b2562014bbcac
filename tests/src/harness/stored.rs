//! What learning-svc's database holds, read past the service: the truth to which every node has to be equal. The only
//! place of these tests that knows a table.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr as _};

use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use super::held::{Held, Key};

const RESOURCES: &str = "SELECT namespace, kind, key, qualifier, user_id, revision, value FROM resources";
const PHRASES: &str = "SELECT DISTINCT key FROM contests";
const HEAD: &str = "SELECT revision FROM head";
const SCHEMA: &str = "emend_learning";

const LOG_HEAD: &str = "SELECT epoch, revision, tombstone_horizon FROM head";
const LOG: &str = "SELECT revision, namespace, kind, key, qualifier, user_id, value FROM changes
                   WHERE revision <= $1 ORDER BY revision, ordinal";
const LOG_LENGTH: &str = "SELECT COUNT(*) FROM revisions WHERE revision BETWEEN 1 AND $1";

type ResourceRow = (String, i32, String, String, String, i64, Vec<u8>);
type ChangeRow = (i64, String, i32, String, String, String, Option<Vec<u8>>);

/// The revision log as it is stored.
#[derive(Debug, Clone)]
pub struct StoredLog {
    /// The life that it is in.
    pub epoch: String,
    /// The newest revision.
    pub head: i64,
    /// Deletions at or below this revision may have been forgotten.
    pub horizon: i64,
    /// What each revision changed, in order: the revision, the key, and its value or none where it was deleted.
    pub changes: Vec<(i64, Key, Option<Vec<u8>>)>,
}

/// Where learning-svc keeps what it knows.
#[derive(Debug, Clone)]
pub enum Stored {
    /// In that file.
    Sqlite(PathBuf),
    /// In the database of that URL.
    Postgres(String),
}

impl Stored {
    /// All resources.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn resources(&self) -> BTreeMap<Key, Held> {
        let rows: Vec<ResourceRow> = match self {
            Self::Sqlite(_) => {
                let mut connection = self.sqlite().await;
                let rows = sqlx::query_as(RESOURCES).fetch_all(&mut connection).await;
                rows.expect("resources can be read")
            }
            Self::Postgres(_) => {
                let mut connection = self.postgres().await;
                let rows = sqlx::query_as(RESOURCES).fetch_all(&mut connection).await;
                connection.close().await.expect("a connection closes");
                rows.expect("resources can be read")
            }
        };
        rows.into_iter()
            .map(|(namespace, kind, key, qualifier, user_id, revision, value)| {
                let key = Key {
                    namespace,
                    kind,
                    key,
                    qualifier,
                    user_id,
                };
                (key, Held { revision, value })
            })
            .collect()
    }

    /// Every phrase and name for which something was ever proposed, as it is kept.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn phrases(&self) -> Vec<String> {
        match self {
            Self::Sqlite(_) => {
                let mut connection = self.sqlite().await;
                let phrases = sqlx::query_scalar(PHRASES).fetch_all(&mut connection).await;
                phrases.expect("contests can be read")
            }
            Self::Postgres(_) => {
                let mut connection = self.postgres().await;
                let phrases = sqlx::query_scalar(PHRASES).fetch_all(&mut connection).await;
                connection.close().await.expect("a connection closes");
                phrases.expect("contests can be read")
            }
        }
    }

    /// The newest revision.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn head(&self) -> i64 {
        let row: (i64,) = match self {
            Self::Sqlite(_) => {
                let mut connection = self.sqlite().await;
                let row = sqlx::query_as(HEAD).fetch_one(&mut connection).await;
                row.expect("the head can be read")
            }
            Self::Postgres(_) => {
                let mut connection = self.postgres().await;
                let row = sqlx::query_as(HEAD).fetch_one(&mut connection).await;
                connection.close().await.expect("a connection closes");
                row.expect("the head can be read")
            }
        };
        row.0
    }

    /// The whole log, up to the head as it is now.
    ///
    /// # Panics
    /// If the database can't be read, or the log has a gap.
    pub async fn log(&self) -> StoredLog {
        let ((epoch, head, horizon), length, rows): ((String, i64, i64), i64, Vec<ChangeRow>) = match self {
            Self::Sqlite(_) => {
                let mut connection = self.sqlite().await;
                let head = sqlx::query_as(LOG_HEAD).fetch_one(&mut connection).await;
                let head: (String, i64, i64) = head.expect("the head can be read");
                let length = sqlx::query_scalar(LOG_LENGTH).bind(head.1);
                let length = length.fetch_one(&mut connection).await;
                let rows = sqlx::query_as(LOG).bind(head.1).fetch_all(&mut connection).await;
                (
                    head,
                    length.expect("the log can be read"),
                    rows.expect("the log can be read"),
                )
            }
            Self::Postgres(_) => {
                let mut connection = self.postgres().await;
                let head = sqlx::query_as(LOG_HEAD).fetch_one(&mut connection).await;
                let head: (String, i64, i64) = head.expect("the head can be read");
                let length = sqlx::query_scalar(LOG_LENGTH).bind(head.1);
                let length = length.fetch_one(&mut connection).await;
                let rows = sqlx::query_as(LOG).bind(head.1).fetch_all(&mut connection).await;
                connection.close().await.expect("a connection closes");
                (
                    head,
                    length.expect("the log can be read"),
                    rows.expect("the log can be read"),
                )
            }
        };
        assert_eq!(length, head, "the log has no gap");
        let changes = rows
            .into_iter()
            .map(|(revision, namespace, kind, key, qualifier, user_id, value)| {
                let key = Key {
                    namespace,
                    kind,
                    key,
                    qualifier,
                    user_id,
                };
                (revision, key, value)
            })
            .collect();
        StoredLog {
            epoch,
            head,
            horizon,
            changes,
        }
    }

    async fn sqlite(&self) -> sqlx::SqliteConnection {
        let Self::Sqlite(path) = self else {
            unreachable!("asked for on SQLite only")
        };
        SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .connect()
            .await
            .expect("the database can be read")
    }

    async fn postgres(&self) -> sqlx::PgConnection {
        let Self::Postgres(url) = self else {
            unreachable!("asked for on PostgreSQL only")
        };
        PgConnectOptions::from_str(url)
            .expect("a PostgreSQL URL")
            .options([("search_path", SCHEMA)])
            .connect()
            .await
            .expect("the database can be read")
    }
}
