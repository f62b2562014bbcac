//! The store on either database. SQL is written once; what truly differs is a `match` beside its twin.
//!
//! On SQLite one transaction writes at a time, so that nothing needs locking, and no other process uses the file. On PostgreSQL,
//! READ COMMITTED, any number of replicas share the schema: rows are locked, claims skip what another replica has locked, and
//! after a deadlock the whole use case is retried.

mod audit;
mod contexts;
mod counts;
mod documents;
mod erased;
mod erasure;
mod holders;
mod insert;
mod installation;
mod ledger;
mod outbox;
mod ports;
mod queries;
mod ratings;
mod settings;
mod stats;
#[cfg(test)]
mod tests;

use std::path::Path;

use emend_base::Entropy;
use emend_store::{
    PostgresUrl, StoreError,
    postgres::{PostgresConfig, open_postgres},
    sql::{Conn, Dialect, Pools, Statement},
    sqlite::open_sqlite,
};
use sqlx::migrate::Migrator;
use tokio::sync::Mutex;

pub(crate) use self::audit::Reading;
use self::holders::Replicas;

static SQLITE_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/sqlite");
static POSTGRES_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/postgres");

/// The schema of this service on PostgreSQL.
const SCHEMA: &str = "emend_feedback";

/// The number of readers of a SQLite file. They do not wait for the writer, nor for each other up to this many.
const READERS: u32 = 4;

/// Feedback in one SQLite file, or in one schema of a PostgreSQL database.
#[derive(Debug)]
pub struct SqlStore {
    pools: Pools,
    /// Who else may hold leases. A file has nobody else.
    replicas: Option<Mutex<Replicas>>,
    entropy: Entropy,
}

impl SqlStore {
    /// Opens the file, creating it if needed, and migrates it. The caller holds the lock on its directory.
    pub async fn open_sqlite(path: &Path, entropy: Entropy) -> Result<Self, StoreError> {
        let pools = open_sqlite(path, READERS, &SQLITE_MIGRATIONS).await?;
        Ok(Self {
            pools: Pools::Sqlite(pools),
            replicas: None,
            entropy,
        })
    }

    /// Connects, creates the schema if needed and migrates it.
    pub async fn open_postgres(
        url: &PostgresUrl,
        max_connections: u32,
        entropy: Entropy,
    ) -> Result<Self, StoreError> {
        let config = postgres_config(url, "emend feedback-svc", max_connections);
        let pool = open_postgres(&config, &POSTGRES_MIGRATIONS).await?;
        Ok(Self {
            pools: Pools::Postgres(pool),
            replicas: Some(Mutex::new(Replicas::new(url.clone()))),
            entropy,
        })
    }

    /// A connection for a list; `wide` if the list may have to scan much.
    async fn lister(&self, wide: bool) -> Result<Conn, StoreError> {
        if wide {
            self.pools.browser().await
        } else {
            self.pools.reader().await
        }
    }
}

fn postgres_config(
    url: &PostgresUrl,
    application_name: &'static str,
    max_connections: u32,
) -> PostgresConfig {
    PostgresConfig {
        url: url.clone(),
        schema: SCHEMA,
        application_name,
        max_connections,
    }
}

/// Gives the next accept order, with the time.
async fn next_accept_order(connection: &mut Conn) -> Result<(i64, i64), StoreError> {
    let statement = match connection.dialect() {
        Dialect::Sqlite => {
            "UPDATE accept_order SET last = max(last, (SELECT now FROM database_clock) - 1) + 1
             RETURNING last, (SELECT now FROM database_clock)"
        }
        Dialect::Postgres => "SELECT draw_accept_orders(1), (SELECT now FROM database_clock)",
    };
    connection.row(Statement::new(statement)).await
}

#[cfg(any(test, feature = "testing"))]
impl SqlStore {
    /// Runs statements.
    pub async fn execute(&self, sql: sqlx::AssertSqlSafe<String>) -> Result<u64, sqlx::Error> {
        let done = match &mut self.pools.writer().await.expect("it works for tests") {
            Conn::Sqlite(connection) => {
                let done = sqlx::raw_sql(sql).execute(&mut **connection).await?;
                done.rows_affected()
            }
            Conn::Postgres(connection) => {
                let done = sqlx::raw_sql(sql).execute(&mut **connection).await?;
                done.rows_affected()
            }
        };
        Ok(done)
    }

    /// The one number that a query gives.
    pub async fn number(&self, sql: String) -> i64 {
        let mut reader = self.pools.reader().await.expect("it works for tests");
        reader
            .value(Statement::new(sql))
            .await
            .expect("it works for tests")
    }

    /// How the database would find a list.
    pub async fn plan(&self, query: &crate::records::feedback::FeedbackQuery) -> String {
        self.explained(ledger::select_list(self.pools.dialect(), query))
            .await
    }

    /// How the database would find the searches that statistics read.
    pub async fn plan_of_searches(&self, filter: &crate::records::stats::StatsFilter) -> String {
        self.explained(stats::select_searches(filter)).await
    }

    /// Whether it is on SQLite.
    pub fn is_sqlite(&self) -> bool {
        matches!(self.pools.dialect(), Dialect::Sqlite)
    }

    async fn explained(&self, statement: Statement) -> String {
        let mut reader = self.pools.reader().await.expect("it works for tests");
        reader.plan(statement).await
    }
}
