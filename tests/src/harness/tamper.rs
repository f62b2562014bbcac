//! A frozen copy of what a pair stored, and copies of it altered behind the services' backs, which auditors must
//! notice.

use std::{path::Path, str::FromStr as _, time::Duration};

use emend_audit::Databases;
use emend_base::Entropy;
use emend_store::DatabaseUrl;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection,
    postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

use super::{
    stored::Stored,
    system::{Database, Service, System},
};

/// What a stopped pair stored.
#[derive(Debug)]
pub struct Frozen {
    database: Database,
}

/// A copy of the stored data. Dropping it deletes its files; on PostgreSQL call [`Copy::close`].
#[derive(Debug)]
pub struct Copy {
    databases: Databases,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Sqlite(TempDir),
    Postgres {
        server: String,
        name: String,
        url: String,
    },
}

impl Frozen {
    /// Stops a pair gracefully and keeps what it stored.
    pub async fn of(system: System) -> Self {
        Self {
            database: system.into_database().await,
        }
    }

    /// Makes a copy.
    ///
    /// # Panics
    /// If it can't be made.
    pub async fn copy(&self) -> Copy {
        match &self.database {
            Database::Sqlite(from) => {
                let to = tempfile::tempdir().expect("a directory");
                for service in [Service::Feedback, Service::Learning] {
                    copy_file(from.path(), to.path(), service.file());
                }
                let file = |service: Service| DatabaseUrl::sqlite(to.path().join(service.file()));
                Copy {
                    databases: Databases {
                        feedback: file(Service::Feedback),
                        learning: file(Service::Learning),
                    },
                    place: Place::Sqlite(to),
                }
            }
            Database::Postgres(database) => {
                let name = format!("emend_test_{}", Entropy::system().uuid_v4().simple());
                let server = database.server_url();
                let mut connection = connect(&server).await;
                let made = format!("CREATE DATABASE {name} TEMPLATE {}", database.name());
                connection.execute(AssertSqlSafe(made)).await.expect("a copy");
                connection.close().await.expect("a connection closes");
                let url = database.url_of(&name);
                let parsed: DatabaseUrl = url.parse().expect("a database");
                Copy {
                    databases: Databases {
                        feedback: parsed.clone(),
                        learning: parsed,
                    },
                    place: Place::Postgres { server, name, url },
                }
            }
        }
    }
}

/// Copies the write-ahead log too: it remains if a reader was the last to close the file.
fn copy_file(from: &Path, to: &Path, file: &str) {
    std::fs::copy(from.join(file), to.join(file)).expect("a copy");
    let log = format!("{file}-wal");
    if from.join(&log).is_file() {
        std::fs::copy(from.join(&log), to.join(&log)).expect("a copy");
    }
}

async fn connect(url: &str) -> PgConnection {
    PgConnectOptions::from_str(url)
        .expect("a PostgreSQL URL")
        .connect()
        .await
        .expect("the server can be reached")
}

impl Copy {
    /// The copy's databases.
    pub fn databases(&self) -> &Databases {
        &self.databases
    }

    /// What learning-svc stored.
    pub fn stored(&self) -> Stored {
        match &self.place {
            Place::Sqlite(directory) => Stored::Sqlite(directory.path().join(Service::Learning.file())),
            Place::Postgres { url, .. } => Stored::Postgres(url.clone()),
        }
    }

    /// The directory of its files; `None` on PostgreSQL.
    pub fn directory(&self) -> Option<&Path> {
        match &self.place {
            Place::Sqlite(directory) => Some(directory.path()),
            Place::Postgres { .. } => None,
        }
    }

    /// Its URL on PostgreSQL; `None` on SQLite.
    pub fn postgres_url(&self) -> Option<&str> {
        match &self.place {
            Place::Sqlite(_) => None,
            Place::Postgres { url, .. } => Some(url),
        }
    }

