//! The log in SQL. Written once, compiled for each database.
//!
//! Consistent reads are one statement, or pages within one read transaction: no statement runs long, and no more than
//! one page is in memory.

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{Epoch, InstallationId, OperationId, ResourceKey, Revision};
use emend_store::{CorruptRow, StoreError};
use emend_stream::log::{Head, Loaded, LoggedChange, LoggedRevision};
use futures::TryStreamExt as _;
use jiff::SignedDuration;
use sqlx::{Database, QueryBuilder, Row as _};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    Backend, Db, Transaction, notify, revisions_sql,
    work_sql::{Work, bytes},
};
use crate::{
    log::store::{
        ChangeWrite, LockedHead, LogPage, LogRepository, LogStore, LogWrites, PageSize, RevisionFilter,
        RevisionRecord, Sink, WrittenChange, rows::WrittenChangeRow,
    },
    store::{
        batches::batches,
        integers::{checksum, micros},
        rows::optional_id,
    },
};
use std::collections::BTreeSet;

#[cfg(test)]
#[path = "contract.rs"]
mod contract;

type Row = <Db as Database>::Row;
type Result<T> = std::result::Result<T, StoreError>;

const HEAD: &str =
    "SELECT installation_id, epoch, revision AS head, tombstone_horizon FROM head WHERE id = 1";

/// What is not stored beside the log is read from it; of what a person put or imported no feedback is noted, so that there is
/// nothing else to look up. The plus keeps SQLite to the index by contest: by its primary key it would read a thousand changes of
/// a revision to find one.
pub(super) const RESOURCES: &str = "
    SELECT r.contest, c.namespace, c.kind, c.key, c.qualifier, c.user_id, coalesce(r.value, h.value) AS value,
           r.value_checksum, r.revision, v.committed_at, v.cause, h.feedback_received_at, h.traceparent
    FROM resources r
    LEFT JOIN contests c ON c.contest = r.contest
    LEFT JOIN revisions v ON v.revision = r.revision
    LEFT JOIN changes h
        ON h.contest = CASE WHEN r.value IS NOT NULL AND v.cause IN (3, 4) THEN NULL ELSE r.contest END
       AND +h.revision = r.revision
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

/// Rows of a load that are read at once.
const LOAD_PAGE: i64 = 20_000;

#[async_trait]
impl LogRepository for Work {
    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>> {
        let mut query = QueryBuilder::new(
            "SELECT w.contest_id, w.namespace, w.kind, w.key, w.qualifier, w.user_id, w.before_value, w.newest, w.cause, \
             (SELECT r.operation_id FROM revisions AS r WHERE r.revision = w.newest) AS newest_operation FROM ( \
             SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.before_value, h.ordinal, \
             (SELECT max(newer.revision) FROM changes AS newer WHERE newer.contest = h.contest) AS newest, \
             (SELECT r.cause FROM revisions AS r WHERE r.revision = h.revision) AS cause \
             FROM changes AS h JOIN contests AS c ON c.contest = h.contest WHERE h.revision = ",
        );
        query.push_bind(revision.0).push(") AS w ORDER BY w.ordinal");
        let rows = self.rows::<WrittenChangeRow>(query).await?;
        rows.into_iter().map(WrittenChangeRow::parse).collect()
    }

    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead> {
        let by = i64::try_from(revisions).unwrap_or(i64::MAX);
        let query = self.write("UPDATE head SET revision = revision + ");
        query.push_bind(by);
        query.push(" WHERE id = 1 RETURNING revision, (SELECT now FROM database_clock)");
        let (revision, now): (i64, i64) = self
            .rows_written()
            .await?
            .pop()
            .ok_or_else(|| CorruptRow::new("head", "id", 1, "the log has no head"))?;
        if revisions > 0 {
            notify(self.transaction().await?).await?;
        }
        Ok(LockedHead {
            revision: Revision(revision),
            now,
        })
    }

    async fn append(&mut self, writes: &LogWrites) -> Result<()> {
        save_log(self, writes).await
    }
}

/// In place of a value that is not kept.
const DROPPED: &[u8] = &[];

/// The value of a change as it is kept. Of a key that keeps no history it is the newest one's only; what was before is never
/// kept beside it.
fn kept<'a>(writes: &'a LogWrites, change: &'a ChangeWrite) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
    let (value, before) = (change.value.as_deref(), change.before.as_deref());
    if change.key.kind.rules().rule.keeps_history() {
        return (value, before);
    }
    let mut others = writes.changes.iter();
    let is_newest = !others.any(|other| other.key == change.key && other.revision > change.revision);
    let value = if is_newest { value } else { value.map(|_| DROPPED) };
    (value, before.map(|_| DROPPED))
}

