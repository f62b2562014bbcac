//! The log's side of the store in portable SQL: compiled once per database, against the module that includes it.
//!
//! Consistent reads are one statement, or pages within one read transaction: no statement runs long, and no more than
//! one page is in memory. It must know nothing of what is done with the rows.

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{Epoch, InstallationId, NodeId};
use emend_store::{CorruptRow, StoreError};
use futures::TryStreamExt as _;
use jiff::SignedDuration;
use sqlx::{Database, Row as _};
use uuid::Uuid;

use super::{Backend, Db, Transaction, decisions_sql::bytes};
use crate::{
    fail_points,
    store::log::{
        Connection, Head, Loaded, LogPage, LogStore, LoggedChange, LoggedRevision, NodeCounts, NodePage,
        NodeRow, NodeWrite, PageSize, Sink,
    },
};

#[cfg(test)]
#[path = "contract/log.rs"]
mod contract;

type Row = <Db as Database>::Row;

/// Rows of a load in memory at once.
const LOAD_PAGE: i64 = 10_000;

const HEAD: &str =
    "SELECT installation_id, epoch, revision AS head, tombstone_horizon FROM head WHERE id = 1";

const RESOURCES: &str = "
    SELECT r.contest, c.namespace, c.kind, c.key, c.qualifier, c.user_id, r.value, r.value_checksum, r.revision,
           v.committed_at, v.cause, h.feedback_received_at, h.traceparent
    FROM resources r
    LEFT JOIN contests c ON c.contest = r.contest
    LEFT JOIN revisions v ON v.revision = r.revision
    LEFT JOIN changes h ON h.contest = r.contest AND h.revision = r.revision
    WHERE r.contest > $1
    ORDER BY r.contest LIMIT $2";

const TOMBSTONES: &str = "
    SELECT h.contest, h.ordinal, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.value, h.value_checksum,
           h.revision, v.committed_at, v.cause, h.feedback_received_at, h.traceparent
    FROM changes h
    LEFT JOIN contests c ON c.contest = h.contest
    LEFT JOIN revisions v ON v.revision = h.revision
    WHERE h.value IS NULL AND (h.revision, h.ordinal) > ($1, $2)
      AND NOT EXISTS (SELECT 1 FROM changes n WHERE n.contest = h.contest AND n.revision > h.revision)
    ORDER BY h.revision, h.ordinal LIMIT $3";

/// One statement, so that head, anchor and revisions are from one moment. Revisions are gap-free, so a range acts as a
/// limit.
const REVISIONS_AFTER: &str = "
    SELECT h.installation_id, h.epoch, h.revision AS head, h.tombstone_horizon, r.revision, r.committed_at, r.cause,
           l.contest, c.namespace, c.kind, c.key, c.qualifier, c.user_id, l.value, l.value_checksum,
           l.feedback_received_at, l.traceparent
    FROM head h
    LEFT JOIN revisions r ON r.revision >= $1 AND r.revision <= $1 + $2
    LEFT JOIN changes l ON l.revision = r.revision AND l.revision > $1
    LEFT JOIN contests c ON c.contest = l.contest
    WHERE h.id = 1
    ORDER BY r.revision, l.ordinal";

