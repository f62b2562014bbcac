//! Opening PostgreSQL, by any number of replicas at once, and being woken by its notifications.
//!
//! Services use it through [`bounded_pool`], where nothing waits for ever for a server that fell silent. It must know
//! nothing of any schema but its name; migrations are passed in.

mod bounded_pool;

use std::{io::ErrorKind, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

pub use bounded_pool::{BoundedConnection, BoundedPool, Lent, Transaction};

use crate::{
    audit::{APPLIED, OpenError, same_schema},
    backoff::{Backoff, BackoffConfig},
    database::{PostgresUrl, also_of_newer},
    entropy::Entropy,
    lifecycle::Lifecycle,
    store::StoreError,
};

/// Longer than any of our statements takes; one that exceeds it is stuck.
const STATEMENT_TIMEOUT: &str = "30s";
/// Longer than that by network latency: a live server has answered by then.
const SILENCE: Duration = Duration::from_secs(35);
/// Longer than any of our locks is held, except the head's during a large all-or-nothing import: a request that waits
/// longer fails as unavailable.
const LOCK_TIMEOUT: &str = "10s";
/// An open transaction holds locks and keeps dead rows alive.
const IDLE_IN_TRANSACTION_TIMEOUT: &str = "30s";
/// How long a use case waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the listening connection may be silent before it is checked.
const LISTEN_SILENCE: Duration = Duration::from_secs(10);

/// A connection older than this is closed when it comes back to the pool: its backend's memory only grows, and a new one
/// may lead to another server.
const LIFETIME: Duration = Duration::from_mins(30);

/// How one service uses a PostgreSQL database.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// The server and the user.
    pub url: PostgresUrl,
    /// The service's own schema, created if missing. Lower-case letters, digits and `_`.
    pub schema: &'static str,
    /// What the server's `pg_stat_activity` shows.
    pub application_name: &'static str,
    /// The most connections that this replica opens at once.
    pub max_connections: u32,
}

/// A pool without sqlx's own lifetimes, because of the task that enforces them: now and then it spins for ever
/// (<https://github.com/launchbadge/sqlx/issues/3645>, not fixed in 0.9.0).
fn pool_options(max_connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(max_connections.max(1))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
}

impl PostgresConfig {
    fn options(&self) -> PgConnectOptions {
        self.url.options().application_name(self.application_name)
    }
}

/// Creates the schema if needed, migrates it, and opens a pool whose connections use it. Any number of replicas may do
/// so at once: one migrates, the others wait for it.
///
/// # Panics
/// If `config.schema` is not a valid name.
pub async fn open_postgres(
    config: &PostgresConfig,
    migrations: &Migrator,
) -> Result<BoundedPool, StoreError> {
    open_bounded(config, migrations, SILENCE, LIFETIME).await
}

async fn open_bounded(
    config: &PostgresConfig,
    migrations: &Migrator,
    silence: Duration,
    lifetime: Duration,
) -> Result<BoundedPool, StoreError> {
    let schema = config.schema;
    assert!(
        !schema.is_empty()
            && schema
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')),
        "invariant: {schema:?} is the name of a schema"
    );
    let options = config.options();
    migrate(&options, schema, migrations).await?;
    let pool = pool_options(config.max_connections)
        .after_connect(move |connection, _| Box::pin(async move { prepare(connection, schema).await }))
        // sqlx's own test could use up the whole acquire timeout.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(bounded_pool::shows_life(connection)))
        .after_release(move |_, connection| Box::pin(async move { Ok(connection.age < lifetime) }))
        .connect_with(options)
        .await
        .map_err(StoreError::connecting)?;
    Ok(BoundedPool::new(pool, config.clone(), silence))
}

/// Begins a transaction that reads one consistent state for as long as it takes: the timeouts meant for serving do not
/// apply to audits.
pub const BEGIN_LONG_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";