    /// Runs statements on one service's tables with constraints and triggers disabled, as this database requires. In
    /// `sql`, `{new_id}` is an id that nothing else uses, `{no_id}` bytes that are no id, and `{touched:COLUMN}` the
    /// column with its last byte changed.
    ///
    /// # Panics
    /// If a statement fails.
    pub async fn tamper(&self, service: Service, sql: &str) {
        match &self.place {
            Place::Sqlite(directory) => {
                let sql = sql
                    .replace("{new_id}", &format!("x'{NEW_ID}'"))
                    .replace("{no_id}", "x'00'");
                let sql = touched(&sql, |column| {
                    format!("CAST(CAST(substr({column}, 1, length({column}) - 1) AS TEXT) || '~' AS BLOB)")
                });
                let mut connection = SqliteConnectOptions::new()
                    .filename(directory.path().join(service.file()))
                    .foreign_keys(false)
                    .connect()
                    .await
                    .expect("the copy can be opened");
                let prelude = match service {
                    Service::Feedback => {
                        "DROP TRIGGER feedback_is_not_changed; DROP TRIGGER feedback_is_not_deleted;"
                    }
                    Service::Learning => "",
                };
                connection
                    .execute(AssertSqlSafe(format!("{prelude}{sql}")))
                    .await
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
                connection.close().await.expect("a connection closes");
            }
            Place::Postgres { url, .. } => {
                let sql = sql
                    .replace("{new_id}", &format!("'\\x{NEW_ID}'::bytea"))
                    .replace("{no_id}", "'\\x00'::bytea");
                let sql = touched(&sql, |column| {
                    format!("set_byte({column}, length({column}) - 1, 126)")
                });
                let mut connection = connect(url).await;
                // Disables triggers and foreign keys.
                let prelude = format!(
                    "SET search_path = {}; SET session_replication_role = replica;",
                    match service {
                        Service::Feedback => "emend_feedback",
                        Service::Learning => "emend_learning",
                    }
                );
                connection
                    .execute(AssertSqlSafe(format!("{prelude}{sql}")))
                    .await
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
                connection.close().await.expect("a connection closes");
            }
        }
    }

    /// Drops it.
    ///
    /// # Panics
    /// If it can't be dropped.
    pub async fn close(self) {
        if let Place::Postgres { server, name, .. } = self.place {
            let mut connection = connect(&server).await;
            connection
                .execute(AssertSqlSafe(format!(
                    "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
                )))
                .await
                .expect("a copy is dropped");
            connection.close().await.expect("a connection closes");
        }
    }
}

/// In hexadecimal.
const NEW_ID: &str = "0000000000004000800000000000ffff";

/// Expands each `{touched:COLUMN}`.
fn touched(sql: &str, by: impl Fn(&str) -> String) -> String {
    let mut parts = sql.split("{touched:");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (column, rest) = part.split_once('}').expect("it is closed");
        replaced.push_str(&by(column));
        replaced.push_str(rest);
    }
    replaced
}

/// Adds a change to the review queue of a learning-svc that no version can read. `url`: its database, as the service takes it.
///
/// # Panics
/// If the database can't be written, or if nothing has changed in the queue yet.
pub async fn unreadable_queue_change(url: &str) {
    const ADD: &str = "INSERT INTO queue_changes (candidate_id, contest, from_status, to_status, caller, on_behalf_of, revision) \
         SELECT candidate_id, contest, 99, 99, '', '', 0 FROM queue_changes LIMIT 1";
    let added = if let Some(path) = url.strip_prefix("sqlite:") {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.expect("the database can be opened");
        let added = sqlx::query(ADD).execute(&mut connection).await;
        added.expect("the queue can be written").rows_affected()
    } else {
        let options = PgConnectOptions::from_str(url).expect("a PostgreSQL URL");
        let options = options.options([("search_path", "emend_learning")]);
        let mut connection = options.connect().await.expect("the database can be opened");
        let added = sqlx::query(ADD).execute(&mut connection).await;
        added.expect("the queue can be written").rows_affected()
    };
    assert_eq!(added, 1, "a change is added");
}

/// Makes the entries in a feedback-svc's outbox older, as if nothing had taken them for that long. `url`: its database,
/// as the service takes it.
///
/// # Panics
/// If the database can't be written.
pub async fn age_outbox(url: &str, by: Duration) {
    const AGE: &str = "UPDATE outbox SET occurred_at = occurred_at - $1";
    let by = i64::try_from(by.as_micros()).expect("less than an eternity");
    if let Some(path) = url.strip_prefix("sqlite:") {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.expect("the database can be opened");
        let aged = sqlx::query(AGE).bind(by).execute(&mut connection).await;
        aged.expect("the outbox can be written");
    } else {
        let options = PgConnectOptions::from_str(url).expect("a PostgreSQL URL");
        let options = options.options([("search_path", "emend_feedback")]);
        let mut connection = options.connect().await.expect("the database can be opened");
        let aged = sqlx::query(AGE).bind(by).execute(&mut connection).await;
        aged.expect("the outbox can be written");
    }
}
