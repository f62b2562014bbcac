//! Nodes in SQL. Written once, compiled for each database.

use async_trait::async_trait;
use emend_core::NodeId;
use emend_store::StoreError;
use futures::TryStreamExt as _;
use jiff::SignedDuration;
use sqlx::{Database, Row as _};

use super::{Backend, Db, Transaction, log_sql, work_sql::Work};
use crate::{
    nodes::store::{Connection, NodeCounts, NodePage, NodeRepository, NodeRow, NodeStore, NodeWrite},
    store::integers::micros,
};

type Row = <Db as Database>::Row;
type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl NodeRepository for Work {
    async fn write(&mut self, replica: &str, writes: &[NodeWrite]) -> Result<()> {
        // Replicas that write the same nodes concurrently must lock them in the same order.
        let mut writes: Vec<&NodeWrite> = writes.iter().collect();
        writes.sort_by(|a, b| (&a.node_id, &a.caller).cmp(&(&b.node_id, &b.caller)));
        for write in writes {
            write_node(self.transaction().await?, replica, write).await?;
        }
        Ok(())
    }

    async fn touch(&mut self, replica: &str) -> Result<()> {
        sqlx::query("UPDATE nodes SET seen_at = (SELECT now FROM database_clock) WHERE replica = $1 AND connected = 1")
            .bind(replica)
            .execute(&mut **self.transaction().await?)
            .await?;
        Ok(())
    }

    async fn forget(&mut self, unseen_for: SignedDuration) -> Result<u64> {
        let forgotten =
            sqlx::query("DELETE FROM nodes WHERE seen_at < (SELECT now FROM database_clock) - $1")
                .bind(micros(unseen_for))
                .execute(&mut **self.transaction().await?)
                .await?;
        Ok(forgotten.rows_affected())
    }
}

#[async_trait]
impl NodeStore for Backend {
    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>> {
        Ok(sqlx::query_scalar("SELECT caller FROM nodes WHERE node_id = $1")
            .bind(node_id.as_str())
            .fetch_all(&mut *self.reader().await?)
            .await?)
    }

    async fn list_nodes(
        &self,
        after: Option<(String, String)>,
        limit: i64,
        seen_within: SignedDuration,
    ) -> Result<NodePage> {
        let (after_id, after_caller) = after.unwrap_or_default();
        let mut transaction = self.begin_read().await?;
        let head = log_sql::read_head(&mut transaction).await?;
        let now: i64 = sqlx::query_scalar("SELECT now FROM database_clock")
            .fetch_one(&mut *transaction)
            .await?;
        let mut page = NodePage::begin(head, now);
        let mut rows = sqlx::query(
            "SELECT node_id, caller, info, report, connected, connected_at, seen_at FROM nodes
             WHERE (node_id, caller) > ($1, $2) AND seen_at >= $3 ORDER BY node_id, caller LIMIT $4",
        )
        .bind(after_id)
        .bind(after_caller)
        .bind(now.saturating_sub(micros(seen_within)))
        // One extra row tells whether more follow.
        .bind(limit.saturating_add(1))
        .fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await? {
            if !page.take(parse_node(&row)?, limit) {
                break;
            }
        }
        drop(rows);
        transaction.rollback().await?;
        Ok(page)
    }

    async fn count_nodes(
        &self,
        connected_within: SignedDuration,
        seen_within: SignedDuration,
    ) -> Result<NodeCounts> {
        let (all, connected): (i64, i64) = sqlx::query_as("SELECT count(*), count(CASE WHEN connected = 1 AND seen_at >= (SELECT now FROM database_clock) - $1 THEN 1 END)
             FROM nodes WHERE seen_at >= (SELECT now FROM database_clock) - $2")
        .bind(micros(connected_within))
        .bind(micros(seen_within))
        .fetch_one(&mut *self.reader().await?)
        .await?;
        Ok(NodeCounts {
            connected: connected.unsigned_abs(),
            disconnected: (all - connected).unsigned_abs(),
        })
    }
}

async fn write_node(transaction: &mut Transaction, replica: &str, write: &NodeWrite) -> Result<()> {
    let (opened, closed) = match &write.connection {
        Some(Connection::Opened(opening)) => (Some(opening), false),
        Some(Connection::OpenedAndClosed(opening)) => (Some(opening), true),
        Some(Connection::Closed) => (None, true),
        Some(Connection::Left) => return forget_node(transaction, replica, write).await,
        None => (None, false),
    };
    if let Some(opening) = opened {
        // A late write must not replace the stream that the node has opened elsewhere meanwhile.
        sqlx::query("INSERT INTO nodes (node_id, caller, replica, info, report, connected, connected_at, seen_at)
             VALUES ($1, $2, $3, $4, $5, 1, (SELECT now FROM database_clock) - $6, (SELECT now FROM database_clock))
             ON CONFLICT (node_id, caller) DO UPDATE SET info = excluded.info, replica = excluded.replica,
               connected = 1, connected_at = excluded.connected_at, seen_at = excluded.seen_at
             WHERE nodes.replica = excluded.replica OR nodes.connected_at <= excluded.connected_at")
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(replica)
        .bind(opening.info.as_slice())
        .bind(&[] as &[u8])
        .bind(opening.age_micros())
        .execute(&mut **transaction)
        .await?;
    }
    if closed {
        sqlx::query(
            "UPDATE nodes SET connected = 0, seen_at = (SELECT now FROM database_clock)
             WHERE node_id = $1 AND caller = $2 AND replica = $3",
        )
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(replica)
        .execute(&mut **transaction)
        .await?;
    }
    if let Some(report) = &write.report {
        sqlx::query("UPDATE nodes SET report = $3, seen_at = (SELECT now FROM database_clock) WHERE node_id = $1 AND caller = $2")
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(report.as_slice())
        .execute(&mut **transaction)
        .await?;
    }
    Ok(())
}

async fn forget_node(transaction: &mut Transaction, replica: &str, write: &NodeWrite) -> Result<()> {
    sqlx::query("DELETE FROM nodes WHERE node_id = $1 AND caller = $2 AND replica = $3")
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(replica)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

fn parse_node(row: &Row) -> Result<NodeRow> {
    Ok(NodeRow {
        node_id: row.try_get("node_id")?,
        caller: row.try_get("caller")?,
        info: row.try_get("info")?,
        report: row.try_get("report")?,
        connected: row.try_get::<i32, _>("connected")? != 0,
        connected_at: row.try_get("connected_at")?,
        seen_at: row.try_get("seen_at")?,
    })
}

#[cfg(test)]
mod contract {
    crate::nodes::store::suite::stamp!(super::super::open_for_test());
}
