//! The store on SQLite: one writer at a time, so that nothing needs locking; many rows per statement.
//!
//! No other process uses the data directory.

use emend_store::Connections;
use emend_store::StoreError;
use std::{collections::HashSet, path::Path};

use emend_base::Entropy;
use emend_store::{
    CorruptRow,
    audit::OpenError,
    retry_conflicts,
    sqlite::{SqlitePools, open_sqlite, open_sqlite_to_read},
};
use sqlx::{Connection as _, QueryBuilder, Sqlite as Db, SqliteConnection as Connection, migrate::Migrator};

use crate::{
    fail_points,
    store::{
        chunks::chunks,
        ports::{Inserted, audit::AuditRead},
        records::outbox::{DeliveryState, Lease, LeaseHolder},
        rows,
        sql::claim::SQLITE as CLAIM,
    },
};
use feedback_sql::Columns;

#[path = "sql/audit.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod audit_sql;
#[path = "sql/contexts.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod context_sql;
#[path = "sql/counts.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod counts_sql;
#[path = "sql/erased.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod erased_sql;
#[path = "sql/erasure.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod erasure_sql;
#[path = "sql/feedback.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod feedback_sql;
#[path = "sql/installation.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod installation_sql;
#[path = "sql/outbox.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod outbox_sql;
#[path = "sql/queries.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod query_sql;
#[path = "sql/ratings.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod ratings_sql;
#[path = "sql/settings.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod settings_sql;
#[path = "sql/stats.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod stats_sql;
#[path = "sql/ports.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "portable SQL is compiled against each database"
)]
mod store_sql;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// The store that the portable SQL implements.
type Backend = SqliteStore;

/// Begins a transaction that reads one consistent state, however long it takes.
const BEGIN_AUDIT: &str = "BEGIN";

/// Only one transaction writes at a time: there are no rows to lock.
const FOR_UPDATE: &str = "";

/// See [`FOR_UPDATE`].
const FOR_SHARE_OF_P: &str = "";

/// What is recorded and what is erased never meet: see [`FOR_UPDATE`].
const UNLESS_ERASING: &str = "SELECT $1";

/// See [`UNLESS_ERASING`].
const ERASE_ALONE: &str = UNLESS_ERASING;

/// The last accept order given.
const LAST_ACCEPT_ORDER: &str = "SELECT last FROM accept_order WHERE one = 1";

/// Gives the next accept order, with the time.
const NEXT_ACCEPT_ORDER: &str =
    "UPDATE accept_order SET last = max(last, (SELECT now FROM database_clock) - 1) + 1
     RETURNING last, (SELECT now FROM database_clock)";

/// Before a column: no index of it is to be used.
const PASSED_OVER: &str = "+";

/// Asks for a plan, and where its lines stand.
#[cfg(test)]
const EXPLAIN: &str = "EXPLAIN QUERY PLAN ";
#[cfg(test)]
const PLAN: usize = 3;

/// The number of readers. They do not wait for the writer, nor for each other up to this many.
const READERS: u32 = 4;

/// Feedback in one SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    pools: SqlitePools,
    entropy: Entropy,
}

/// One item of a group, with its accept order.
#[derive(Clone, Copy)]
struct Numbered<'a> {
    order: i64,
    columns: &'a Columns<'a>,
}

impl SqliteStore {
    /// Opens the file, creating it if needed, and migrates it. The caller holds the lock on its directory.
    pub(crate) async fn open(path: &Path, entropy: Entropy) -> Result<Self, StoreError> {
        let pools = open_sqlite(path, READERS, &MIGRATIONS).await?;
        Ok(Self { pools, entropy })
    }

    /// Nobody else has the file: all leases of others were released when it was opened.
    #[expect(clippy::unused_async, reason = "PostgreSQL has something to do")]
    async fn release_of_others(&self, _: LeaseHolder) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Releases all leases; returns how many. They belong to processes that have ended, because this one has the file
    /// to itself; so a start after a kill need not wait for them to expire.
    pub(crate) async fn release_leases(&self) -> Result<u64, StoreError> {
        let released = sqlx::query(
            "UPDATE outbox SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
             WHERE state = 1 AND lease_token IS NOT NULL",
        )
        .execute(&mut *self.writer().await?)
        .await?;
        Ok(released.rows_affected())
    }

