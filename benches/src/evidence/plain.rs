//! The peer: rows in batches of the same size, into a table with a primary key and nothing else.

use anyhow::Result;
use sqlx::{ConnectOptions as _, QueryBuilder};
use tokio::time::Instant;

use super::{BATCH, graph::PER_CLAIM, per_second};

const PLAIN: &str = "CREATE TABLE plain_edges (edge_id TEXT PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL, weight BIGINT NOT NULL)";

macro_rules! plain_inserts {
    ($name:ident, $options:ty, $database:ty) => {
        pub(super) async fn $name(url: &str, rows: usize) -> Result<f64> {
            let mut connection = url.parse::<$options>()?.connect().await?;
            sqlx::query("DROP TABLE IF EXISTS plain_edges")
                .execute(&mut connection)
                .await?;
            sqlx::query(PLAIN).execute(&mut connection).await?;
            let numbers: Vec<usize> = (0..rows).collect();
            let began = Instant::now();
            for numbers in numbers.chunks(BATCH) {
                let mut query = QueryBuilder::<$database>::new(
                    "INSERT INTO plain_edges (edge_id, source, target, weight) ",
                );
                query.push_values(numbers, |mut row, number| {
                    row.push_bind(format!("e{number:08}"))
                        .push_bind(format!("f{:08}", number / 2))
                        .push_bind(format!("c{:08}", number / PER_CLAIM))
                        .push_bind(900_000_i64);
                });
                query.build().execute(&mut connection).await?;
            }
            let ours = per_second(rows, began);
            sqlx::query("DROP TABLE plain_edges")
                .execute(&mut connection)
                .await?;
            Ok(ours)
        }
    };
}

plain_inserts!(
    plain_inserts_sqlite,
    sqlx::sqlite::SqliteConnectOptions,
    sqlx::Sqlite
);
plain_inserts!(
    plain_inserts_postgres,
    sqlx::postgres::PgConnectOptions,
    sqlx::Postgres
);
