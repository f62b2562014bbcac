//! For tests: a PostgreSQL database each, and the line that says why a test was skipped.
//!
//! `EMEND_TEST_POSTGRES_URL` names a server and a user who may create databases and roles. If it is unset, the test is
//! skipped with one line; if `CI` is `true`, that is a failure, because in CI every test runs on both databases.

use std::{env, fmt, fs::OpenOptions, io::Write as _, thread};

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::{database::PostgresUrl, entropy::Entropy};

const VARIABLE: &str = "EMEND_TEST_POSTGRES_URL";
const SKIPPED_FILE_VARIABLE: &str = "EMEND_SKIPPED_FILE";

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

/// Reports in one line why a test is skipped, on standard error and in the file that `EMEND_SKIPPED_FILE` names. `cargo
/// xtask test` collects these lines and decides which of them CI accepts.
///
/// # Panics
/// If `CI` is `true` and no file is named, because then no skip is accepted. If the file can't be written.
pub fn skipped(reason: impl fmt::Display) {
    let line = format!("skipped: {reason}\n");
    #[expect(clippy::print_stderr, reason = "the one line about a skipped test")]
    {
        eprint!("{line}");
    }
    if let Some(file) = env::var_os(SKIPPED_FILE_VARIABLE) {
        // Test processes write concurrently: appending one short line in a single write keeps lines whole.
        let appended = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        appended.unwrap_or_else(|error| panic!("{SKIPPED_FILE_VARIABLE}: {error}"));
    } else {
        assert!(
            env::var("CI").as_deref() != Ok("true"),
            "{reason}, which may not be in CI"
        );
    }
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
        let name = format!("emend_test_{}", Entropy::system().uuid_v4().simple());
        run(&server, format!("CREATE DATABASE {name}"))
            .await
            .unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
        Some(TestDatabase {
            url: server.with_database(&name),
            server,
            name,
            dropped: false,
        })
    }
}

impl TestDatabase {
    /// Its URL.
    pub fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// Its URL, as a service takes it.
    pub fn database_url(&self) -> crate::database::DatabaseUrl {
        crate::database::DatabaseUrl::Postgres(self.url.clone())
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