    /// Begins an audit's read of the file.
    pub(super) async fn read(path: &Path) -> Result<Box<dyn AuditRead>, OpenError> {
        let pool = open_sqlite_to_read(path, &MIGRATIONS).await?;
        Ok(Box::new(audit_sql::Reading::begin(pool).await?))
    }

    async fn insert_once(
        &self,
        columns: &[Columns<'_>],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        let mut transaction = self.pools.begin_write().await?;
        let mut too_often = vec![None; columns.len()];
        if columns.iter().any(|columns| columns.search_rating.is_some()) {
            let items: Vec<_> = columns.iter().collect();
            too_often = ratings_sql::too_often(&mut transaction, &items).await?;
        }
        let count = i64::try_from(columns.len()).unwrap_or(i64::MAX);
        // The first is at least now, and after all orders given before, even if the clock went back.
        let (last, now): (i64, i64) = sqlx::query_as(
            "UPDATE accept_order SET last = max(last, (SELECT now FROM database_clock) - 1) + $1
             RETURNING last, (SELECT now FROM database_clock)",
        )
        .bind(count)
        .fetch_one(&mut *transaction)
        .await?;
        let numbered: Vec<_> = (last - count + 1..)
            .zip(columns)
            .map(|(order, columns)| Numbered { order, columns })
            .collect();
        let admitted = numbered.iter().zip(&too_often);
        let admitted: Vec<_> = admitted
            .filter(|(_, too_often)| too_often.is_none())
            .map(|(item, _)| item)
            .collect();
        let taken = insert_request_ids(&mut transaction, &admitted, now).await?;
        let mut results = Vec::with_capacity(columns.len());
        let mut stored = Vec::with_capacity(columns.len());
        for (item, too_often) in numbered.iter().zip(too_often) {
            if let Some(wait) = too_often {
                results.push(Ok(Inserted::TooOften(wait)));
                continue;
            }
            let request_id = item.columns.request_id;
            if taken.contains(&item.order) {
                results.push(
                    match feedback_sql::replay_of(&mut transaction, item.columns).await {
                        Ok(replayed) => replayed.ok_or_else(|| {
                            CorruptRow::new("request_ids", "request_id", request_id, "in use and not there")
                                .into()
                        }),
                        // The row is corrupt, which concerns no other item.
                        Err(error @ StoreError::Corrupt(_)) => Err(error),
                        Err(error) => return Err(error),
                    },
                );
            } else {
                let accepted = rows::accepted("feedback", item.order, now)?;
                results.push(Ok(Inserted::Stored(accepted)));
                stored.push(item);
            }
        }
        if stored.is_empty() {
            transaction.rollback().await?;
            return Ok(results);
        }
        // Apart, so that there are few distinct statements.
        let (delivered, not_delivered): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|item| item.columns.kind != 0);
        for chunk in chunks(&delivered) {
            insert_chunk(&mut transaction, chunk, now, lease).await?;
        }
        for chunk in chunks(&not_delivered) {
            insert_chunk(&mut transaction, chunk, now, lease).await?;
        }
        let placed: Vec<_> = not_delivered
            .iter()
            .map(|item| (item.columns, item.order, now))
            .collect();
        ratings_sql::insert(&mut transaction, &placed).await?;
        fail_points::GROUP_WRITTEN.pass();
        transaction.commit().await?;
        Ok(results)
    }

    /// A connection that only reads.
    async fn reader(&self) -> Result<sqlx::pool::PoolConnection<Db>, StoreError> {
        Ok(self.pools.read.acquire().await?)
    }

    /// A connection for a list; `wide` if the list may have to scan much.
    async fn lister(&self, wide: bool) -> Result<sqlx::pool::PoolConnection<Db>, StoreError> {
        if wide {
            self.pools.browse().await
        } else {
            self.reader().await
        }
    }

    /// The connection that writes.
    async fn writer(&self) -> Result<sqlx::pool::PoolConnection<Db>, StoreError> {
        Ok(self.pools.write.acquire().await?)
    }

