//! Connections to a PostgreSQL server that may fall silent: its host is gone or the network swallows everything, and
//! TCP would take a quarter of an hour to notice, or never notice.
//!
//! The server bounds every statement of ours. A server that has not answered for longer is considered gone: the
//! statement fails as unavailable, and its connection is closed without a Terminate message and makes room for another.

use std::{
    io,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    Connection as _, Either, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr,
    pool::PoolConnection,
    postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::{
    runtime,
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::PostgresConfig;
use crate::{Connections, StoreError};

/// The file with the URL is looked at no more often than this, and waited for no longer.
const URL_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long an idle connection may take to prove that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// How long a connection is waited for while the server is known to be away: a caller may wait for two such times.
const AWAY_PATIENCE: Duration = Duration::from_millis(200);
/// How long the server may take to answer a ping, until it counts as away.
const PING_PATIENCE: Duration = Duration::from_millis(2_500);

/// A pool of connections that never wait for ever. Clones share it.
#[derive(Debug, Clone)]
pub struct BoundedPool {
    pool: PgPool,
    source: Arc<Source>,
    /// Scans never hold more than half of the connections.
    browsers: Arc<Semaphore>,
    silence: Duration,
    server: Arc<Server>,
}

/// What is known of the server.
#[derive(Debug, Default)]
struct Server {
    /// Whether nobody got a connection while a ping waited in vain.
    is_away: AtomicBool,
    /// How many connections were taken from the pool.
    taken: AtomicU64,
}

impl Server {
    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// Somebody got a connection.
    fn answered(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the database answers again");
        }
    }

    /// A ping was in vain that began when `before` connections had been taken. A pool that is only busy gives some to others.
    fn failed(&self, before: u64) {
        if self.taken.load(Ordering::Relaxed) == before && !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!("the database is away: until it answers, what needs it fails at once");
        }
    }
}

/// How connections are made.
#[derive(Debug)]
struct Source {
    /// With the URL as last read, and when somebody last looked whether there is another.
    config: Mutex<(PostgresConfig, UrlCheck)>,
    /// How often the URL has changed.
    version: AtomicU64,
}

/// The last look at the file with the URL.
#[derive(Debug, Default)]
struct UrlCheck {
    at: Option<Instant>,
    /// Why the file could not be used then; logged once.
    complaint: Option<String>,
}

/// A connection on which every statement is answered within a bound or fails with [`sqlx::Error::Io`]. When dropped, it
/// goes back to the pool unless it fell silent.
#[derive(Debug)]
pub struct BoundedConnection {
    /// `None` once dropped.
    connection: Option<PoolConnection<Postgres>>,
    /// How long an answer may take.
    silence: Duration,
    /// The same while a transaction is begun or ended, or the connection given back.
    pool_silence: Duration,
    is_silent: bool,
    in_transaction: bool,
    /// A scan's permit, held until the connection can be used by others.
    place: Option<OwnedSemaphorePermit>,
}

/// A connection for single statements.
#[derive(Debug)]
pub struct StatementConnection(BoundedConnection);

/// A transaction on its own connection; rolled back when dropped.
#[derive(Debug)]
pub struct Transaction(BoundedConnection);

impl BoundedPool {
    /// Wraps `pool`, which was made with `config`; each answer may take up to `silence`.
    pub(super) fn new(pool: PgPool, config: PostgresConfig, silence: Duration) -> Self {
        let half = pool.options().get_max_connections() as usize / 2;
        Self {
            pool,
            source: Arc::new(Source {
                config: Mutex::new((config, UrlCheck::default())),
                version: AtomicU64::new(0),
            }),
            browsers: Arc::new(Semaphore::new(half.max(1))),
            silence,
            server: Arc::default(),
        }
    }

    /// A connection. Statements do not run on the pool itself: there, an error while connecting can't be told from an
    /// error of the statement.
    pub async fn acquire(&self) -> Result<StatementConnection, StoreError> {
        Ok(StatementConnection(self.connection().await?))
    }

