//! A PostgreSQL database for each test.
//!
//! `EMEND_TEST_POSTGRES_URL` names a server and a user who may create databases and roles. If it is unset, the test is
//! skipped with one line; if `CI` is `true`, that is a failure, because in CI every test runs on both databases.

use std::{env, thread};

use emend_base::{entropy::Entropy, testing::skipped};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::PostgresUrl;

const VARIABLE: &str = "EMEND_TEST_POSTGRES_URL";

/// The PostgreSQL server for tests.
#[derive(Debug)]
pub struct TestPostgres;

/// A new, empty database. Dropping this value drops the database, even if clients are still connected.
#[derive(Debug)]
pub struct TestDatabase {
    server: PostgresUrl,
    url: PostgresUrl,
    name: String,
    dropped: bool,
}

impl TestPostgres {
    /// A new, empty database; `None`, after one line that says so, if there is no server.
    ///
    /// # Panics
    /// If the server can't be used, or as [`skipped`] does.
    pub async fn create() -> Option<TestDatabase> {
        let Ok(server) = env::var(VARIABLE) else {
            skipped(format_args!("{VARIABLE} is not set"));
            return None;
        };
        let server: PostgresUrl = server
            .parse()
            .unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
        let database = TestDatabase::create(server, "").await;
        Some(database.unwrap_or_else(|error| panic!("{VARIABLE}: {error}")))
    }
}

impl TestDatabase {
    async fn create(server: PostgresUrl, options: &str) -> Result<Self, sqlx::Error> {
        let name = format!("emend_test_{}", Entropy::system().uuid_v4().simple());
        run(&server, format!("CREATE DATABASE {name} {options}")).await?;
        Ok(Self {
            url: server.with_database(&name),
            server,
            name,
            dropped: false,
        })
    }

    /// A copy of it. Nobody may be connected to it.
    ///
    /// # Panics
    /// If it can't be copied.
    #[must_use]
    pub async fn copy(&self) -> Self {
        Self::create(self.server.clone(), &format!("TEMPLATE {}", self.name))
            .await
            .unwrap_or_else(|error| panic!("can't copy the database {}: {error}", self.name))
    }

    /// Its URL.
    pub fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// Its URL, as a service takes it.
    pub fn database_url(&self) -> crate::DatabaseUrl {
        crate::DatabaseUrl::Postgres(self.url.clone())
    }

    /// Drops the database now, which is cheaper than leaving it to `Drop`.
    pub async fn close(mut self) {
        self.dropped = true;
        let _ = run(&self.server, drop_statement(&self.name)).await;
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.dropped {
            return;
        }
        let (server, statement) = (self.server.clone(), drop_statement(&self.name));
        // The test's runtime may be gone or busy, so the destructor brings its own. Failing to drop the database does
        // not fail the test.
        let _ = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(run(&server, statement)))
        })
        .join();
    }
}

fn drop_statement(name: &str) -> String {
    format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")
}

async fn run(server: &PostgresUrl, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = server
        .options()
        .application_name("emend test support")
        .connect()
        .await?;
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    connection.close().await
}
