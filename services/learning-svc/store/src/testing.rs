//! What tests do to a database, and the contract suites' two databases.

use emend_store::{
    DatabaseUrl, StoreError,
    sql::{Dialect, Statement},
    testing::TestPostgres,
};

use super::database::SqlStore;

/// A database that a contract suite is stamped on.
#[derive(Debug, Clone, Copy)]
pub enum TestDatabase {
    /// A file.
    Sqlite,
    /// A database of its own in the PostgreSQL that tests use.
    Postgres,
}

/// Holds a test's database until the test ends.
pub type Guard = Box<dyn std::any::Any + Send + Sync>;

impl TestDatabase {
    /// A fresh, empty store; none where there is no PostgreSQL to test on.
    pub async fn open(self) -> Option<(SqlStore, Guard)> {
        let (url, guard): (DatabaseUrl, Guard) = match self {
            Self::Sqlite => {
                let directory = tempfile::tempdir().expect("the test's database answers");
                let url = DatabaseUrl::sqlite(directory.path().join("learning.db"));
                (url, Box::new(directory))
            }
            Self::Postgres => {
                let database = TestPostgres::create().await?;
                (database.database_url(), Box::new(database))
            }
        };
        let connections = match self {
            Self::Sqlite => 2,
            Self::Postgres => 4,
        };
        Some((
            SqlStore::open(&url, connections)
                .await
                .expect("the test's database answers"),
            guard,
        ))
    }
}

/// Runs each of these tests on both databases.
#[macro_export]
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test($crate::testing::TestDatabase::Sqlite).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test($crate::testing::TestDatabase::Postgres).await;
                }
            )+
        }
    };
}
pub use crate::on_both;

/// Runs each of these tests on both databases and on the store in memory.
#[macro_export]
macro_rules! on_all_stores {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $test() {
                    let opened = $crate::testing::TestDatabase::Sqlite.open().await;
                    let (store, _guard) = opened.expect("there is SQLite");
                    super::$test(store).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test]
                async fn $test() {
                    if let Some((store, _guard)) = $crate::testing::TestDatabase::Postgres.open().await {
                        super::$test(store).await;
                    }
                }
            )+
        }
        mod memory {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test($crate::memory::MemoryStore::default()).await;
                }
            )+
        }
    };
}
pub use crate::on_all_stores;

impl SqlStore {
    /// How the database executes a statement of a unit of work, a step a line.
    pub async fn plan(&self, statement: Statement) -> String {
        let mut transaction = self.begin_work().await.expect("the test's database answers");
        if transaction.dialect() == Dialect::Postgres {
            transaction
                .execute_text("ANALYZE")
                .await
                .expect("the test's database answers");
        }
        transaction.plan(statement).await
    }

    /// How the database executes a statement outside of units of work, a step a line.
    pub async fn plan_to_read(&self, statement: Statement) -> String {
        let mut transaction = self.begin_write().await.expect("the test's database answers");
        if transaction.dialect() == Dialect::Postgres {
            transaction
                .execute_text("ANALYZE")
                .await
                .expect("the test's database answers");
        }
        transaction.plan(statement).await
    }
}

/// Whether somebody waits for a lock in a test's database; of SQLite, which has one writer at a time, none.
pub async fn somebody_waits(database: &DatabaseUrl) -> Option<bool> {
    let store = SqlStore::open(database, 1)
        .await
        .expect("the test's database answers");
    match store.dialect() {
        Dialect::Sqlite => None,
        Dialect::Postgres => {
            let waiting = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock')";
            let waits = store
                .reader()
                .await
                .expect("the test's database answers")
                .value(Statement::new(waiting))
                .await;
            store.pools().close().await;
            Some(waits.expect("the test's database answers"))
        }
    }
}

/// Runs a test's statements behind the ports' back, to damage what is stored.
pub async fn tamper(database: &DatabaseUrl, sql: &'static str) {
    let store = SqlStore::open(database, 1)
        .await
        .expect("the test's database answers");
    let done: Result<u64, StoreError> = match store.pools().writer().await {
        Ok(mut writer) => writer.execute_text(sql).await,
        Err(error) => Err(error),
    };
    done.expect("the test's database answers");
    store.pools().close().await;
}

/// How many contests have a row.
pub async fn number_of_contests(database: &DatabaseUrl) -> u64 {
    let mut audit = crate::audit::stored::open(database)
        .await
        .expect("the test's database answers");
    audit
        .extent()
        .await
        .expect("the test's database answers")
        .contests
}
