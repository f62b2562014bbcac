//! What changes in the review queue, in SQL.
//!
//! On PostgreSQL transactions commit in another order than that in which they take numbers. So changes are ordered by their
//! transaction first, and are read only once no older transaction is running: what is read has nothing before it that could still
//! be committed.

use emend_core::{CandidateId, ContestId, Revision, Status};
use emend_store::{CorruptRow, StoreError, sql::Statement};
use sqlx_macros::FromRow;

use super::{CHANGES_KEPT, Lease, QueueChange, QueuePosition, ReadChange, sql::close};
use crate::{
    SqlStore,
    batches::batches,
    codes,
    contests::TransitionWrite,
    database::{bytes, notify, push_candidates},
    integers::micros,
    rows::{At, KeyRow, actor},
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The oldest transaction that is running; all before it have ended.
const OLDEST_RUNNING: &str = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)";

/// What transitions come to for one candidate.
struct Moved<'a> {
    contest: ContestId,
    candidate: CandidateId,
    from: Option<Status>,
    last: &'a TransitionWrite,
    /// Whether it was approved by the first of two, or that ended, and its status stayed.
    is_approval: bool,
}

impl Moved<'_> {
    /// Whether it is told. Very many candidates are new and gather votes, and nobody has to look at one of them.
    fn is_told(&self) -> bool {
        self.is_approval
            || self.from != Some(self.last.to) && (self.from.is_some() || self.last.to != Status::Pending)
    }
}

fn moved(transitions: &[(ContestId, TransitionWrite)]) -> Vec<Moved<'_>> {
    let mut moved: Vec<Moved<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (contest, transition) in transitions {
        let candidate = transition.candidate;
        let place = *places.entry((*contest, candidate)).or_insert_with(|| {
            moved.push(Moved {
                contest: *contest,
                candidate,
                from: transition.from,
                last: transition,
                is_approval: false,
            });
            moved.len() - 1
        });
        moved[place].last = transition;
        moved[place].is_approval |= transition.from == Some(transition.to);
    }
    moved.retain(Moved::is_told);
    moved
}

/// Notes what the transitions of a unit of work change in the queue, and closes what was decided.
pub(crate) async fn note(work: &mut Work, transitions: &[(ContestId, TransitionWrite)]) -> Result<()> {
    let moved = moved(transitions);
    if moved.is_empty() {
        return Ok(());
    }
    for moved in batches(&moved) {
        let mut rows = Vec::with_capacity(moved.len());
        for moved in moved {
            rows.push((work.keys.contest(moved.contest)?, moved));
        }
        let query = work.write(
            "INSERT INTO queue_changes (candidate_id, contest, from_status, to_status, caller, on_behalf_of, revision) ",
        );
        query.push_values(rows, |mut row, (contest, moved)| {
            row.push_bind(bytes(moved.candidate.0))
                .push_bind(contest)
                .push_bind(moved.from.map_or(0, codes::status))
                .push_bind(codes::status(moved.last.to))
                .push_bind(moved.last.actor.caller.as_str())
                .push_bind(moved.last.actor.on_behalf_of.as_str())
                .push_bind(moved.last.revision.0);
        });
        work.written().await?;
    }
    let decided: Vec<CandidateId> = moved.iter().map(|moved| moved.candidate).collect();
    close(work, &decided).await?;
    notify(work.transaction().await?).await
}

/// Notes that somebody opened a candidate, closed it or wrote about it.
pub(super) fn lease_changed(candidate: CandidateId) -> Statement {
    let mut query = Statement::new(
        "INSERT INTO queue_changes (candidate_id, contest, from_status, to_status, caller, on_behalf_of, revision) \
         SELECT k.candidate_id, k.contest, 0, 0, '', '', 0 FROM candidates AS k WHERE ",
    );
    push_candidates(&mut query, [candidate]);
    query
}

#[derive(Debug, FromRow)]
struct ChangeRow {
    xact: i64,
    change: i64,
    candidate_id: Vec<u8>,
    from_status: i32,
    to_status: i32,
    caller: String,
    on_behalf_of: String,
    revision: i64,
    #[sqlx(flatten)]
    key: KeyRow,
    status_now: Option<i32>,
    lease_caller: Option<String>,
    lease_for: Option<String>,
    expires_at: Option<i64>,
}