#[async_trait]
impl LogStore for Backend {
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head, StoreError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query(
            "INSERT INTO head (id, installation_id, epoch, revision, tombstone_horizon, created_at)
             VALUES (1, $1, $2, 0, 0, (SELECT now FROM database_clock)) ON CONFLICT (id) DO NOTHING",
        )
        .bind(bytes(installation.0))
        .bind(bytes(epoch.0))
        .execute(&mut *transaction)
        .await?;
        let head = parse_head(&sqlx::query(HEAD).fetch_one(&mut *transaction).await?)?;
        transaction.commit().await?;
        Ok(head)
    }

    async fn find_head(&self) -> Result<Option<Head>, StoreError> {
        let mut reader = self.reader().await?;
        if let Some(row) = sqlx::query(HEAD).fetch_optional(&mut *reader).await? {
            return parse_head(&row).map(Some);
        }
        let logged: Option<i64> = sqlx::query_scalar("SELECT revision FROM revisions LIMIT 1")
            .fetch_optional(&mut *reader)
            .await?;
        match logged {
            None => Ok(None),
            Some(_) => Err(CorruptRow::new("head", "id", 1, "the log has revisions and no head").into()),
        }
    }

    async fn head(&self) -> Result<Head, StoreError> {
        let row = sqlx::query(HEAD).fetch_one(&mut *self.reader().await?).await?;
        parse_head(&row)
    }

    async fn load(&self, sink: Sink<'_>) -> Result<Loaded, StoreError> {
        let mut transaction = self.begin_read().await?;
        let head = parse_head(&sqlx::query(HEAD).fetch_one(&mut *transaction).await?)?;
        let committed_at = sqlx::query_scalar("SELECT committed_at FROM revisions WHERE revision = $1")
            .bind(head.revision)
            .fetch_optional(&mut *transaction)
            .await?;
        load_resources(&mut transaction, &mut *sink).await?;
        load_tombstones(&mut transaction, head.horizon, sink).await?;
        transaction.rollback().await?;
        match committed_at {
            Some(committed_at) => Ok(Loaded { head, committed_at }),
            None if head.revision == 0 => Ok(Loaded {
                head,
                committed_at: 0,
            }),
            None => Err(CorruptRow::new("head", "revision", 1, "the log does not have this revision").into()),
        }
    }

    async fn revisions_after(&self, revision: i64, size: PageSize) -> Result<LogPage, StoreError> {
        let mut reader = self.reader().await?;
        let mut rows = sqlx::query(REVISIONS_AFTER)
            .bind(revision)
            .bind(size.revisions)
            .fetch(&mut *reader);
        let mut page: Option<LogPage> = None;
        let mut bytes = 0;
        while let Some(row) = rows.try_next().await? {
            let page = match &mut page {
                Some(page) => page,
                None => page.insert(LogPage {
                    head: parse_head(&row)?,
                    anchor: None,
                    revisions: Vec::new(),
                    is_full: false,
                }),
            };
            let Some(found) = row.try_get::<Option<i64>, _>("revision")? else {
                continue;
            };
            let committed_at = row.try_get("committed_at")?;
            if found == revision {
                page.anchor = Some(committed_at);
                continue;
            }
            if page.revisions.last().is_none_or(|last| last.revision != found) {
                if bytes >= size.bytes && !page.revisions.is_empty() {
                    page.is_full = true;
                    break;
                }
                page.revisions.push(LoggedRevision {
                    revision: found,
                    committed_at,
                    changes: Vec::new(),
                });
            }
            // A revision that changed nothing joins with no change.
            if row.try_get::<Option<i64>, _>("contest")?.is_some()
                && let Some(last) = page.revisions.last_mut()
            {
                let change = parse_change(&row)?;
                bytes += change.bytes();
                last.changes.push(change);
            }
        }
        page.ok_or_else(|| CorruptRow::new("head", "id", 1, "the row is missing").into())
    }

    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64, StoreError> {
        let head = self.head().await?;
        let now: i64 = sqlx::query_scalar("SELECT now FROM database_clock")
            .fetch_one(&mut *self.reader().await?)
            .await?;
        let by_age = self
            .newest_until(head, now.saturating_sub(micros(max_age)))
            .await?;
        let by_count: Option<i64> = sqlx::query_scalar(
            "SELECT revision FROM changes WHERE value IS NULL AND revision > $1
             ORDER BY revision DESC LIMIT 1 OFFSET $2",
        )
        .bind(head.horizon)
        .bind(max_tombstones)
        .fetch_optional(&mut *self.reader().await?)
        .await?;
        let wanted = by_age.max(by_count.unwrap_or(0));
        if wanted <= head.horizon {
            return Ok(head.horizon);
        }
        let mut transaction = self.begin_write().await?;
        // The update takes the head's lock, which every writer of revisions holds until commit.
        sqlx::query("UPDATE head SET tombstone_horizon = $1 WHERE id = 1 AND tombstone_horizon < $1 AND revision >= $1")
            .bind(wanted)
            .execute(&mut *transaction)
            .await?;
        let head = parse_head(&sqlx::query(HEAD).fetch_one(&mut *transaction).await?)?;
        transaction.commit().await?;
        Ok(head.horizon)
    }

    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch, StoreError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query("UPDATE head SET epoch = $2 WHERE id = 1 AND epoch = $1")
            .bind(bytes(old.0))
            .bind(bytes(new.0))
            .execute(&mut *transaction)
            .await?;
        let head = parse_head(&sqlx::query(HEAD).fetch_one(&mut *transaction).await?)?;
        transaction.commit().await?;
        Ok(head.epoch)
    }

    async fn write_nodes(&self, replica: &str, writes: &[NodeWrite]) -> Result<(), StoreError> {
        // Replicas that write the same nodes concurrently must lock them in the same order.
        let mut writes: Vec<&NodeWrite> = writes.iter().collect();
        writes.sort_by(|a, b| (&a.node_id, &a.caller).cmp(&(&b.node_id, &b.caller)));
        let mut transaction = self.begin_write().await?;
        for write in writes {
            write_node(&mut transaction, replica, write).await?;
        }
        fail_points::NODES_WRITTEN.pass();
        Ok(transaction.commit().await?)
    }

    async fn touch_nodes(&self, replica: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query("UPDATE nodes SET seen_at = (SELECT now FROM database_clock) WHERE replica = $1 AND connected = 1")
        .bind(replica)
        .execute(&mut *transaction)
        .await?;
        Ok(transaction.commit().await?)
    }

    async fn node_callers(&self, node_id: &NodeId) -> Result<Vec<String>, StoreError> {
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
    ) -> Result<NodePage, StoreError> {
        let (after_id, after_caller) = after.unwrap_or_default();
        let mut transaction = self.begin_read().await?;
        let head = parse_head(&sqlx::query(HEAD).fetch_one(&mut *transaction).await?)?;
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
    ) -> Result<NodeCounts, StoreError> {
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

    async fn forget_nodes(&self, unseen_for: SignedDuration) -> Result<u64, StoreError> {
        let mut transaction = self.begin_write().await?;
        let forgotten =
            sqlx::query("DELETE FROM nodes WHERE seen_at < (SELECT now FROM database_clock) - $1")
                .bind(micros(unseen_for))
                .execute(&mut *transaction)
                .await?
                .rows_affected();
        transaction.commit().await?;
        Ok(forgotten)
    }
}