/// Drops the newest value so far of each key that keeps no history and changes now. The checksum stays.
async fn drop_values(work: &mut Work, writes: &LogWrites) -> Result<()> {
    let changed = writes.changes.iter().map(|change| &change.key);
    let changed: BTreeSet<&ResourceKey> = changed
        .filter(|key| !key.kind.rules().rule.keeps_history())
        .collect();
    for key in changed {
        let contest = work.keys.contest(key.contest_id())?;
        sqlx::query(
            "UPDATE changes SET value = $2 WHERE contest = $1 AND value IS NOT NULL
             AND revision = (SELECT max(newest.revision) FROM changes AS newest WHERE newest.contest = $1)",
        )
        .bind(contest)
        .bind(DROPPED)
        .execute(&mut **work.transaction().await?)
        .await?;
    }
    Ok(())
}

async fn save_log(work: &mut Work, writes: &LogWrites) -> Result<()> {
    drop_values(work, writes).await?;
    for revisions in batches(&writes.revisions) {
        let query = work.write(
            "INSERT INTO revisions (revision, operation_id, cause, caller, on_behalf_of, reason, committed_at) ",
        );
        query.push_values(revisions, |mut row, revision| {
            row.push_bind(revision.revision.0)
                .push_bind(optional_id(revision.operation.map(|id| id.0)))
                .push_bind(revision.cause.number())
                .push_bind(revision.actor.caller.as_str())
                .push_bind(revision.actor.on_behalf_of.as_str())
                .push_bind(revision.reason.as_str())
                .push_bind(writes.committed_at);
        });
        work.written().await?;
    }
    let kinds = writes.changes.iter().map(|change| {
        let (namespace, kind) = (change.key.namespace.as_str(), change.key.kind.number());
        (namespace, kind, change.revision.0)
    });
    let kinds: Vec<_> = kinds.collect::<BTreeSet<_>>().into_iter().collect();
    for kinds in batches(&kinds) {
        let query = work.write("INSERT INTO revision_kinds (namespace, kind, revision) ");
        query.push_values(kinds, |mut row, (namespace, kind, revision)| {
            row.push_bind(*namespace).push_bind(*kind).push_bind(*revision);
        });
        work.written().await?;
    }
    for changes in batches(&writes.changes) {
        let mut rows = Vec::with_capacity(changes.len());
        for change in changes {
            let contest = change.key.contest_id();
            let candidate = change.candidate.map(|id| work.keys.candidate(contest, id));
            rows.push((work.keys.contest(contest)?, candidate.transpose()?, change));
        }
        let query = work.write(
            "INSERT INTO changes (revision, ordinal, contest, value, value_checksum, before_value, candidate, \
             feedback_id, feedback_received_at, traceparent, policy_version) ",
        );
        query.push_values(rows, |mut row, (contest, candidate, change)| {
            let trigger = change.trigger.as_ref();
            let (value, before) = kept(writes, change);
            row.push_bind(change.revision.0)
                .push_bind(change.ordinal)
                .push_bind(contest)
                .push_bind(value.map(<[u8]>::to_vec))
                .push_bind(change.value.as_ref().map_or(0, |bytes| checksum(bytes)))
                .push_bind(before.map(<[u8]>::to_vec))
                .push_bind(candidate)
                .push_bind(optional_id(trigger.map(|trigger| trigger.feedback.0)))
                .push_bind(trigger.map_or(0, |trigger| trigger.received_at.as_microsecond()))
                .push_bind(trigger.map_or("", |trigger| trigger.traceparent.as_str()))
                .push_bind(change.policy_version);
        });
        work.written().await?;
    }
    Ok(())
}