impl ChangeRow {
    fn position(&self) -> QueuePosition {
        QueuePosition {
            transaction: self.xact,
            change: self.change,
        }
    }

    fn parse(&self) -> Result<Option<QueueChange>> {
        let at = At {
            table: "queue_changes",
            id: &self.change,
        };
        let Some(now) = self.status_now else {
            return Ok(None);
        };
        let status = |column, number| at.known(column, number, codes::parse_status(number));
        let lease = match (&self.lease_caller, &self.lease_for, self.expires_at) {
            (Some(caller), Some(on_behalf_of), Some(expires_at)) => Some(Lease {
                actor: actor(at, "lease_caller", caller, on_behalf_of)?,
                expires_at: at.time("expires_at", expires_at)?,
            }),
            _ => None,
        };
        let is_lease = self.to_status == 0;
        let after = status("to_status", if is_lease { now } else { self.to_status })?;
        let previous = match self.from_status {
            0 if is_lease => Some(after),
            0 => None,
            number => Some(status("from_status", number)?),
        };
        let decided_by = (!is_lease).then(|| actor(at, "caller", &self.caller, &self.on_behalf_of));
        Ok(Some(QueueChange {
            candidate: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            key: self.key.parse("contests")?,
            status: after,
            previous,
            decided_by: decided_by.transpose()?,
            lease,
            revision: Revision(self.revision),
        }))
    }
}

/// The changes after a place, in order.
pub(crate) fn changes_after(after: QueuePosition, limit: u32) -> Statement {
    let mut query = Statement::new(
        "SELECT q.xact, q.change, q.candidate_id, q.from_status, q.to_status, q.caller, q.on_behalf_of, q.revision, \
         c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, k.status AS status_now, \
         l.caller AS lease_caller, l.on_behalf_of AS lease_for, l.expires_at FROM \
         (SELECT * FROM queue_changes WHERE (xact, change) > (",
    );
    query
        .push_bind(after.transaction)
        .push(", ")
        .push_bind(after.change)
        .push(")");
    let mut postgres = Statement::new(" AND xact < ");
    postgres.push(OLDEST_RUNNING);
    query.push_either(Statement::new(""), postgres);
    query.push(" ORDER BY xact, change LIMIT ").push_limit(limit);
    query.push(
        ") AS q JOIN contests AS c ON c.contest = q.contest \
         LEFT JOIN candidates AS k ON k.contest = q.contest AND k.candidate_id = q.candidate_id \
         LEFT JOIN review_leases AS l ON l.candidate_id = q.candidate_id \
         AND l.expires_at > (SELECT now FROM database_clock) ORDER BY q.xact, q.change",
    );
    query
}

pub(super) async fn position(store: &SqlStore) -> Result<QueuePosition> {
    let mut query = Statement::new("");
    let mut postgres = Statement::new("SELECT ");
    postgres
        .push(OLDEST_RUNNING)
        .push(" AS xact, CAST(0 AS BIGINT) AS change");
    query.push_either(
        Statement::new("SELECT 0 AS xact, coalesce(max(change), 0) AS change FROM queue_changes"),
        postgres,
    );
    let (transaction, change) = store.reader().await?.row(query).await?;
    Ok(QueuePosition { transaction, change })
}

pub(super) async fn changes(store: &SqlStore, after: QueuePosition, limit: u32) -> Result<Vec<ReadChange>> {
    let rows: Vec<ChangeRow> = store.rows(changes_after(after, limit)).await?;
    rows.iter()
        .map(|row| {
            let read: std::result::Result<_, CorruptRow> = match row.parse() {
                Ok(change) => Ok(change),
                Err(StoreError::Corrupt(corrupt)) => Err(corrupt),
                Err(error) => return Err(error),
            };
            Ok((row.position(), read))
        })
        .collect()
}

pub(super) async fn forget(store: &SqlStore, before: QueuePosition) -> Result<u64> {
    let mut transaction = store.begin_write().await?;
    let mut query =
        Statement::new("DELETE FROM queue_changes WHERE made_at < (SELECT now FROM database_clock) - ");
    query.push_bind(micros(CHANGES_KEPT));
    query
        .push(" AND (xact, change) <= (")
        .push_bind(before.transaction);
    query.push(", ").push_bind(before.change).push(")");
    let forgotten = transaction.execute(query).await?;
    transaction.commit().await?;
    Ok(forgotten)
}