/// Opens the service's existing schema read-only, with one connection.
pub async fn open_postgres_to_read(
    config: &PostgresConfig,
    migrations: &Migrator,
) -> Result<PgPool, OpenError> {
    let schema = config.schema;
    let pool = pool_options(1)
        .after_connect(move |connection, _| Box::pin(async move { prepare(connection, schema).await }))
        .connect_with(config.options())
        .await?;
    let migrated: bool = sqlx::query_scalar("SELECT to_regclass($1 || '._sqlx_migrations') IS NOT NULL")
        .bind(schema)
        .fetch_one(&pool)
        .await?;
    let applied = if migrated {
        sqlx::query_scalar(APPLIED).fetch_all(&pool).await?
    } else {
        Vec::new()
    };
    same_schema(applied, migrations)?;
    Ok(pool)
}

/// Settings of every connection. They are set by statement rather than at start-up, which poolers refuse; a pooler must
/// use session mode all the same, or they would end up on someone else's connection after the first transaction.
async fn prepare(connection: &mut PgConnection, schema: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "SELECT set_config('search_path', $1, false), set_config('statement_timeout', $2, false),
                set_config('lock_timeout', $3, false), set_config('idle_in_transaction_session_timeout', $4, false),
                set_config('TimeZone', 'UTC', false)",
    )
    .bind(schema)
    .bind(STATEMENT_TIMEOUT)
    .bind(LOCK_TIMEOUT)
    .bind(IDLE_IN_TRANSACTION_TIMEOUT)
    .execute(connection)
    .await?;
    Ok(())
}

/// Migrates on a separate connection without timeouts: replicas wait here for the one that migrates.
async fn migrate(
    options: &PgConnectOptions,
    schema: &'static str,
    migrations: &Migrator,
) -> Result<(), StoreError> {
    // sqlx bounds connecting through a pool, but not this.
    let connected = timeout(ACQUIRE_TIMEOUT, options.connect()).await;
    let connected = connected.unwrap_or_else(|_| Err(std::io::Error::from(ErrorKind::TimedOut).into()));
    let mut connection = connected.map_err(StoreError::connecting)?;
    let mut creating = connection.begin().await?;
    // Without the lock, two replicas at once would both find the schema missing, and one would fail on the catalogue.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('emend schema ' || $1, 0))")
        .bind(schema)
        .execute(&mut *creating)
        .await?;
    // Not CREATE SCHEMA IF NOT EXISTS: PostgreSQL requires CREATE on the database before it checks whether the schema
    // exists, and a service's user need not keep that privilege.
    let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)")
        .bind(schema)
        .fetch_one(&mut *creating)
        .await?;
    if !there {
        // A name can't be a bound parameter; this one was validated above.
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut *creating)
            .await?;
    }
    creating.commit().await?;
    sqlx::query("SELECT set_config('search_path', $1, false)")
        .bind(schema)
        .execute(&mut connection)
        .await?;
    // sqlx holds an advisory lock on the database while it checks and migrates.
    also_of_newer(migrations)
        .run_direct(None, &mut connection, false)
        .await
        .map_err(sqlx::Error::from)?;
    connection.close().await?;
    Ok(())
}

/// Wakes whoever tails a table, on every notification and after every reconnect. It carries no data: the reader reads
/// from its own cursor. Clones are woken independently. A connection that died silently is noticed late, so readers
/// also poll from time to time.
#[derive(Debug, Clone)]
pub struct PgWake(watch::Receiver<u64>);

impl PgWake {
    /// Listens on `channel` while `lifecycle` runs, over a separate connection, which no pooler may share. Returns at
    /// once; the first wake-up means that listening has begun.
    pub fn listen(
        url: &PostgresUrl,
        channel: &'static str,
        lifecycle: &Lifecycle,
        entropy: &Entropy,
    ) -> Self {
        let (wake, woken) = watch::channel(0);
        let listener = Listener {
            url: url.clone(),
            channel,
            wake: Arc::new(wake),
        };
        let soft = lifecycle.soft().clone();
        let backoff = Backoff::new(
            BackoffConfig {
                max: Duration::from_secs(5),
                ..BackoffConfig::default()
            },
            entropy.clone(),
        );
        lifecycle.spawn("listen for notifications", async move {
            tokio::select! {
                () = soft.cancelled() => {}
                () = listener.run(backoff) => {}
            }
        });
        Self(woken)
    }

