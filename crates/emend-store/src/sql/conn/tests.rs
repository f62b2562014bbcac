//! What both databases make of statements and transactions.

use std::{borrow::Cow, mem};

use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::*;
use crate::{
    postgres::{PostgresConfig, open_postgres},
    sql::Pools,
    sqlite::open_sqlite,
    testing::{TestDatabase, TestPostgres},
};

fn migrations() -> Migrator {
    let mut migrator = Migrator::DEFAULT;
    migrator.migrations = Cow::Owned(vec![Migration::new(
        1,
        "note".into(),
        MigrationType::Simple,
        sqlx::SqlStr::from_static("CREATE TABLE note (id BIGINT NOT NULL, text TEXT)"),
        false,
    )]);
    migrator
}

/// A database with one empty table, and what keeps it.
struct Opened {
    pools: Pools,
    _directory: Option<tempfile::TempDir>,
    server: Option<TestDatabase>,
}

impl Opened {
    async fn close(self) {
        self.pools.close().await;
        if let Some(server) = self.server {
            server.close().await;
        }
    }
}

async fn both() -> Vec<Opened> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.db");
    let mut opened = vec![Opened {
        pools: Pools::Sqlite(open_sqlite(&path, 1, &migrations()).await.unwrap()),
        _directory: Some(directory),
        server: None,
    }];
    if let Some(server) = TestPostgres::create().await {
        let config = PostgresConfig {
            url: server.url().clone(),
            schema: "emend_test",
            application_name: "emend test",
            max_connections: 2,
        };
        opened.push(Opened {
            pools: Pools::Postgres(open_postgres(&config, &migrations()).await.unwrap()),
            _directory: None,
            server: Some(server),
        });
    }
    opened
}

#[tokio::test]
async fn a_statement_with_numbered_and_pushed_parameters_is_refused() {
    let numbered = || Statement::new("INSERT INTO note VALUES ($1, ").bind(1_i64);
    let mut pushed_after = numbered();
    pushed_after.push_bind("a").push(")");
    let mut pushed_before = Statement::new("INSERT INTO note VALUES (");
    pushed_before.push_bind(1_i64).push(", $2)");
    let pushed_before = pushed_before.bind("a");
    let mut either = numbered();
    let mut sides = ["upper(", "lower("].map(Statement::new);
    for side in &mut sides {
        side.push_bind("a").push(")");
    }
    let [sqlite, postgres] = sides;
    either.push_either(sqlite, postgres).push(")");
    let mut numbered_within = Statement::new("SELECT ");
    numbered_within.push_either(Statement::new("$1").bind(1_i64), Statement::new("$1").bind(1_i64));
    for opened in both().await {
        let mut writer = opened.pools.writer().await.unwrap();
        for statement in [&pushed_after, &pushed_before, &either, &numbered_within] {
            let text = statement.text();
            let executed = writer.execute(statement.clone()).await;
            assert!(
                matches!(&executed, Err(StoreError::Sqlx(sqlx::Error::Encode(_)))),
                "{text}: {executed:?}"
            );
            let mut rows = writer.stream::<(i64,)>(statement.clone());
            let streamed = rows.next().await.expect("an error");
            assert!(
                matches!(streamed, Err(StoreError::Sqlx(_))),
                "{text}: {streamed:?}"
            );
        }
        let count = writer.value::<i64>(Statement::new("SELECT count(*) FROM note"));
        assert_eq!(count.await.unwrap(), 0);
        drop(writer);
        opened.close().await;
    }
}

#[tokio::test]
async fn what_is_no_transaction_can_be_neither_committed_nor_rolled_back() {
    for opened in both().await {
        for commits in [true, false] {
            let mut transaction = opened.pools.begin_read().await.unwrap();
            let mut single = opened.pools.writer().await.unwrap();
            mem::swap(&mut *transaction, &mut single);
            let ended = if commits {
                transaction.commit().await
            } else {
                transaction.rollback().await
            };
            assert!(matches!(ended, Err(StoreError::Sqlx(_))), "{ended:?}");
        }
        opened.close().await;
    }
}
