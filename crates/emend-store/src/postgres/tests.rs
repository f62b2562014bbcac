//! Opening PostgreSQL, and being woken by it, on a real server.

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType};

use super::*;
use crate::testing::TestPostgres;

const SOON: Duration = Duration::from_secs(20);

fn migrations() -> Migrator {
    let mut migrator = Migrator::DEFAULT;
    migrator.migrations = Cow::Owned(vec![Migration::new(
        1,
        "note".into(),
        MigrationType::Simple,
        sqlx::SqlStr::from_static("CREATE TABLE note (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL UNIQUE)"),
        false,
    )]);
    migrator
}

fn config(url: &PostgresUrl, schema: &'static str) -> PostgresConfig {
    PostgresConfig {
        url: url.clone(),
        schema,
        application_name: "emend test",
        max_connections: 2,
    }
}

#[tokio::test]
async fn many_replicas_may_create_and_migrate_at_once() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let replicas = (0..8).map(|replica| {
        let schema = if replica % 2 == 0 {
            "emend_feedback"
        } else {
            "emend_learning"
        };
        let config = config(database.url(), schema);
        tokio::spawn(async move { open_postgres(&config, &migrations()).await })
    });
    let opened = futures::future::try_join_all(replicas).await.unwrap();
    for pool in opened {
        let pool = pool.unwrap();
        sqlx::query("INSERT INTO note (text) VALUES (gen_random_uuid()::text)")
            .execute(&mut *pool.acquire().await.unwrap())
            .await
            .unwrap();
        pool.close().await;
    }
    let pool = open_postgres(&config(database.url(), "emend_learning"), &migrations())
        .await
        .unwrap();
    let notes: i64 = sqlx::query_scalar("SELECT count(*) FROM note")
        .fetch_one(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!(notes, 4, "each schema has its own");
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn only_the_first_start_needs_the_privilege_to_create_a_schema() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let admin = open_postgres(&config(database.url(), "emend_other"), &migrations())
        .await
        .unwrap();
    let run = async |statement: String| {
        let statement = sqlx::AssertSqlSafe(statement);
        let mut connection = admin.acquire().await.unwrap();
        sqlx::query(statement).execute(&mut *connection).await.unwrap();
    };
    let database_name: String = sqlx::query_scalar("SELECT current_database()")
        .fetch_one(&mut *admin.acquire().await.unwrap())
        .await
        .unwrap();
    // Named after the database, because roles belong to the whole server.
    let role = &database_name;
    run(format!("CREATE ROLE {role} LOGIN PASSWORD 'for a test'")).await;
    run(format!("GRANT CREATE ON DATABASE {database_name} TO {role}")).await;
    let own = database.url().with_user(role, "for a test");
    let config = config(&own, "emend_feedback");
    open_postgres(&config, &migrations()).await.unwrap().close().await;

    run(format!("REVOKE CREATE ON DATABASE {database_name} FROM {role}")).await;
    open_postgres(&config, &migrations()).await.unwrap().close().await;
    let elsewhere = PostgresConfig {
        schema: "emend_learning",
        ..config
    };
    let refused = open_postgres(&elsewhere, &migrations()).await.unwrap_err();
    assert!(refused.to_string().contains("permission denied"), "{refused}");

    run(format!("DROP OWNED BY {role}")).await;
    run(format!("DROP ROLE {role}")).await;
    admin.close().await;
    database.close().await;
}

#[tokio::test]
async fn an_old_connection_is_replaced_when_returned() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let config = PostgresConfig {
        max_connections: 1,
        ..config(database.url(), "emend_feedback")
    };
    for (lifetime, is_replaced) in [(LIFETIME, false), (Duration::ZERO, true)] {
        let pool = open_bounded(&config, &migrations(), SILENCE, lifetime)
            .await
            .unwrap();
        let backend = async || -> i32 {
            sqlx::query_scalar("SELECT pg_backend_pid()")
                .fetch_one(&mut *pool.acquire().await.unwrap())
                .await
                .unwrap()
        };
        let first = backend().await;
        assert_eq!(backend().await != first, is_replaced);
        pool.close().await;
    }
    database.close().await;
}

