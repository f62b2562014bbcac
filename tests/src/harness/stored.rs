//! The contents of learning-svc's database, read directly: the truth that every node must match. Of these tests, only
//! this module knows tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    str::FromStr as _,
};

use sqlx::{
    ConnectOptions as _, Connection as _, FromRow,
    postgres::{PgConnectOptions, PgRow},
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use super::held::{Held, Key};

/// A value that is not stored beside the log is in it.
const RESOURCES: &str = "SELECT c.namespace, c.kind, c.key, c.qualifier, c.user_id, r.revision, \
                         COALESCE(r.value, (SELECT h.value FROM changes AS h WHERE h.contest = r.contest \
                         AND h.revision = r.revision))
                         FROM resources AS r JOIN contests AS c ON c.contest = r.contest";
const ONCE: &str = "SELECT namespace, kind, key, qualifier, user_id FROM contests";
const HEAD: &str = "SELECT revision FROM head";
const SCHEMA: &str = "emend_learning";

const LOG_HEAD: &str = "SELECT epoch, revision, tombstone_horizon FROM head";
const LOG: &str = "SELECT h.revision, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.value
                   FROM changes AS h JOIN contests AS c ON c.contest = h.contest
                   WHERE h.revision <= $1 ORDER BY h.revision, h.ordinal";
const LOG_LENGTH: &str = "SELECT COUNT(*) FROM revisions WHERE revision BETWEEN 1 AND $1";

type ResourceRow = (String, i32, String, String, String, i64, Vec<u8>);
type KeyRow = (String, i32, String, String, String);
type ChangeRow = (i64, String, i32, String, String, String, Option<Vec<u8>>);

/// The revision log as it is stored.
#[derive(Debug, Clone)]
pub struct StoredLog {
    /// The log's epoch.
    pub epoch: String,
    /// The newest revision.
    pub head: i64,
    /// Deletions at or below this revision may have been forgotten.
    pub horizon: i64,
    /// What each revision changed, in order: the revision, the key, and the value, or `None` for a deletion.
    pub changes: Vec<(i64, Key, Option<Vec<u8>>)>,
}

/// learning-svc's storage.
#[derive(Debug, Clone)]
pub enum Stored {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// The PostgreSQL database at this URL.
    Postgres(String),
}

impl Stored {
    /// All resources.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn resources(&self) -> BTreeMap<Key, Held> {
        let rows: Vec<ResourceRow> = self.rows(RESOURCES, &[]).await;
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

    /// Every key for which something was ever proposed, or that is in the log.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn keys_once(&self) -> BTreeSet<Key> {
        let rows: Vec<KeyRow> = self.rows(ONCE, &[]).await;
        rows.into_iter()
            .map(|(namespace, kind, key, qualifier, user_id)| Key {
                namespace,
                kind,
                key,
                qualifier,
                user_id,
            })
            .collect()
    }

    /// The newest revision.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn head(&self) -> i64 {
        let (head,) = self.row(HEAD, &[]).await;
        head
    }

    /// The whole log, up to the current head.
    ///
    /// # Panics
    /// If the database can't be read, or the log has a gap.
    pub async fn log(&self) -> StoredLog {
        let (epoch, head, horizon): (Vec<u8>, _, _) = self.row(LOG_HEAD, &[]).await;
        let epoch = uuid::Uuid::from_slice(&epoch).expect("an epoch").to_string();
        let (length,): (i64,) = self.row(LOG_LENGTH, &[head]).await;
        assert_eq!(length, head, "the log has no gap");
        let rows: Vec<ChangeRow> = self.rows(LOG, &[head]).await;
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

    /// The only row that a statement returns.
    async fn row<R>(&self, sql: &'static str, bound: &[i64]) -> R
    where
        R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut rows = self.rows(sql, bound).await;
        assert_eq!(rows.len(), 1, "{sql}");
        rows.remove(0)
    }

    /// All rows that a statement returns, on a connection of its own.
    async fn rows<R>(&self, sql: &'static str, bound: &[i64]) -> Vec<R>
    where
        R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let rows = match self {
            Self::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path).read_only(true);
                let mut connection = options.connect().await.expect("the database can be read");
                let query = bound
                    .iter()
                    .fold(sqlx::query_as(sql), |query, value| query.bind(*value));
                query.fetch_all(&mut connection).await
            }
            Self::Postgres(url) => {
                let options = PgConnectOptions::from_str(url).expect("a PostgreSQL URL");
                let options = options.options([("search_path", SCHEMA)]);
                let mut connection = options.connect().await.expect("the database can be read");
                let query = bound
                    .iter()
                    .fold(sqlx::query_as(sql), |query, value| query.bind(*value));
                let rows = query.fetch_all(&mut connection).await;
                connection.close().await.expect("a connection closes");
                rows
            }
        };
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