    /// Waits for the next wake-up since the last call. Pending for ever once the lifecycle has ended.
    pub async fn woken(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

struct Listener {
    url: PostgresUrl,
    channel: &'static str,
    wake: Arc<watch::Sender<u64>>,
}

impl Listener {
    async fn run(mut self, mut backoff: Backoff) {
        loop {
            let error = match self.connect().await {
                Ok(listener) => {
                    backoff.reset();
                    self.forward(listener).await
                }
                Err(error) => error,
            };
            let pause = backoff.next();
            tracing::warn!(%error, channel = self.channel, ?pause, "not listening for notifications");
            sleep(pause).await;
            match self.url.reread().await {
                Ok(Some(url)) => self.url = url,
                Ok(None) => {}
                Err(why) => tracing::warn!(%why, "the file with the database's URL can't be used"),
            }
        }
    }

    async fn connect(&self) -> Result<PgListener, sqlx::Error> {
        let connecting = timeout(ACQUIRE_TIMEOUT, self.try_connect());
        connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn try_connect(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(self.url.options().application_name("emend listen"))
            .await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.ignore_pool_close_event(true);
        listener.listen(self.channel).await?;
        Ok(listener)
    }

    /// Forwards notifications until the connection is lost.
    async fn forward(&self, mut listener: PgListener) -> sqlx::Error {
        loop {
            // Notifications from before listening began, or from a lost connection, were missed: wake for them.
            self.wake.send_modify(|count| *count = count.wrapping_add(1));
            if let Err(error) = heard(&mut listener).await {
                return error;
            }
            // A burst of notifications becomes one wake-up.
            while listener.next_buffered().is_some() {}
        }
    }
}

/// Waits for a notification or the end of the connection. A connection that only listens never notices that its server
/// is gone, so it is pinged from time to time. When a listener is dropped, sqlx sends UNLISTEN and waits for the
/// answer: a connection that fell silent stays with a task of its own until TCP gives it up.
async fn heard(listener: &mut PgListener) -> Result<(), sqlx::Error> {
    loop {
        // A timeout loses nothing: partially received messages stay in the connection's buffer.
        if let Ok(heard) = timeout(LISTEN_SILENCE, listener.try_recv()).await {
            return heard.map(drop);
        }
        bounded_pool::shows_life(sqlx::Acquire::acquire(&mut *listener).await?).await?;
        if listener.next_buffered().is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
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
            sqlx::SqlStr::from_static(
                "CREATE TABLE note (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
            ),
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
    async fn a_connection_that_is_old_is_replaced_when_it_comes_back() {
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
    async fn credentials_that_are_replaced_in_their_file_are_used_without_a_restart() {
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
    async fn a_database_that_a_newer_release_migrated_is_served_too() {
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
    async fn every_connection_finds_its_schema_and_its_timeouts() {
        let Some(database) = TestPostgres::create().await else {
            return;
        };
        let pool = open_postgres(&config(database.url(), "emend_feedback"), &migrations())
            .await
            .unwrap();
        let settings: (String, String, String) = sqlx::query_as(
            "SELECT current_setting('search_path'), current_setting('statement_timeout'), current_setting('application_name')",
        )
        .fetch_one(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
        assert_eq!(
            settings,
            ("emend_feedback".into(), "30s".into(), "emend test".into())
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

    #[tokio::test]
    async fn notifications_wake_and_so_does_a_reconnect() {
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

        sqlx::query("NOTIFY emend_head")
            .execute(&mut *pool.acquire().await.unwrap())
            .await
            .unwrap();
        timeout(SOON, wake.woken())
            .await
            .expect("woken by a notification");

        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'emend listen' AND datname = current_database()")
            .execute(&mut *pool.acquire().await.unwrap())
            .await
            .unwrap();
        timeout(SOON, wake.woken())
            .await
            .expect("woken after the reconnect");

        sqlx::query("NOTIFY emend_head")
            .execute(&mut *pool.acquire().await.unwrap())
            .await
            .unwrap();
        timeout(SOON, wake.woken())
            .await
            .expect("woken by a notification again");
        lifecycle.shutdown(SOON).await;
        pool.close().await;
        database.close().await;
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_unavailable() {
        let url: PostgresUrl = "postgres://emend@127.0.0.1:1/emend".parse().unwrap();
        let error = open_postgres(&config(&url, "emend_feedback"), &migrations())
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
}