#[async_trait]
impl LogStore for Backend {
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head> {
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

    async fn find_head(&self) -> Result<Option<Head>> {
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

    async fn head(&self) -> Result<Head> {
        let row = sqlx::query(HEAD).fetch_one(&mut *self.reader().await?).await?;
        parse_head(&row)
    }

    async fn load(&self, sink: Sink<'_>) -> Result<Loaded> {
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

    async fn revisions_after(&self, revision: i64, size: PageSize) -> Result<LogPage> {
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

    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64> {
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

    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch> {
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

    async fn revisions_of(
        &self,
        operation: OperationId,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Revision>> {
        let found: Vec<i64> = sqlx::query_scalar(
            "SELECT revision FROM revisions WHERE operation_id IS NOT NULL AND operation_id = $1 AND revision > $2
             ORDER BY revision LIMIT $3",
        )
        .bind(bytes(operation.0))
        .bind(after.0)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader().await?)
        .await?;
        Ok(found.into_iter().map(Revision).collect())
    }

    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)> {
        revisions_sql::list(self, filter, before, limit).await
    }
}

impl Backend {
    /// The newest revision above the horizon committed at or before `cutoff`, else the horizon: a binary search,
    /// because commit times grow with revisions. If a clock was set back, the result is off by as much.
    async fn newest_until(&self, head: Head, cutoff: i64) -> Result<i64> {
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

async fn load_resources(transaction: &mut Transaction, sink: Sink<'_>) -> Result<()> {
    let mut after = i64::MIN;
    let mut parsing = Parsing::default();
    loop {
        let rows = sqlx::query(RESOURCES)
            .bind(after)
            .bind(LOAD_PAGE)
            .fetch_all(&mut **transaction)
            .await?;
        let more = is_full(&rows);
        if let Some(last) = rows.last() {
            after = last.try_get("contest")?;
        }
        parsing.begin(rows, parse_resource, sink).await?;
        if !more {
            return parsing.end(sink).await;
        }
    }
}

async fn load_tombstones(transaction: &mut Transaction, horizon: i64, sink: Sink<'_>) -> Result<()> {
    // Ordinals start at 0: this skips the horizon's own revision and takes everything after it.
    let mut after = (horizon, i32::MAX);
    let mut parsing = Parsing::default();
    loop {
        let rows = sqlx::query(TOMBSTONES)
            .bind(after.0)
            .bind(after.1)
            .bind(LOAD_PAGE)
            .fetch_all(&mut **transaction)
            .await?;
        let more = is_full(&rows);
        if let Some(last) = rows.last() {
            after = (last.try_get("revision")?, last.try_get("ordinal")?);
        }
        parsing.begin(rows, parse_change, sink).await?;
        if !more {
            return parsing.end(sink).await;
        }
    }
}

/// Whether there may be more rows than these of a page.
fn is_full(rows: &[Row]) -> bool {
    i64::try_from(rows.len()).is_ok_and(|found| found >= LOAD_PAGE)
}

/// Parses a page while the next one is read.
#[derive(Default)]
struct Parsing {
    page: Option<JoinHandle<Result<Vec<LoggedChange>>>>,
}

impl Parsing {
    /// Begins with a page, after the one before it has gone to `sink`.
    async fn begin(
        &mut self,
        rows: Vec<Row>,
        parse: fn(&Row) -> Result<LoggedChange>,
        sink: &mut (dyn FnMut(Vec<LoggedChange>) + Send),
    ) -> Result<()> {
        self.end(sink).await?;
        let few = rows.len() < FEW;
        let parse = move || rows.iter().map(parse).collect::<Result<_>>();
        if few {
            sink(parse()?);
        } else {
            self.page = Some(tokio::task::spawn_blocking(parse));
        }
        Ok(())
    }

    /// Waits for the last page.
    async fn end(&mut self, sink: &mut (dyn FnMut(Vec<LoggedChange>) + Send)) -> Result<()> {
        if let Some(page) = self.page.take() {
            let parsed = page
                .await
                .map_err(|_| StoreError::Unavailable(sqlx::Error::WorkerCrashed))?;
            sink(parsed?);
        }
        Ok(())
    }
}

/// So few rows are parsed at once.
const FEW: usize = 1_000;

fn parse_head(row: &Row) -> Result<Head> {
    Ok(Head {
        epoch: epoch(row.try_get("epoch")?)?,
        installation: installation(row.try_get("installation_id")?)?,
        revision: row.try_get("head")?,
        horizon: row.try_get("tombstone_horizon")?,
    })
}

/// An epoch as it is stored.
pub(super) fn epoch(bytes: &[u8]) -> Result<Epoch> {
    Uuid::from_slice(bytes)
        .map(Epoch)
        .map_err(|error| CorruptRow::new("head", "epoch", 1, error).into())
}

/// An installation's id as it is stored.
pub(super) fn installation(bytes: &[u8]) -> Result<InstallationId> {
    Uuid::from_slice(bytes)
        .map(InstallationId)
        .map_err(|error| CorruptRow::new("head", "installation_id", 1, error).into())
}

/// A change that a resource comes from, which has a value.
fn parse_resource(row: &Row) -> Result<LoggedChange> {
    let change = parse_change(row)?;
    if change.value.is_none() {
        let why = "it is neither here nor in the log";
        return Err(CorruptRow::new("resources", "value", row.try_get::<i64, _>("contest")?, why).into());
    }
    Ok(change)
}

fn parse_change(row: &Row) -> Result<LoggedChange> {
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
/// The head, within a transaction.
pub(super) async fn read_head(transaction: &mut Transaction) -> Result<Head> {
    parse_head(&sqlx::query(HEAD).fetch_one(&mut **transaction).await?)
}
