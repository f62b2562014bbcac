//! The log in SQL.
//!
//! Consistent reads are one statement, or pages within one read transaction: no statement runs long, and no more than
//! one page is in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use emend_core::{Epoch, InstallationId, OperationId, ResourceKey, Revision};
use emend_store::sql::{Statement, Transaction, Undecoded};
use emend_store::{CorruptRow, StoreError};
use emend_stream::log::{Head, Loaded, LoggedChange, LoggedRevision};
use futures::TryStreamExt as _;
use jiff::SignedDuration;
use tokio::task::JoinHandle;

use crate::{
    SqlStore,
    batches::batches,
    database::{bytes, notify},
    integers::{checksum, micros},
    log::{
        ChangeWrite, LockedHead, LogPage, LogRepository, LogStore, LogWrites, PageSize, RevisionFilter,
        RevisionRecord, Sink, WrittenChange, lists_sql as revisions_sql,
        rows::{HeadRow, LogRow, LoggedChangeRow, WrittenChangeRow},
    },
    rows::optional_id,
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

const HEAD: &str =
    "SELECT installation_id, epoch, revision AS head, tombstone_horizon FROM head WHERE id = 1";

/// What is not stored beside the log is read from it; of what a person put or imported no feedback is noted, so that there is
/// nothing else to look up. The plus keeps SQLite to the index by contest: by its primary key it would read a thousand changes of
/// a revision to find one.
pub(crate) const RESOURCES: &str = "
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
    SELECT h.revision, h.ordinal, h.contest, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.value,
           h.value_checksum, v.committed_at, v.cause, h.feedback_received_at, h.traceparent
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
        let mut query = Statement::new(
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
        work.transaction()
            .await?
            .execute(
                Statement::new(
                    "UPDATE changes SET value = $2 WHERE contest = $1 AND value IS NOT NULL
             AND revision = (SELECT max(newest.revision) FROM changes AS newest WHERE newest.contest = $1)",
                )
                .bind(contest)
                .bind(DROPPED),
            )
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
impl LogStore for SqlStore {
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head> {
        let mut transaction = self.begin_write().await?;
        transaction
            .execute(
                Statement::new(
                    "INSERT INTO head (id, installation_id, epoch, revision, tombstone_horizon, created_at)
             VALUES (1, $1, $2, 0, 0, (SELECT now FROM database_clock)) ON CONFLICT (id) DO NOTHING",
                )
                .bind(bytes(installation.0))
                .bind(bytes(epoch.0)),
            )
            .await?;
        let head = read_head(&mut transaction).await?;
        transaction.commit().await?;
        Ok(head)
    }

    async fn find_head(&self) -> Result<Option<Head>> {
        let mut reader = self.reader().await?;
        if let Some(row) = reader.optional::<HeadRow>(Statement::new(HEAD)).await? {
            return row.parse().map(Some);
        }
        let logged: Option<i64> = reader
            .optional_value(Statement::new("SELECT revision FROM revisions LIMIT 1"))
            .await?;
        match logged {
            None => Ok(None),
            Some(_) => Err(CorruptRow::new("head", "id", 1, "the log has revisions and no head").into()),
        }
    }

    async fn head(&self) -> Result<Head> {
        let row: HeadRow = self.reader().await?.row(Statement::new(HEAD)).await?;
        row.parse()
    }

    async fn load(&self, sink: Sink<'_>) -> Result<Loaded> {
        let mut transaction = self.begin_read().await?;
        let head = read_head(&mut transaction).await?;
        let committed_at = transaction
            .optional_value(
                Statement::new("SELECT committed_at FROM revisions WHERE revision = $1").bind(head.revision),
            )
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
        let mut rows = reader.stream::<LogRow>(
            Statement::new(REVISIONS_AFTER)
                .bind(revision)
                .bind(size.revisions),
        );
        let mut page: Option<LogPage> = None;
        let mut bytes = 0;
        while let Some(row) = rows.try_next().await? {
            let page = match &mut page {
                Some(page) => page,
                None => page.insert(LogPage {
                    head: row.head.parse()?,
                    anchor: None,
                    revisions: Vec::new(),
                    is_full: false,
                }),
            };
            let Some((found, committed_at)) = row.change.place()? else {
                continue;
            };
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
            if row.change.contest.is_some()
                && let Some(last) = page.revisions.last_mut()
            {
                let change = row.change.parse()?;
                bytes += change.bytes();
                last.changes.push(change);
            }
        }
        page.ok_or_else(|| CorruptRow::new("head", "id", 1, "the row is missing").into())
    }

    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64> {
        let head = self.head().await?;
        let now: i64 = self
            .reader()
            .await?
            .value(Statement::new("SELECT now FROM database_clock"))
            .await?;
        let by_age = self
            .newest_until(head, now.saturating_sub(micros(max_age)))
            .await?;
        let by_count: Option<i64> = self
            .reader()
            .await?
            .optional_value(
                Statement::new(
                    "SELECT revision FROM changes WHERE value IS NULL AND revision > $1
             ORDER BY revision DESC LIMIT 1 OFFSET $2",
                )
                .bind(head.horizon)
                .bind(max_tombstones),
            )
            .await?;
        let wanted = by_age.max(by_count.unwrap_or(0));
        if wanted <= head.horizon {
            return Ok(head.horizon);
        }
        let mut transaction = self.begin_write().await?;
        // The update takes the head's lock, which every writer of revisions holds until commit.
        transaction.execute(Statement::new("UPDATE head SET tombstone_horizon = $1 WHERE id = 1 AND tombstone_horizon < $1 AND revision >= $1")
            .bind(wanted))
            .await?;
        let head = read_head(&mut transaction).await?;
        transaction.commit().await?;
        Ok(head.horizon)
    }

    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch> {
        let mut transaction = self.begin_write().await?;
        transaction
            .execute(
                Statement::new("UPDATE head SET epoch = $2 WHERE id = 1 AND epoch = $1")
                    .bind(bytes(old.0))
                    .bind(bytes(new.0)),
            )
            .await?;
        let head = read_head(&mut transaction).await?;
        transaction.commit().await?;
        Ok(head.epoch)
    }

    async fn revisions_of(
        &self,
        operation: OperationId,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Revision>> {
        let found: Vec<i64> = self.reader().await?.values(Statement::new("SELECT revision FROM revisions WHERE operation_id IS NOT NULL AND operation_id = $1 AND revision > $2
             ORDER BY revision LIMIT $3")
        .bind(bytes(operation.0))
        .bind(after.0)
        .bind(i64::from(limit)))
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

impl SqlStore {
    /// The newest revision above the horizon committed at or before `cutoff`, else the horizon: a binary search,
    /// because commit times grow with revisions. If a clock was set back, the result is off by as much.
    async fn newest_until(&self, head: Head, cutoff: i64) -> Result<i64> {
        let (mut known, mut beyond) = (head.horizon, head.revision + 1);
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            let committed_at: Option<i64> = self
                .reader()
                .await?
                .optional_value(
                    Statement::new("SELECT committed_at FROM revisions WHERE revision = $1").bind(middle),
                )
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
        let page = Statement::new(RESOURCES).bind(after).bind(LOAD_PAGE);
        let rows = transaction.undecoded(page).await?;
        let more = is_full(&rows);
        if let Some((contest,)) = rows.decode_last()? {
            after = contest;
        }
        parsing.begin(rows, LoggedChangeRow::parse_resource, sink).await?;
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
        let (revision, ordinal) = after;
        let page = Statement::new(TOMBSTONES)
            .bind(revision)
            .bind(ordinal)
            .bind(LOAD_PAGE);
        let rows = transaction.undecoded(page).await?;
        let more = is_full(&rows);
        if let Some(last) = rows.decode_last()? {
            after = last;
        }
        parsing.begin(rows, LoggedChangeRow::parse, sink).await?;
        if !more {
            return parsing.end(sink).await;
        }
    }
}

/// Whether there may be more rows than these of a page.
fn is_full(rows: &Undecoded) -> bool {
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
        rows: Undecoded,
        parse: fn(LoggedChangeRow) -> Result<LoggedChange>,
        sink: &mut (dyn FnMut(Vec<LoggedChange>) + Send),
    ) -> Result<()> {
        self.end(sink).await?;
        let few = rows.len() < FEW;
        let parse = move || rows.decode()?.into_iter().map(parse).collect::<Result<_>>();
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

/// The head, within a transaction.
pub(crate) async fn read_head(transaction: &mut Transaction) -> Result<Head> {
    let row: HeadRow = transaction.row(Statement::new(HEAD)).await?;
    row.parse()
}
