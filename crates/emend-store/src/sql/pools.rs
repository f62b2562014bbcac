//! The connections to one database.

use super::{Conn, Dialect, Transaction};
use crate::{Connections, StoreError, postgres::BoundedPool, sqlite::SqlitePools};

/// The connections to one database. Clones share them.
#[derive(Debug, Clone)]
pub enum Pools {
    /// To an SQLite file.
    Sqlite(SqlitePools),
    /// To a PostgreSQL server.
    Postgres(BoundedPool),
}

impl Pools {
    /// The SQL that the database speaks.
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Whether the database answers. While a PostgreSQL server does not, all else fails soon.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(pools) => Conn::from(pools.read.acquire().await?).ping().await,
            Self::Postgres(pool) => pool.ping().await,
        }
    }

    /// A connection for statements that read.
    pub async fn reader(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Sqlite(pools) => pools.read.acquire().await?.into(),
            Self::Postgres(pool) => pool.acquire().await?.into(),
        })
    }

    /// A connection for a statement that may scan much of a table, as filtered lists do: few at once, apart from the others.
    pub async fn browser(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Sqlite(pools) => pools.browse().await?.into(),
            Self::Postgres(pool) => pool.browse().await?.into(),
        })
    }

    /// A connection for single statements that write.
    pub async fn writer(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Sqlite(pools) => pools.write.acquire().await?.into(),
            Self::Postgres(pool) => pool.acquire().await?.into(),
        })
    }

    /// Begins a transaction that may write: on SQLite all other writers wait, on PostgreSQL it is READ COMMITTED.
    pub async fn begin_write(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pools) => pools.begin_write().await?.into(),
            Self::Postgres(pool) => pool.begin("BEGIN ISOLATION LEVEL READ COMMITTED").await?.into(),
        })
    }

    /// Begins a transaction that reads one consistent state.
    pub async fn begin_read(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pools) => pools.begin_read().await?.into(),
            Self::Postgres(pool) => pool
                .begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await?
                .into(),
        })
    }

    /// Takes what was deleted out of SQLite's write-ahead log; whether it is done. There is nothing that a client of PostgreSQL
    /// can do: its own vacuum frees what was deleted, and how long its log is kept is the operators' choice
    /// (docs/operations.md).
    pub async fn clean(&self) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(pools) => pools.truncate_log().await,
            Self::Postgres(_) => Ok(true),
        }
    }

    /// All connections and their current state.
    pub fn connections(&self) -> Connections {
        match self {
            Self::Sqlite(pools) => pools.connections(),
            Self::Postgres(pool) => pool.connections(),
        }
    }

    /// Closes all connections.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(pools) => pools.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