    /// A connection for a statement that may scan much of a table, as filtered lists do. All scans together use at most
    /// half of the connections, including statements that go on after their callers have left; a scan that waits longer
    /// than the pool's acquire timeout fails with [`StoreError::TooMuch`].
    pub async fn browse(&self) -> Result<StatementConnection, StoreError> {
        let patience = self.pool.options().get_acquire_timeout();
        let place = timeout(patience, Arc::clone(&self.browsers).acquire_owned()).await;
        let place = place.map_err(|_| StoreError::browsing(sqlx::Error::PoolTimedOut))?;
        let mut connection = self.connection().await?;
        connection.place = Some(place.expect("invariant: nobody closes the semaphore"));
        Ok(StatementConnection(connection))
    }

    async fn connection(&self) -> Result<BoundedConnection, StoreError> {
        let taking = self.take_from_pool();
        let taken = if self.server.is_away() {
            let taken = timeout(AWAY_PATIENCE, taking).await;
            taken.unwrap_or_else(|_| Err(StoreError::reaching(sqlx::Error::PoolTimedOut)))
        } else {
            taking.await
        };
        Ok(self.bounded(taken?))
    }

    fn bounded(&self, connection: PoolConnection<Postgres>) -> BoundedConnection {
        BoundedConnection {
            connection: Some(connection),
            silence: self.silence,
            pool_silence: self.silence,
            is_silent: false,
            in_transaction: false,
            place: None,
        }
    }

    /// Whether the server answers. While it does not, all else that needs a connection fails soon rather than after a pool's
    /// patience, so whoever uses the pool for long asks from time to time.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let before = self.server.taken.load(Ordering::Relaxed);
        let pinging = async {
            let mut connection = self.bounded(self.take_from_pool().await?);
            connection.ping().await.map_err(StoreError::connecting)
        };
        let answer = timeout(PING_PATIENCE, pinging).await;
        let answer = answer.unwrap_or_else(|_| Err(StoreError::reaching(fell_silent(PING_PATIENCE))));
        if answer.is_err() {
            self.server.failed(before);
        }
        answer
    }

    /// A connection of the pool. If none can be made, the URL may have changed: a password was rotated, or the database
    /// moved.
    async fn take_from_pool(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let version = self.source.version.load(Ordering::Acquire);
        let error = match self.pool.acquire().await {
            Ok(connection) => {
                self.server.answered();
                return Ok(connection);
            }
            Err(error) => error,
        };
        if self.follow_url(version).await {
            let connection = self.pool.acquire().await.map_err(StoreError::reaching)?;
            self.server.answered();
            return Ok(connection);
        }
        Err(StoreError::reaching(error))
    }

    /// Switches new connections to the URL that the file holds now. False if it is still that of `version`.
    async fn follow_url(&self, version: u64) -> bool {
        let Ok(mut source) = timeout(URL_CHECK_INTERVAL, self.source.config.lock()).await else {
            return false;
        };
        let (config, looked) = &mut *source;
        if self.source.version.load(Ordering::Acquire) != version {
            return true;
        }
        if looked.at.is_some_and(|at| at.elapsed() < URL_CHECK_INTERVAL) {
            return false;
        }
        let read = config.url.reread().await;
        looked.at = Some(Instant::now());
        match read {
            Ok(Some(url)) => {
                tracing::info!(database = %url, "new connections to the database use its new URL");
                config.url = url;
                self.pool.set_connect_options(config.options());
                self.source.version.fetch_add(1, Ordering::Release);
                looked.complaint = None;
                true
            }
            Ok(None) => false,
            Err(why) => {
                if looked.complaint.as_ref() != Some(&why) {
                    tracing::error!(%why, "the file with the database's URL can't be used; the last URL stays in use");
                    looked.complaint = Some(why);
                }
                false
            }
        }
    }

    /// Begins a transaction with `statement`, on its own connection. Answers to its statements, but not to those that begin
    /// and end it, may take up to `silence`.
    pub(super) async fn begin_long(
        &self,
        statement: &'static str,
        silence: Duration,
    ) -> Result<Transaction, StoreError> {
        let mut transaction = self.begin(statement).await?;
        transaction.silence = silence;
        Ok(transaction)
    }

    /// Begins a transaction with `statement`, on its own connection.
    pub async fn begin(&self, statement: &'static str) -> Result<Transaction, StoreError> {
        let mut connection = self.connection().await?;
        // Set before BEGIN completes: if this future is dropped midway, the connection must be rolled back.
        connection.in_transaction = true;
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .map_err(StoreError::connecting)?;
        Ok(Transaction(connection))
    }

    /// All connections and their current state.
    pub fn connections(&self) -> Connections {
        Connections::of(&[&self.pool])
    }

    /// Closes all connections once they are no longer in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Transaction {
    /// Commits. On error the outcome is unknown.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    /// Rolls back.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        self.0.silence = self.0.pool_silence;
        sqlx::raw_sql(statement).execute(&mut self.0).await?;
        self.0.in_transaction = false;
        Ok(())
    }
}

