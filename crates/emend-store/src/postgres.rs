//! Opening PostgreSQL, by any number of replicas at once, and being woken by its notifications.
//!
//! Services use it through [`bounded_pool`], where nothing waits for ever for a server that fell silent. It must know
//! nothing of any schema but its name; migrations are passed in.

mod bounded_pool;
mod presence;

use std::{io::ErrorKind, sync::Arc, time::Duration};

use emend_base::{
    backoff::{Backoff, BackoffConfig},
    entropy::Entropy,
    lifecycle::Lifecycle,
};
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

pub use bounded_pool::{BoundedConnection, BoundedPool, StatementConnection, Transaction};
pub use presence::Presence;

use crate::{
    PostgresUrl, StoreError, also_of_newer,
    audit::{APPLIED, OpenError, same_schema},
    sql,
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

/// Longer than any statement of an audit takes, to which [`STATEMENT_TIMEOUT`] does not apply.
const LONG_SILENCE: Duration = Duration::from_hours(24);

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
    config.url.root_is_readable()?;
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
const BEGIN_LONG_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";

/// Opens the service's existing schema, over one connection, and begins to read one state of it, for as long as it takes.
pub async fn begin_to_read(
    config: &PostgresConfig,
    migrations: &Migrator,
) -> Result<sql::Transaction, OpenError> {
    let schema = config.schema;
    config.url.root_is_readable()?;
    let options = config.options().disable_statement_logging();
    let pool = pool_options(1)
        .after_connect(move |connection, _| Box::pin(async move { prepare(connection, schema).await }))
        // Scans take long, and who checks a database reads no SQL.
        .connect_with(options.clone())
        .await;
    let pool = match pool {
        // A pool tries until its time is up, and then says only that it is: trying once more says why.
        Err(sqlx::Error::PoolTimedOut) => {
            drop(connect(&options).await?);
            return Err(sqlx::Error::PoolTimedOut.into());
        }
        pool => pool.map_err(StoreError::connecting)?,
    };
    let pool = BoundedPool::new(pool, config.clone(), SILENCE);
    let mut connection = pool.acquire().await?;
    let migrated: bool = sqlx::query_scalar("SELECT to_regclass($1 || '._sqlx_migrations') IS NOT NULL")
        .bind(schema)
        .fetch_one(&mut *connection)
        .await?;
    let applied = if migrated {
        sqlx::query_scalar(APPLIED).fetch_all(&mut *connection).await?
    } else {
        Vec::new()
    };
    drop(connection);
    same_schema(applied, migrations)?;
    Ok(pool.begin_long(BEGIN_LONG_READ, LONG_SILENCE).await?.into())
}

/// Settings of every connection. They are set by statement rather than at start-up, which poolers refuse; a pooler must
/// use session mode all the same, or they would end up on someone else's connection after the first transaction.
async fn prepare(connection: &mut PgConnection, schema: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "SELECT set_config('search_path', $1, false), set_config('statement_timeout', $2, false),
                set_config('lock_timeout', $3, false), set_config('idle_in_transaction_session_timeout', $4, false),
                set_config('TimeZone', 'UTC', false),
                -- Statements over arrays are estimated dear and are over in a millisecond: to compile them takes longer.
                set_config('jit', 'off', false)",
    )
    .bind(schema)
    .bind(STATEMENT_TIMEOUT)
    .bind(LOCK_TIMEOUT)
    .bind(IDLE_IN_TRANSACTION_TIMEOUT)
    .execute(connection)
    .await?;
    Ok(())
}

/// Connects, which sqlx bounds through a pool alone.
async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let connected = timeout(ACQUIRE_TIMEOUT, options.connect()).await;
    let connected = connected.unwrap_or_else(|_| Err(std::io::Error::from(ErrorKind::TimedOut).into()));
    connected.map_err(StoreError::connecting)
}

/// Migrates on a separate connection without timeouts: replicas wait here for the one that migrates.
async fn migrate(
    options: &PgConnectOptions,
    schema: &'static str,
    migrations: &Migrator,
) -> Result<(), StoreError> {
    let mut connection = connect(options).await?;
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
mod tests;
