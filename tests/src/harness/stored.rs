//! What learning-svc's database holds, read past the service: the truth to which every node has to be equal. The only
//! place of these tests that knows a table.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr as _};

use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use super::held::{Held, Key};

const RESOURCES: &str = "SELECT namespace, kind, key, qualifier, user_id, revision, value FROM resources";
const PHRASES: &str = "SELECT DISTINCT key FROM contests";
const HEAD: &str = "SELECT revision FROM head";
const SCHEMA: &str = "emend_learning";

type ResourceRow = (String, i32, String, String, String, i64, Vec<u8>);

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