impl Deref for StatementConnection {
    type Target = BoundedConnection;

    fn deref(&self) -> &BoundedConnection {
        &self.0
    }
}

impl DerefMut for StatementConnection {
    fn deref_mut(&mut self) -> &mut BoundedConnection {
        &mut self.0
    }
}

impl Deref for Transaction {
    type Target = BoundedConnection;

    fn deref(&self) -> &BoundedConnection {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut BoundedConnection {
        &mut self.0
    }
}

impl BoundedConnection {
    /// Whether the server answers.
    pub async fn ping(&mut self) -> Result<(), sqlx::Error> {
        self.answered(PgConnection::ping).await
    }

    async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(&mut *self).await.map(drop)
    }

    async fn give_back(mut self, in_transaction: bool) {
        // The first attempt may fail with the result of an abandoned statement. A connection that can't be rolled back
        // is closed.
        if in_transaction && self.roll_back().await.is_err() && self.roll_back().await.is_err() {
            return;
        }
        if let Some(mut connection) = self.connection.take() {
            connection.return_to_pool().await;
        }
    }

    fn parts(&mut self) -> (&mut PgConnection, Duration, &mut bool) {
        let connection = self.connection.as_mut();
        let connection = connection.expect("invariant: only dropping takes the connection away");
        (connection, self.silence, &mut self.is_silent)
    }

    async fn answered<'c, T, F>(
        &'c mut self,
        ask: impl FnOnce(&'c mut PgConnection) -> F,
    ) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let (connection, silence, is_silent) = self.parts();
        timeout(silence, ask(connection)).await.unwrap_or_else(|_| {
            *is_silent = true;
            Err(fell_silent(silence))
        })
    }
}

fn fell_silent(silence: Duration) -> sqlx::Error {
    let message = format!("the database has not answered for {silence:?}");
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}

impl Drop for BoundedConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let runtime = runtime::Handle::try_current();
        let (false, Ok(runtime)) = (self.is_silent, runtime) else {
            // Closed right here: Terminate would be swallowed too, and without a runtime nobody can send it.
            drop(connection.detach());
            return;
        };
        let (silence, in_transaction) = (self.pool_silence, self.in_transaction);
        // Marked silent, so dropping it closes the connection unless it was given back.
        let last = Self {
            connection: Some(connection),
            silence,
            pool_silence: silence,
            is_silent: true,
            in_transaction: false,
            place: self.place.take(),
        };
        // sqlx alone would wait for as long as TCP does, occupying a slot of the pool: for an abandoned statement to
        // end, for the rollback, and for the answer to its ping.
        runtime.spawn(async move {
            if timeout(silence, last.give_back(in_transaction)).await.is_err() {
                tracing::warn!("{}: its connection is closed", fell_silent(silence));
            }
        });
    }
}

/// Pings an idle connection; one that does not answer in time is to be replaced.
pub(super) async fn shows_life(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match timeout(SIGN_OF_LIFE, connection.ping()).await {
        Ok(answer) => answer.map(|()| true),
        Err(_) => Err(fell_silent(SIGN_OF_LIFE)),
    }
}

impl<'c> Executor<'c> for &'c mut BoundedConnection {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (connection, silence, is_silent) = self.parts();
        let rows = connection.fetch_many(query);
        Box::pin(stream::try_unfold(
            (rows, is_silent),
            move |(mut rows, is_silent)| async move {
                match timeout(silence, rows.next()).await {
                    Ok(Some(row)) => Ok(Some((row?, (rows, is_silent)))),
                    Ok(None) => Ok(None),
                    Err(_) => {
                        *is_silent = true;
                        Err(fell_silent(silence))
                    }
                }
            },
        ))
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(self.answered(|connection| connection.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.answered(move |connection| connection.prepare_with(sql, parameters)))
    }
}

#[cfg(test)]
mod tests;