    /// Begins a transaction that may write; all others wait.
    async fn begin_write(&self) -> Result<sqlx::Transaction<'static, Db>, StoreError> {
        self.pools.begin_write().await
    }

    async fn insert_group(
        &self,
        columns: &[Columns<'_>],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        retry_conflicts(&self.entropy, || self.insert_once(columns, lease)).await
    }

    /// Whether the file can be read.
    async fn answers(&self) -> Result<(), StoreError> {
        Ok(self.reader().await?.ping().await?)
    }

    /// Takes what was deleted out of the file's write-ahead log. Whether it is done.
    async fn clean(&self) -> Result<bool, StoreError> {
        self.pools.truncate_log().await
    }

    fn pool_connections(&self) -> Connections {
        self.pools.connections()
    }

    async fn close_pools(&self) {
        self.pools.close().await;
    }

    /// Runs a statement for a test.
    #[cfg(test)]
    pub(crate) async fn execute(&self, sql: sqlx::AssertSqlSafe<String>) -> Result<u64, sqlx::Error> {
        sqlx::raw_sql(sql)
            .execute(&self.pools.write)
            .await
            .map(|done| done.rows_affected())
    }
}

/// Takes the request ids that are free; returns the accept orders of the items whose ids were already taken.
async fn insert_request_ids(
    connection: &mut Connection,
    numbered: &[&Numbered<'_>],
    now: i64,
) -> Result<HashSet<i64>, StoreError> {
    let asked: Vec<&Numbered<'_>> = numbered
        .iter()
        .copied()
        .filter(|item| !item.columns.request_id.is_empty())
        .collect();
    let mut taken = HashSet::new();
    for chunk in chunks(&asked) {
        let mut query = QueryBuilder::<Db>::new(
            "INSERT INTO request_ids (accept_order, namespace, caller, request_id, request_hash, feedback_id, created_at) ",
        );
        query.push_values(chunk, |mut row, Numbered { order, columns }| {
            row.push_bind(*order)
                .push_bind(columns.new.submission.namespace.as_str())
                .push_bind(columns.new.caller.as_str())
                .push_bind(columns.request_id)
                .push_bind(columns.new.hash.0.as_slice())
                .push_bind(columns.new.id.0.as_bytes().as_slice())
                .push_bind(now);
        });
        query.push(" ON CONFLICT (namespace, caller, request_id) DO NOTHING");
        let inserted = query.build().execute(&mut *connection).await?.rows_affected();
        // Returning every row costs more than storing it, and one is hardly ever missing.
        if usize::try_from(inserted).is_ok_and(|inserted| inserted < chunk.len()) {
            let free: HashSet<i64> = sqlx::query_scalar(
                "SELECT accept_order FROM request_ids WHERE accept_order BETWEEN $1 AND $2",
            )
            .bind(chunk.first().map_or(0, |item| item.order))
            .bind(chunk.last().map_or(0, |item| item.order))
            .fetch_all(&mut *connection)
            .await?
            .into_iter()
            .collect();
            let orders = chunk.iter().map(|item| item.order);
            taken.extend(orders.filter(|order| !free.contains(order)));
        }
    }
    Ok(taken)
}

/// Inserts all rows of some feedback in one query: separate statements would each be a round trip to the connection's
/// thread. All of it is delivered, or none.
async fn insert_chunk(
    connection: &mut Connection,
    chunk: &[&Numbered<'_>],
    now: i64,
    lease: Option<Lease>,
) -> Result<(), StoreError> {
    let pending = DeliveryState::Pending.number();
    let due_at = now.saturating_add(lease.map_or(0, |lease| rows::micros(lease.duration)));
    let mut query = QueryBuilder::<Db>::new(
        "INSERT INTO feedback (accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction,
                               target, rating, traceparent, received_at) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        row.push_bind(order)
            .push_bind(columns.new.id.0.as_bytes().as_slice())
            .push_bind(columns.new.submission.namespace.as_str())
            .push_bind(columns.new.caller.as_str())
            .push_bind(columns.request_id)
            .push_bind(columns.kind)
            .push_bind(columns.scope)
            .push_bind(columns.correction.as_slice())
            .push_bind(columns.target)
            .push_bind(columns.rating)
            .push_bind(columns.new.traceparent.as_str())
            .push_bind(now);
    });
    query.push(
        "; INSERT INTO feedback_personal (accept_order, namespace, reporter_id, session_id, client, client_key, query_id,
                                          reason, context, rated, retract_reason) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        let submission = &columns.new.submission;
        row.push_bind(order)
            .push_bind(submission.namespace.as_str())
            .push_bind(columns.reporter_id)
            .push_bind(columns.session_id)
            .push_bind(submission.reporter.client.as_str())
            .push_bind(submission.reporter.client_key.as_str())
            .push_bind(submission.query_id.as_str())
            .push_bind(submission.reason.as_str())
            .push_bind(columns.context.as_str())
            .push_bind(columns.rated.as_slice());
        row.push("''");
    });
    let is_delivered = chunk.iter().all(|item| item.columns.kind != 0);
    if !is_delivered {
        query.push(
            "; INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                           retract_role)
             SELECT accept_order, namespace, ",
        );
        query
            .push_bind(DeliveryState::at_first(false).number())
            .push(", 0, 0, '', 0");
        query.push(" FROM feedback WHERE kind = 0");
        push_between(&mut query, chunk);
        query.build().execute(connection).await?;
        return Ok(());
    }
    query.push(
        "; INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, occurred_at, payload, state, due_at,
                               lease_token, event_number, attempts, code, error) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        let new = columns.new;
        row.push_bind(new.event.id.0.as_bytes().as_slice())
            .push_bind(order)
            .push_bind(new.id.0.as_bytes().as_slice())
            .push_bind(new.submission.namespace.as_str())
            .push_bind(now)
            .push_bind(&*new.event.payload)
            .push_bind(pending)
            .push_bind(due_at)
            .push_bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()));
        row.push("1, 0, 0, ''");
    });
    query
        .push(
            "; INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                           retract_role)
             SELECT accept_order, namespace, ",
        )
        .push_bind(pending)
        .push(", 1, 0, '', 0 FROM feedback WHERE kind <> 0");
    push_between(&mut query, chunk);
    query.build().execute(connection).await?;
    Ok(())
}

