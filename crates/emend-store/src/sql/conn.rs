//! A connection to either database, and what is asked of it.

use std::ops::{Deref, DerefMut};

use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use sqlx::{
    Connection as _, FromRow, Sqlite, SqliteConnection, pool::PoolConnection, postgres::PgRow,
    sqlite::SqliteRow,
};

use super::{Dialect, Statement};
use crate::{
    StoreError,
    postgres::{self, BoundedConnection, StatementConnection},
};

/// What is read from a row of either database: whatever derives [`FromRow`], and tuples.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<R> Row for R where R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// Rows that are decoded later, as on another thread.
pub enum Undecoded {
    /// Of an SQLite file.
    Sqlite(Vec<SqliteRow>),
    /// Of a PostgreSQL server.
    Postgres(Vec<PgRow>),
}

impl Undecoded {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Sqlite(rows) => rows.len(),
            Self::Postgres(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows.
    pub fn decode<R: Row>(&self) -> Result<Vec<R>, StoreError> {
        let decoded: Result<Vec<R>, sqlx::Error> = match self {
            Self::Sqlite(rows) => rows.iter().map(R::from_row).collect(),
            Self::Postgres(rows) => rows.iter().map(R::from_row).collect(),
        };
        Ok(decoded?)
    }

    /// The last row, if there is one.
    pub fn decode_last<R: Row>(&self) -> Result<Option<R>, StoreError> {
        let decoded: Option<Result<R, sqlx::Error>> = match self {
            Self::Sqlite(rows) => rows.last().map(R::from_row),
            Self::Postgres(rows) => rows.last().map(R::from_row),
        };
        Ok(decoded.transpose()?)
    }
}

/// A connection to one of the databases.
#[derive(Debug)]
pub enum Conn {
    /// To an SQLite file.
    Sqlite(SqliteConn),
    /// To a PostgreSQL server.
    Postgres(PostgresConn),
}

/// A connection to an SQLite file.
#[derive(Debug)]
pub enum SqliteConn {
    /// Each statement is a transaction.
    Single(PoolConnection<Sqlite>),
    /// In a transaction.
    Transaction(sqlx::Transaction<'static, Sqlite>),
}

/// A connection to a PostgreSQL server.
#[derive(Debug)]
pub enum PostgresConn {
    /// Each statement is a transaction.
    Single(StatementConnection),
    /// In a transaction.
    Transaction(postgres::Transaction),
}

impl Deref for SqliteConn {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Self::Single(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for SqliteConn {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Self::Single(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl Deref for PostgresConn {
    type Target = BoundedConnection;

    fn deref(&self) -> &BoundedConnection {
        match self {
            Self::Single(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for PostgresConn {
    fn deref_mut(&mut self) -> &mut BoundedConnection {
        match self {
            Self::Single(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl Conn {
    /// The SQL that it speaks.
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Executes a statement; returns how many rows it changed.
    pub async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let (sql, arguments) = statement.for_sqlite()?;
                let query = sqlx::query_with(sql, arguments);
                query.execute(&mut **connection).await?.rows_affected()
            }
            Self::Postgres(connection) => {
                let (sql, arguments) = statement.for_postgres()?;
                let query = sqlx::query_with(sql, arguments);
                query.execute(&mut **connection).await?.rows_affected()
            }
        })
    }

    /// All rows of a statement.
    pub async fn rows<R: Row>(&mut self, statement: Statement) -> Result<Vec<R>, StoreError> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let (sql, arguments) = statement.for_sqlite()?;
                sqlx::query_as_with(sql, arguments)
                    .fetch_all(&mut **connection)
                    .await?
            }
            Self::Postgres(connection) => {
                let (sql, arguments) = statement.for_postgres()?;
                sqlx::query_as_with(sql, arguments)
                    .fetch_all(&mut **connection)
                    .await?
            }
        })
    }

    /// All rows of a statement, yet to be decoded.
    pub async fn undecoded(&mut self, statement: Statement) -> Result<Undecoded, StoreError> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let (sql, arguments) = statement.for_sqlite()?;
                let query = sqlx::query_with(sql, arguments);
                Undecoded::Sqlite(query.fetch_all(&mut **connection).await?)
            }
            Self::Postgres(connection) => {
                let (sql, arguments) = statement.for_postgres()?;
                let query = sqlx::query_with(sql, arguments);
                Undecoded::Postgres(query.fetch_all(&mut **connection).await?)
            }
        })
    }

