//! Nodes in SQL.

use async_trait::async_trait;
use emend_core::NodeId;
use emend_store::StoreError;
use emend_store::sql::{Statement, Transaction};
use futures::TryStreamExt as _;
use jiff::SignedDuration;
use sqlx_macros::FromRow;

use crate::SqlStore;
use crate::integers::micros;
use crate::log::sql as log_sql;
use crate::nodes::{Connection, NodeCounts, NodePage, NodeRepository, NodeRow, NodeStore, NodeWrite};
use crate::work::Work;

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
        self.transaction().await?.execute(Statement::new("UPDATE nodes SET seen_at = (SELECT now FROM database_clock) WHERE replica = $1 AND connected = 1")
            .bind(replica))
            .await?;
        Ok(())
    }

    async fn forget(&mut self, unseen_for: SignedDuration) -> Result<u64> {
        self.transaction()
            .await?
            .execute(
                Statement::new("DELETE FROM nodes WHERE seen_at < (SELECT now FROM database_clock) - $1")
                    .bind(micros(unseen_for)),
            )
            .await
    }
}

#[async_trait]
impl NodeStore for SqlStore {
    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>> {
        Ok(self
            .reader()
            .await?
            .values(Statement::new("SELECT caller FROM nodes WHERE node_id = $1").bind(node_id.as_str()))
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
        let now: i64 = transaction
            .value(Statement::new("SELECT now FROM database_clock"))
            .await?;
        let mut page = NodePage::begin(head, now);
        let mut rows = transaction.stream::<StoredNode>(
            Statement::new(
                "SELECT node_id, caller, info, report, connected, connected_at, seen_at FROM nodes
             WHERE (node_id, caller) > ($1, $2) AND seen_at >= $3 ORDER BY node_id, caller LIMIT $4",
            )
            .bind(after_id)
            .bind(after_caller)
            .bind(now.saturating_sub(micros(seen_within)))
            // One extra row tells whether more follow.
            .bind(limit.saturating_add(1)),
        );
        while let Some(row) = rows.try_next().await? {
            if !page.take(row.into(), limit) {
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
        let (all, connected): (i64, i64) = self.reader().await?.row(Statement::new("SELECT count(*), count(CASE WHEN connected = 1 AND seen_at >= (SELECT now FROM database_clock) - $1 THEN 1 END)
             FROM nodes WHERE seen_at >= (SELECT now FROM database_clock) - $2")
        .bind(micros(connected_within))
        .bind(micros(seen_within)))
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
        transaction.execute(Statement::new("INSERT INTO nodes (node_id, caller, replica, info, report, connected, connected_at, seen_at)
             VALUES ($1, $2, $3, $4, $5, 1, (SELECT now FROM database_clock) - $6, (SELECT now FROM database_clock))
             ON CONFLICT (node_id, caller) DO UPDATE SET info = excluded.info, replica = excluded.replica,
               connected = 1, connected_at = excluded.connected_at, seen_at = excluded.seen_at
             WHERE nodes.replica = excluded.replica OR nodes.connected_at <= excluded.connected_at")
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(replica)
        .bind(opening.info.as_slice())
        .bind(&[] as &[u8])
        .bind(opening.age_micros()))
        .await?;
    }
    if closed {
        transaction
            .execute(
                Statement::new(
                    "UPDATE nodes SET connected = 0, seen_at = (SELECT now FROM database_clock)
             WHERE node_id = $1 AND caller = $2 AND replica = $3",
                )
                .bind(write.node_id.as_str())
                .bind(write.caller.as_str())
                .bind(replica),
            )
            .await?;
    }
    if let Some(report) = &write.report {
        transaction.execute(Statement::new("UPDATE nodes SET report = $3, seen_at = (SELECT now FROM database_clock) WHERE node_id = $1 AND caller = $2")
        .bind(write.node_id.as_str())
        .bind(write.caller.as_str())
        .bind(report.as_slice()))
        .await?;
    }
    Ok(())
}

async fn forget_node(transaction: &mut Transaction, replica: &str, write: &NodeWrite) -> Result<()> {
    transaction
        .execute(
            Statement::new("DELETE FROM nodes WHERE node_id = $1 AND caller = $2 AND replica = $3")
                .bind(write.node_id.as_str())
                .bind(write.caller.as_str())
                .bind(replica),
        )
        .await?;
    Ok(())
}

#[derive(Debug, FromRow)]
struct StoredNode {
    node_id: String,
    caller: String,
    info: Vec<u8>,
    report: Vec<u8>,
    connected: i32,
    connected_at: i64,
    seen_at: i64,
}

impl From<StoredNode> for NodeRow {
    fn from(stored: StoredNode) -> Self {
        Self {
            node_id: stored.node_id,
            caller: stored.caller,
            info: stored.info,
            report: stored.report,
            connected: stored.connected != 0,
            connected_at: stored.connected_at,
            seen_at: stored.seen_at,
        }
    }
}

#[cfg(test)]
mod contract {
    use crate::{nodes::suite::stamp, testing::TestDatabase};

    mod sqlite {
        use super::*;
        stamp!(TestDatabase::Sqlite.open());
    }
    mod postgres {
        use super::*;
        stamp!(TestDatabase::Postgres.open());
    }
}