/// The condition that rows belong to a chunk. No other feedback's orders lie between them, but for feedback of which it is
/// different whether it is delivered.
fn push_between(query: &mut QueryBuilder<Db>, chunk: &[&Numbered<'_>]) {
    query
        .push(" AND accept_order BETWEEN ")
        .push_bind(chunk.first().map_or(0, |item| item.order))
        .push(" AND ")
        .push_bind(chunk.last().map_or(0, |item| item.order));
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use emend_core::EventId;
    use uuid::Uuid;

    use super::*;
    use crate::store::records::outbox::EncodedOutcome;

    /// SQLite plans a statement by how many rows it names, and with 256 it may pass over a whole table instead.
    #[tokio::test]
    async fn deliveries_are_settled_without_passing_over_other_feedback() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("feedback.db");
        let store = SqliteStore::open(&path, Entropy::system()).await.unwrap();
        let outcome = EncodedOutcome(Bytes::new());
        for count in [1, 64, 256] {
            let events = || (0..count).map(|id| EventId(Uuid::from_u128(id)));
            let answered: Vec<_> = (0..count)
                .map(|_| outbox_sql::Answered {
                    accept_order: 1,
                    event_number: 1,
                    outcome: &outcome,
                })
                .collect();
            for (statement, search) in [
                (
                    outbox_sql::places(events()),
                    "SEARCH outbox USING PRIMARY KEY (event_id=?)",
                ),
                (
                    outbox_sql::leased(events()),
                    "SEARCH outbox USING PRIMARY KEY (event_id=?)",
                ),
                (
                    outbox_sql::note_outcomes(&answered),
                    "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
                ),
                (
                    outbox_sql::made_pending(&vec![(1, 1); answered.len()]),
                    "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
                ),
            ] {
                let steps = store.explain(statement).await;
                assert!(steps.contains(search), "{count} rows: {steps}");
                let passes_over = ["SCAN s", "SCAN outbox"].iter().any(|scan| steps.contains(scan));
                assert!(!passes_over, "{count} rows: {steps}");
            }
        }
    }
}