#[tokio::test]
async fn credentials_replaced_in_their_file_are_used_without_a_restart() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let mut admin = database.url().options().connect().await.unwrap();
    let mut run = async |statement: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut admin)
            .await
            .unwrap();
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("url");
    let options = database.url().options();
    let name = options.get_database().unwrap();
    let (old, new) = (format!("{name}_a"), format!("{name}_b"));
    // The way mounted secrets change: a new file replaces the old one.
    let now_is = |role: &str| {
        let url = database.url().with_user(role, "secret").to_string();
        let next = directory.path().join("next");
        std::fs::write(&next, url.replacen('@', ":secret@", 1)).unwrap();
        std::fs::rename(&next, &file).unwrap();
    };
    for role in [&old, &new] {
        run(format!("CREATE ROLE {role} LOGIN PASSWORD 'secret'")).await;
        run(format!("GRANT CREATE ON DATABASE {name} TO {role}")).await;
    }
    now_is(&old);
    let url = crate::storage::read_postgres_url("--database-url-file", &file).unwrap();
    let pool = open_postgres(&config(&url, "emend_feedback"), &migrations())
        .await
        .unwrap();
    let user = async || -> String {
        sqlx::query_scalar("SELECT current_user::text")
            .fetch_one(&mut *pool.acquire().await.unwrap())
            .await
            .unwrap()
    };
    assert_eq!(user().await, old);

    // The old user can't log in any more, and its connections end.
    run(format!("ALTER ROLE {old} NOLOGIN")).await;
    run(format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{old}'"
    ))
    .await;
    let refused = pool.acquire().await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    std::fs::write(&file, "not a URL").unwrap();
    assert!(pool.acquire().await.is_err(), "what is no URL changes nothing");
    now_is(&new);
    let found = async {
        while pool.acquire().await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), found)
        .await
        .expect("the new URL is found");
    assert_eq!(user().await, new);

    pool.close().await;
    for role in [&old, &new] {
        run(format!("DROP OWNED BY {role}")).await;
        run(format!("DROP ROLE {role}")).await;
    }
    admin.close().await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn a_database_migrated_by_a_newer_release_is_served() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let config = config(database.url(), "emend_feedback");
    let mut newer = migrations();
    newer.migrations.to_mut().push(Migration::new(
        2,
        "author".into(),
        MigrationType::Simple,
        sqlx::SqlStr::from_static("ALTER TABLE note ADD COLUMN author TEXT"),
        false,
    ));
    open_postgres(&config, &newer).await.unwrap().close().await;
    let pool = open_postgres(&config, &migrations()).await.unwrap();
    sqlx::query("INSERT INTO note (text) VALUES ('x')")
        .execute(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn every_connection_has_its_settings() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let pool = open_postgres(&config(database.url(), "emend_feedback"), &migrations())
        .await
        .unwrap();
    // The tests' server has it off for all.
    let source: String = sqlx::query_scalar("SELECT source FROM pg_settings WHERE name = 'jit'")
        .fetch_one(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!(source, "session");
    let settings: (String, String, String, String) = sqlx::query_as(
        "SELECT current_setting('search_path'), current_setting('statement_timeout'), current_setting('application_name'),
                current_setting('jit')",
    )
    .fetch_one(&mut *pool.acquire().await.unwrap())
    .await
    .unwrap();
    assert_eq!(
        settings,
        (
            "emend_feedback".into(),
            "30s".into(),
            "emend test".into(),
            "off".into()
        )
    );
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn a_duplicate_is_a_unique_violation_and_a_deadlock_a_conflict() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let pool = open_postgres(&config(database.url(), "emend_feedback"), &migrations())
        .await
        .unwrap();
    sqlx::query("INSERT INTO note (text) VALUES ('a'), ('b')")
        .execute(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    let duplicate = sqlx::query("INSERT INTO note (text) VALUES ('a')")
        .execute(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap_err();
    assert!(StoreError::from(duplicate).is_unique_violation());

    let lock = "SELECT id FROM note WHERE text = $1 FOR UPDATE";
    let (mut one, mut other) = (
        pool.begin("BEGIN").await.unwrap(),
        pool.begin("BEGIN").await.unwrap(),
    );
    sqlx::query(lock).bind("a").execute(&mut *one).await.unwrap();
    sqlx::query(lock).bind("b").execute(&mut *other).await.unwrap();
    let (first, second) = tokio::join!(sqlx::query(lock).bind("b").execute(&mut *one), async {
        let result = sqlx::query(lock).bind("a").execute(&mut *other).await;
        other.rollback().await.unwrap();
        result
    });
    let victim = first
        .err()
        .or(second.err())
        .expect("one of two deadlocked transactions fails");
    assert!(matches!(StoreError::from(victim), StoreError::Conflict(_)));
    one.rollback().await.unwrap();
    pool.close().await;
    database.close().await;
}

/// Notifies whoever listens on `emend_head`.
pub(super) async fn notify(pool: &BoundedPool) {
    sqlx::query("NOTIFY emend_head")
        .execute(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
}

/// Fails unless the listener is woken within `patience`.
pub(super) async fn is_woken(wake: &mut PgWake, patience: Duration, when: &str) {
    timeout(patience, wake.woken()).await.expect(when);
}

#[tokio::test]
async fn notifications_and_reconnects_wake_the_listener() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let lifecycle = Lifecycle::new();
    let pool = open_postgres(&config(database.url(), "emend_learning"), &migrations())
        .await
        .unwrap();
    let mut wake = PgWake::listen(database.url(), "emend_head", &lifecycle, &Entropy::system());
    timeout(SOON, wake.woken())
        .await
        .expect("woken when listening begins");

    notify(&pool).await;
    is_woken(&mut wake, SOON, "woken by a notification").await;

    sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'emend listen' AND datname = current_database()")
        .execute(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    is_woken(&mut wake, SOON, "woken after the reconnect").await;

    notify(&pool).await;
    is_woken(&mut wake, SOON, "woken by a notification again").await;
    lifecycle.shutdown(SOON).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let url: PostgresUrl = "postgres://emend@127.0.0.1:1/emend".parse().unwrap();
    let error = open_postgres(&config(&url, "emend_feedback"), &migrations())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}