impl Backend {
    /// The newest revision above the horizon committed at or before `cutoff`, else the horizon: a binary search,
    /// because commit times grow with revisions. If a clock was set back, the result is off by as much.
    async fn newest_until(&self, head: Head, cutoff: i64) -> Result<i64, StoreError> {
        let (mut known, mut beyond) = (head.horizon, head.revision + 1);
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            let committed_at: Option<i64> =
                sqlx::query_scalar("SELECT committed_at FROM revisions WHERE revision = $1")
                    .bind(middle)
                    .fetch_optional(&mut *self.reader().await?)
                    .await?;
            if committed_at.is_some_and(|at| at <= cutoff) {
                known = middle;
            } else {
                beyond = middle;
            }
        }
        Ok(known)
    }
}

async fn load_resources(transaction: &mut Transaction, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut after = i64::MIN;
    loop {
        let mut rows = sqlx::query(RESOURCES)
            .bind(after)
            .bind(LOAD_PAGE)
            .fetch(&mut **transaction);
        let mut found = 0;
        while let Some(row) = rows.try_next().await? {
            after = row.try_get("contest")?;
            sink(parse_change(&row)?);
            found += 1;
        }
        if found < LOAD_PAGE {
            return Ok(());
        }
    }
}

async fn load_tombstones(
    transaction: &mut Transaction,
    horizon: i64,
    sink: Sink<'_>,
) -> Result<(), StoreError> {
    // Ordinals start at 0: this skips the horizon's own revision and takes everything after it.
    let mut after = (horizon, i32::MAX);
    loop {
        let mut rows = sqlx::query(TOMBSTONES)
            .bind(after.0)
            .bind(after.1)
            .bind(LOAD_PAGE)
            .fetch(&mut **transaction);
        let mut found = 0;
        while let Some(row) = rows.try_next().await? {
            after = (row.try_get("revision")?, row.try_get("ordinal")?);
            sink(parse_change(&row)?);
            found += 1;
        }
        if found < LOAD_PAGE {
            return Ok(());
        }
    }
}

async fn write_node(
    transaction: &mut Transaction,
    replica: &str,
    write: &NodeWrite,
) -> Result<(), StoreError> {
    let (opened, closed) = match &write.connection {
        Some(Connection::Opened(opening)) => (Some(opening), false),
        Some(Connection::OpenedAndClosed(opening)) => (Some(opening), true),
        Some(Connection::Closed) => (None, true),
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

fn micros(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn parse_head(row: &Row) -> Result<Head, StoreError> {
    Ok(Head {
        epoch: epoch(row.try_get("epoch")?)?,
        installation: installation(row.try_get("installation_id")?)?,
        revision: row.try_get("head")?,
        horizon: row.try_get("tombstone_horizon")?,
    })
}

/// An epoch as it is stored.
pub(super) fn epoch(bytes: &[u8]) -> Result<Epoch, StoreError> {
    Uuid::from_slice(bytes)
        .map(Epoch)
        .map_err(|error| CorruptRow::new("head", "epoch", 1, error).into())
}

/// An installation's id as it is stored.
pub(super) fn installation(bytes: &[u8]) -> Result<InstallationId, StoreError> {
    Uuid::from_slice(bytes)
        .map(InstallationId)
        .map_err(|error| CorruptRow::new("head", "installation_id", 1, error).into())
}

fn parse_change(row: &Row) -> Result<LoggedChange, StoreError> {
    let revision: i64 = row.try_get("revision")?;
    let missing = || CorruptRow::new("revisions", "revision", revision, "the row is missing");
    if row.try_get::<Option<&str>, _>("namespace")?.is_none() {
        let contest: i64 = row.try_get("contest")?;
        return Err(CorruptRow::new("contests", "contest", contest, "the row is missing").into());
    }
    Ok(LoggedChange {
        revision,
        committed_at: row
            .try_get::<Option<i64>, _>("committed_at")?
            .ok_or_else(missing)?,
        cause: row.try_get::<Option<i32>, _>("cause")?.ok_or_else(missing)?,
        namespace: row.try_get("namespace")?,
        kind: row.try_get("kind")?,
        key: row.try_get("key")?,
        qualifier: row.try_get("qualifier")?,
        user_id: row.try_get("user_id")?,
        value: row.try_get::<Option<Vec<u8>>, _>("value")?.map(Bytes::from),
        checksum: row.try_get::<i64, _>("value_checksum")?.cast_unsigned(),
        feedback_received_at: row
            .try_get::<Option<i64>, _>("feedback_received_at")?
            .unwrap_or(0),
        traceparent: row
            .try_get::<Option<String>, _>("traceparent")?
            .unwrap_or_default(),
    })
}

fn parse_node(row: &Row) -> Result<NodeRow, StoreError> {
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
