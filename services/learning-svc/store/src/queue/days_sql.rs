//! What happened in the review queue each day, in SQL.
//!
//! Whoever decides adds a row of its own: many do so at once, and one row for all would hold them up. A worker adds these rows to
//! those of the days, and a reader adds up both.

use std::collections::BTreeMap;

use emend_core::{Kind, Namespace};
use emend_store::{StoreError, sql::Statement};
use sqlx_macros::FromRow;

use super::{DayFigures, MAX_DAYS, QueueCount};
use crate::{SqlStore, batches::batches, integers::saturated, rows::At, work::Work};

type Result<T> = std::result::Result<T, StoreError>;

/// Rows that are added up at once.
const FOLDED: u32 = 5_000;
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

#[derive(Debug, FromRow)]
struct CountRow {
    namespace: String,
    day: i64,
    kind: i32,
    received: i64,
    applied: i64,
    rejected: i64,
    withdrawn: i64,
}

impl CountRow {
    fn figures(&self) -> Result<DayFigures> {
        let at = At {
            table: "queue_days",
            id: &self.namespace,
        };
        Ok(DayFigures {
            received: at.number("received", self.received)?,
            applied: at.number("applied", self.applied)?,
            rejected: at.number("rejected", self.rejected)?,
            withdrawn: at.number("withdrawn", self.withdrawn)?,
        })
    }
}

/// Notes what a unit of work does.
pub(crate) async fn note(work: &mut Work, counts: &[QueueCount]) -> Result<()> {
    for counts in batches(counts) {
        let query = work.write(
            "INSERT INTO queue_counts (namespace, day, kind, received, applied, rejected, withdrawn) ",
        );
        push_rows(query, counts);
        work.written().await?;
    }
    Ok(())
}

fn push_rows(query: &mut Statement, counts: &[QueueCount]) {
    query.push_values(counts, |mut row, count| {
        row.push_bind(count.namespace.as_str())
            .push_bind(count.day)
            .push_bind(count.kind.number())
            .push_bind(saturated(count.figures.received))
            .push_bind(saturated(count.figures.applied))
            .push_bind(saturated(count.figures.rejected))
            .push_bind(saturated(count.figures.withdrawn));
    });
}

/// What happened in a namespace since a day, by day and kind.
pub(crate) fn since(namespace: &Namespace, day: i64) -> Statement {
    let mut query = Statement::new(
        "SELECT min(namespace) AS namespace, day, kind, CAST(sum(received) AS BIGINT) AS received, \
         CAST(sum(applied) AS BIGINT) AS applied, CAST(sum(rejected) AS BIGINT) AS rejected, \
         CAST(sum(withdrawn) AS BIGINT) AS withdrawn FROM (",
    );
    for (index, table) in ["queue_days", "queue_counts"].into_iter().enumerate() {
        let union = if index > 0 { " UNION ALL " } else { "" };
        query.push(union).push(format_args!(
            "SELECT namespace, day, kind, received, applied, rejected, withdrawn FROM {table} WHERE namespace = "
        ));
        query.push_bind(namespace.as_str());
        query.push(" AND day >= ").push_bind(day);
    }
    query.push(") AS counted GROUP BY day, kind ORDER BY day, kind");
    query
}

pub(super) async fn days(store: &SqlStore, namespace: &Namespace, day: i64) -> Result<Vec<QueueCount>> {
    let rows: Vec<CountRow> = store.rows(since(namespace, day)).await?;
    // A newer version may have written what this one does not know.
    let known = rows
        .iter()
        .filter_map(|row| Some((row, Kind::from_number(row.kind)?)));
    known
        .map(|(row, kind)| {
            Ok(QueueCount {
                namespace: namespace.clone(),
                day: row.day,
                kind,
                figures: row.figures()?,
            })
        })
        .collect()
}

#[derive(Debug, FromRow)]
struct NewRow {
    number: i64,
    #[sqlx(flatten)]
    count: CountRow,
}

/// Adds rows to those of their days, and drops days that nobody asks for. Returns how many rows were added.
pub(super) async fn fold(store: &SqlStore) -> Result<u64> {
    let mut transaction = store.begin_write().await?;
    let mut query = Statement::new(
        "SELECT number, namespace, day, kind, received, applied, rejected, withdrawn FROM queue_counts \
         ORDER BY number LIMIT ",
    );
    query.push_limit(FOLDED).for_update();
    let new: Vec<NewRow> = transaction.rows(query).await?;
    let mut sums: BTreeMap<(String, i64, i32), [i64; 4]> = BTreeMap::new();
    for NewRow { count, .. } in &new {
        let sum = sums
            .entry((count.namespace.clone(), count.day, count.kind))
            .or_default();
        let counted = [count.received, count.applied, count.rejected, count.withdrawn];
        for (sum, counted) in sum.iter_mut().zip(counted) {
            *sum += counted;
        }
    }
    let sums: Vec<_> = sums.into_iter().collect();
    for sums in batches(&sums) {
        let mut query = Statement::new(
            "INSERT INTO queue_days (namespace, day, kind, received, applied, rejected, withdrawn) ",
        );
        query.push_values(sums, |mut row, ((namespace, day, kind), figures)| {
            row.push_bind(namespace.as_str()).push_bind(*day).push_bind(*kind);
            for figure in figures {
                row.push_bind(*figure);
            }
        });
        query.push(
            " ON CONFLICT (namespace, day, kind) DO UPDATE SET received = queue_days.received + excluded.received, \
             applied = queue_days.applied + excluded.applied, rejected = queue_days.rejected + excluded.rejected, \
             withdrawn = queue_days.withdrawn + excluded.withdrawn",
        );
        transaction.execute(query).await?;
    }
    let numbers: Vec<i64> = new.iter().map(|row| row.number).collect();
    for numbers in batches(&numbers) {
        let mut query = Statement::new("DELETE FROM queue_counts WHERE number IN ");
        query.push_list(numbers.iter().copied());
        transaction.execute(query).await?;
    }
    let mut old = Statement::new("DELETE FROM queue_days WHERE day < (SELECT now FROM database_clock) / ");
    old.push_bind(DAY).push(" - ").push_bind(i64::from(MAX_DAYS));
    transaction.execute(old).await?;
    transaction.commit().await?;
    Ok(numbers.len() as u64)
}