    /// The first row of a statement, if there is one.
    pub async fn optional<R: Row>(&mut self, statement: Statement) -> Result<Option<R>, StoreError> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let (sql, arguments) = statement.for_sqlite()?;
                let query = sqlx::query_as_with(sql, arguments);
                query.fetch_optional(&mut **connection).await?
            }
            Self::Postgres(connection) => {
                let (sql, arguments) = statement.for_postgres()?;
                let query = sqlx::query_as_with(sql, arguments);
                query.fetch_optional(&mut **connection).await?
            }
        })
    }

    /// The first row of a statement that always has one.
    pub async fn row<R: Row>(&mut self, statement: Statement) -> Result<R, StoreError> {
        let row = self.optional(statement).await?;
        row.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The first column of all rows.
    pub async fn values<T>(&mut self, statement: Statement) -> Result<Vec<T>, StoreError>
    where
        (T,): Row,
    {
        let rows = self.rows::<(T,)>(statement).await?;
        Ok(rows.into_iter().map(|(value,)| value).collect())
    }

    /// The first column of the first row of a statement that always has one.
    pub async fn value<T>(&mut self, statement: Statement) -> Result<T, StoreError>
    where
        (T,): Row,
    {
        let (value,) = self.row(statement).await?;
        Ok(value)
    }

    /// The first column of the first row, if there is one.
    pub async fn optional_value<T>(&mut self, statement: Statement) -> Result<Option<T>, StoreError>
    where
        (T,): Row,
    {
        let row = self.optional::<(T,)>(statement).await?;
        Ok(row.map(|(value,)| value))
    }

    /// The rows of a statement, one after the other as they are read.
    pub fn stream<'c, R: Row + 'c>(
        &'c mut self,
        statement: Statement,
    ) -> BoxStream<'c, Result<R, StoreError>> {
        match self {
            Self::Sqlite(connection) => match statement.for_sqlite() {
                Ok((sql, arguments)) => {
                    let rows = sqlx::query_as_with(sql, arguments).fetch(&mut **connection);
                    rows.map_err(StoreError::from).boxed()
                }
                Err(error) => failed(error),
            },
            Self::Postgres(connection) => match statement.for_postgres() {
                Ok((sql, arguments)) => {
                    let rows = sqlx::query_as_with(sql, arguments).fetch(&mut **connection);
                    rows.map_err(StoreError::from).boxed()
                }
                Err(error) => failed(error),
            },
        }
    }

    /// Executes a text without parameters, which may be of several statements.
    pub async fn execute_text(&mut self, text: &'static str) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let done = sqlx::raw_sql(text).execute(&mut **connection).await?;
                done.rows_affected()
            }
            Self::Postgres(connection) => {
                let done = sqlx::raw_sql(text).execute(&mut **connection).await?;
                done.rows_affected()
            }
        })
    }

    /// Whether the database answers.
    pub async fn ping(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(connection) => connection.ping().await?,
            Self::Postgres(connection) => connection.ping().await?,
        }
        Ok(())
    }

    /// How the database executes a statement, a step a line.
    #[cfg(any(test, feature = "testing"))]
    pub async fn plan(&mut self, statement: Statement) -> String {
        let steps: Result<Vec<String>, StoreError> = match self.dialect() {
            Dialect::Sqlite => {
                let explained = statement.after("EXPLAIN QUERY PLAN ");
                let rows = self.rows::<(i64, i64, i64, String)>(explained).await;
                rows.map(|rows| rows.into_iter().map(|(.., step)| step).collect())
            }
            Dialect::Postgres => self.values(statement.after("EXPLAIN ")).await,
        };
        steps.expect("a statement of a test can be explained").join("\n")
    }
}

fn failed<'c, R: Send + 'c>(error: sqlx::Error) -> BoxStream<'c, Result<R, StoreError>> {
    stream::once(async move { Err(error.into()) }).boxed()
}

/// Why a connection can't be committed or rolled back that somebody has put in the place of a transaction's.
fn no_transaction() -> StoreError {
    sqlx::Error::Protocol("this connection is in no transaction".into()).into()
}

/// Statements that take effect together, when they are committed; not at all if this is dropped.
#[derive(Debug)]
pub struct Transaction(Conn);

impl Transaction {
    /// Commits. On error the outcome is unknown.
    pub async fn commit(self) -> Result<(), StoreError> {
        match self.0 {
            Conn::Sqlite(SqliteConn::Transaction(transaction)) => transaction.commit().await?,
            Conn::Postgres(PostgresConn::Transaction(transaction)) => transaction.commit().await?,
            Conn::Sqlite(SqliteConn::Single(_)) | Conn::Postgres(PostgresConn::Single(_)) => {
                return Err(no_transaction());
            }
        }
        Ok(())
    }

    /// Rolls back.
    pub async fn rollback(self) -> Result<(), StoreError> {
        match self.0 {
            Conn::Sqlite(SqliteConn::Transaction(transaction)) => transaction.rollback().await?,
            Conn::Postgres(PostgresConn::Transaction(transaction)) => transaction.rollback().await?,
            Conn::Sqlite(SqliteConn::Single(_)) | Conn::Postgres(PostgresConn::Single(_)) => {
                return Err(no_transaction());
            }
        }
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}

impl From<PoolConnection<Sqlite>> for Conn {
    fn from(connection: PoolConnection<Sqlite>) -> Self {
        Self::Sqlite(SqliteConn::Single(connection))
    }
}

impl From<StatementConnection> for Conn {
    fn from(connection: StatementConnection) -> Self {
        Self::Postgres(PostgresConn::Single(connection))
    }
}

impl From<sqlx::Transaction<'static, Sqlite>> for Transaction {
    fn from(transaction: sqlx::Transaction<'static, Sqlite>) -> Self {
        Self(Conn::Sqlite(SqliteConn::Transaction(transaction)))
    }
}

impl From<postgres::Transaction> for Transaction {
    fn from(transaction: postgres::Transaction) -> Self {
        Self(Conn::Postgres(PostgresConn::Transaction(transaction)))
    }
}

#[cfg(test)]
mod tests;
