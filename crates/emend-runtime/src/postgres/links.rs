//! Connections to a PostgreSQL that may fall silent: its host is gone or the road swallows everything, and TCP would take a
//! quarter of an hour to find out, or for ever.
//!
//! The server bounds every statement of ours. Who has not answered for longer is taken for gone: the statement fails as
//! unavailable, and its connection is closed without a farewell and makes room for another. It must know nothing of what is
//! asked.

use std::{
    io,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    Connection as _, Describe, Either, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr,
    pool::PoolConnection,
    postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::{
    runtime,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::store::{Connections, StoreError};

/// How long a connection that lay idle may take to show that it still leads to somebody.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// A pool of connections that do not wait for ever. Clones share it.
#[derive(Debug, Clone)]
pub struct Links {
    pool: PgPool,
    /// Who looks through much never has more than half of the connections.
    browsers: Arc<Semaphore>,
    silence: Duration,
}

/// A connection, of which every statement is answered within a bound or fails with [`sqlx::Error::Io`]. It goes back to the
/// pool when it is dropped, unless it fell silent.
#[derive(Debug)]
pub struct Link {
    /// None once it is dropped.
    connection: Option<PoolConnection<Postgres>>,
    silence: Duration,
    is_silent: bool,
    in_transaction: bool,
    /// Of one who browses, until the connection is of use to others.
    place: Option<OwnedSemaphorePermit>,
}

/// A connection for single statements.
#[derive(Debug)]
pub struct Lent(Link);

/// A transaction on a connection of its own; rolled back when it is dropped.
#[derive(Debug)]
pub struct Transaction(Link);

impl Links {
    /// Connections of that pool, each of which may take `silence` for an answer.
    pub(super) fn new(pool: PgPool, silence: Duration) -> Self {
        let half = pool.options().get_max_connections() as usize / 2;
        Self {
            pool,
            browsers: Arc::new(Semaphore::new(half.max(1))),
            silence,
        }
    }

    /// A connection. Not the pool itself is what statements run on: there, what goes wrong while a connection is made can't
    /// be told from what is wrong with the statement.
    pub async fn acquire(&self) -> Result<Lent, StoreError> {
        Ok(Lent(self.link().await?))
    }

    /// A connection for a statement that may look through much of a table, as lists with filters do. All who do have half of the
    /// connections at most, also while statements go on whose callers are gone; whoever waits for longer than for any
    /// connection is told that there is none.
    pub async fn browse(&self) -> Result<Lent, StoreError> {
        let patience = self.pool.options().get_acquire_timeout();
        let place = timeout(patience, Arc::clone(&self.browsers).acquire_owned()).await;
        let place = place.map_err(|_| StoreError::browsing(sqlx::Error::PoolTimedOut))?;
        let mut link = self.link().await?;
        link.place = Some(place.expect("invariant: nobody closes the semaphore"));
        Ok(Lent(link))
    }

    async fn link(&self) -> Result<Link, StoreError> {
        Ok(Link {
            connection: Some(self.pool.acquire().await.map_err(StoreError::connecting)?),
            silence: self.silence,
            is_silent: false,
            in_transaction: false,
            place: None,
        })
    }

    /// Begins a transaction by that statement, on a connection of its own.
    pub async fn begin(&self, statement: &'static str) -> Result<Transaction, StoreError> {
        let mut link = self.link().await?;
        // Before it is: who gives up in between leaves a connection that has to be rolled back.
        link.in_transaction = true;
        sqlx::raw_sql(statement)
            .execute(&mut link)
            .await
            .map_err(StoreError::connecting)?;
        Ok(Transaction(link))
    }

    /// All of them, as they are now.
    pub fn connections(&self) -> Connections {
        Connections::of(&[&self.pool])
    }

    /// Closes all, once nobody uses them any more.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Transaction {
    /// Makes what it did last. After an error it may have been made so or not.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    /// Undoes what it did.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(statement).execute(&mut self.0).await?;
        self.0.in_transaction = false;
        Ok(())
    }
}

impl Deref for Lent {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.0
    }
}

impl Deref for Transaction {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.0
    }
}

impl Link {
    /// Whether the server answers.
    pub async fn ping(&mut self) -> Result<(), sqlx::Error> {
        self.answered(PgConnection::ping).await
    }

    async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(&mut *self).await.map(drop)
    }

    async fn give_back(mut self, in_transaction: bool) {
        // The first may fail by what a statement that was given up has come to. What is not rolled back is closed.
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
    let what = format!("the database has not answered for {silence:?}");
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, what))
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let runtime = runtime::Handle::try_current();
        let (false, Ok(runtime)) = (self.is_silent, runtime) else {
            // Closed here and now: a farewell would be swallowed, too, and without a runtime nobody can send one.
            drop(connection.detach());
            return;
        };
        let (silence, in_transaction) = (self.silence, self.in_transaction);
        // Closed wherever it is not given back in the end.
        let last = Self {
            connection: Some(connection),
            silence,
            is_silent: true,
            in_transaction: false,
            place: self.place.take(),
        };
        // sqlx alone would wait for as long as TCP does, the connection's place in the pool taken: for the end of a statement
        // whose caller has gone, of the transaction, and for the answer to whether the server is still there.
        runtime.spawn(async move {
            if timeout(silence, last.give_back(in_transaction)).await.is_err() {
                tracing::warn!("{}: its connection is closed", fell_silent(silence));
            }
        });
    }
}

/// Asks a connection that lay idle whether the server is still there; one that does not say so in time is to be replaced.
pub(super) async fn shows_life(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match timeout(SIGN_OF_LIFE, connection.ping()).await {
        Ok(answer) => answer.map(|()| true),
        Err(_) => Err(fell_silent(SIGN_OF_LIFE)),
    }
}

impl<'c> Executor<'c> for &'c mut Link {
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

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.answered(|connection| connection.describe(sql)))
    }
}

#[cfg(test)]
mod tests;
