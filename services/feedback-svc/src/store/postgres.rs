//! The store on PostgreSQL, shared by any number of replicas: a group of feedback is one statement and so one round
//! trip; claims skip rows that another replica has locked.
//!
//! READ COMMITTED throughout; after a deadlock the whole use case is retried.

use emend_store::Connections;
use emend_store::StoreError;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use emend_base::Entropy;
use emend_store::{
    PostgresUrl,
    audit::OpenError,
    postgres::{
        BEGIN_LONG_READ as BEGIN_AUDIT, BoundedConnection, BoundedPool, PostgresConfig, StatementConnection,
        Transaction, open_postgres, open_postgres_to_read,
    },
    retry_conflicts,
};
use sqlx::{Postgres as Db, migrate::Migrator};
use tokio::sync::Mutex;

use crate::store::{
    holders::{RELEASE_OTHERS, Replicas},
    ports::{Inserted, audit::AuditRead},
    records::outbox::{DeliveryState, Lease, LeaseHolder},
    rows,
    sql::claim::POSTGRES as CLAIM,
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

/// What the portable SQL runs on.
type Connection = BoundedConnection;
/// The store that the portable SQL implements.
type Backend = PostgresStore;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// The schema of this service.
pub(crate) const SCHEMA: &str = "emend_feedback";

const BEGIN: &str = "BEGIN";

/// Locks the rows of a select in its order until the transaction ends.
const FOR_UPDATE: &str = " FOR UPDATE";

/// Keeps the personal parts of queries, `p`, from being changed until the transaction ends.
const FOR_SHARE_OF_P: &str = " FOR SHARE OF p";

/// Waits until nobody erases queries of a namespace or prunes what is counted of them, and keeps everybody from it until the
/// transaction ends.
const UNLESS_ERASING: &str =
    "SELECT pg_advisory_xact_lock_shared(hashtextextended('erasing queries of ' || $1, 0))";

/// Waits until nobody records queries of a namespace, and keeps everybody from it until the transaction ends.
const ERASE_ALONE: &str = "SELECT pg_advisory_xact_lock(hashtextextended('erasing queries of ' || $1, 0))";

/// Before a column: no index of it is to be used. The planner needs no word for that.
const PASSED_OVER: &str = "";

/// The last accept order given.
const LAST_ACCEPT_ORDER: &str = "SELECT last_value FROM accept_order";

/// Gives the next accept order, with the time.
const NEXT_ACCEPT_ORDER: &str = "SELECT draw_accept_orders(1), (SELECT now FROM database_clock)";

/// Asks for a plan, and where its lines stand.
#[cfg(test)]
const EXPLAIN: &str = "EXPLAIN ";
#[cfg(test)]
const PLAN: usize = 0;

/// Locks raters until the transaction ends, in the order given, so that no other transaction counts or stores a rating of
/// theirs meanwhile.
const LOCK_RATERS: &str = "SELECT pg_advisory_xact_lock(rater) FROM unnest($1::BIGINT[]) AS rater";

/// Inserts a whole group. Items get accept orders in the order of the group; those whose request ids are already taken
/// leave gaps. Request ids are taken in key order, so that two replicas never deadlock.
const INSERT: &str = "
WITH drawn AS MATERIALIZED (
    SELECT draw_accept_orders(cardinality($1)) AS first_order, now FROM database_clock
), item AS MATERIALIZED (
    SELECT drawn.first_order + u.place - 1 AS accept_order, drawn.now, u.*
    FROM drawn,
         unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BYTEA[], $6::BIGINT[], $7::BIGINT[], $8::BYTEA[],
                $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::TEXT[], $16::TEXT[],
                $17::BYTEA[], $18::BYTEA[], $22::BYTEA[], $23::TEXT[], $24::TEXT[]) WITH ORDINALITY
         AS u (feedback_id, namespace, caller, request_id, request_hash, kind, scope, correction,
               traceparent, reporter_id, session_id, client, client_key, query_id, reason, context,
               event_id, payload, rated, target, rating, place)
), fresh AS (
    INSERT INTO request_ids (accept_order, namespace, caller, request_id, request_hash, feedback_id, created_at)
    SELECT accept_order, namespace, caller, request_id, request_hash, feedback_id, now
    FROM item WHERE request_id <> '' ORDER BY namespace, caller, request_id, place
    ON CONFLICT (namespace, caller, request_id) DO NOTHING
    RETURNING accept_order
), stored AS MATERIALIZED (
    SELECT * FROM item WHERE request_id = '' OR accept_order IN (SELECT accept_order FROM fresh)
), ledger AS (
    INSERT INTO feedback (accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction,
                          target, rating, traceparent, received_at)
    SELECT accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction, target, rating,
           traceparent, now
    FROM stored
), personal AS (
    INSERT INTO feedback_personal (accept_order, namespace, reporter_id, session_id, client, client_key, query_id,
                                   reason, context, retract_reason, rated)
    SELECT accept_order, namespace, reporter_id, session_id, client, client_key, query_id, reason, context, '', rated
    FROM stored
), status AS (
    INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                 retract_role)
    SELECT accept_order, namespace, CASE WHEN kind = 0 THEN 2 ELSE $19 END, CASE WHEN kind = 0 THEN 0 ELSE 1 END,
           0, '', 0
    FROM stored
), events AS (
    INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, event_number, occurred_at, payload, state,
                        attempts, due_at, lease_token, code, error)
    SELECT event_id, accept_order, feedback_id, namespace, 1, now, payload, $19, 0, now + $20, $21, 0, ''
    FROM stored WHERE kind <> 0
)
SELECT place, accept_order, now FROM stored";

/// What became of an item of a group.
#[derive(Debug, Clone, Copy)]
enum Placed {
    /// It is stored, with this accept order at this time.
    Stored(i64, i64),
    /// Its request id was taken before.
    RequestIdTaken,
    /// It is a rating by somebody who has rated too often.
    TooOften(Duration),
}

/// Locks those who rate.
async fn lock_raters(connection: &mut Connection, columns: &[&Columns<'_>]) -> Result<(), StoreError> {
    let raters: BTreeSet<i64> = columns
        .iter()
        .filter_map(|columns| Some(columns.rater()?.0.as_u64_pair().0.cast_signed()))
        .collect();
    sqlx::query(LOCK_RATERS)
        .bind(raters.into_iter().collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

/// Inserts items in one statement.
async fn insert(
    connection: &mut Connection,
    columns: &[&Columns<'_>],
    lease: Option<Lease>,
) -> Result<Vec<Placed>, StoreError> {
    fn all<'a, T>(columns: &[&'a Columns<'a>], column: impl Fn(&'a Columns<'a>) -> T) -> Vec<T> {
        columns.iter().map(|columns| column(columns)).collect()
    }
    let stored: Vec<(i64, i64, i64)> = sqlx::query_as(INSERT)
        .bind(all(columns, |c| c.new.id.0.as_bytes().as_slice()))
        .bind(all(columns, |c| c.new.submission.namespace.as_str()))
        .bind(all(columns, |c| c.new.caller.as_str()))
        .bind(all(columns, |c| c.request_id))
        .bind(all(columns, |c| c.new.hash.0.as_slice()))
        .bind(all(columns, |c| c.kind))
        .bind(all(columns, |c| c.scope))
        .bind(all(columns, |c| c.correction.as_slice()))
        .bind(all(columns, |c| c.new.traceparent.as_str()))
        .bind(all(columns, |c| c.reporter_id))
        .bind(all(columns, |c| c.session_id))
        .bind(all(columns, |c| c.new.submission.reporter.client.as_str()))
        .bind(all(columns, |c| c.new.submission.reporter.client_key.as_str()))
        .bind(all(columns, |c| c.new.submission.query_id.as_str()))
        .bind(all(columns, |c| c.new.submission.reason.as_str()))
        .bind(all(columns, |c| c.context.as_str()))
        .bind(all(columns, |c| c.new.event.id.0.as_bytes().as_slice()))
        .bind(all(columns, |c| &*c.new.event.payload))
        .bind(DeliveryState::Pending.number())
        .bind(lease.map_or(0, |lease| rows::micros(lease.duration)))
        .bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()))
        .bind(all(columns, |c| c.rated.as_slice()))
        .bind(all(columns, |c| c.target))
        .bind(all(columns, |c| c.rating))
        .fetch_all(connection)
        .await?;
    let stored: HashMap<i64, (i64, i64)> = stored
        .into_iter()
        .map(|(place, order, at)| (place, (order, at)))
        .collect();
    let placed = (1..).zip(columns).map(|(place, _)| match stored.get(&place) {
        Some(&(order, at)) => Placed::Stored(order, at),
        None => Placed::RequestIdTaken,
    });
    Ok(placed.collect())
}

/// Feedback in one schema of a PostgreSQL database.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pool: BoundedPool,
    url: PostgresUrl,
    /// `None` before the first look.
    replicas: Mutex<Option<Replicas>>,
    entropy: Entropy,
}

impl PostgresStore {
    /// Connects, creates the schema if needed and migrates it.
    pub(crate) async fn open(
        url: &PostgresUrl,
        max_connections: u32,
        entropy: Entropy,
    ) -> Result<Self, StoreError> {
        let config = PostgresConfig {
            url: url.clone(),
            schema: SCHEMA,
            application_name: "emend feedback-svc",
            max_connections,
        };
        let pool = open_postgres(&config, &MIGRATIONS).await?;
        Ok(Self {
            pool,
            url: url.clone(),
            replicas: Mutex::new(None),
            entropy,
        })
    }

    /// Begins an audit's read of the service's schema.
    pub(super) async fn read(url: &PostgresUrl) -> Result<Box<dyn AuditRead>, OpenError> {
        let config = PostgresConfig {
            url: url.clone(),
            schema: SCHEMA,
            application_name: "emend audit of feedback-svc",
            max_connections: 1,
        };
        let pool = open_postgres_to_read(&config, &MIGRATIONS).await?;
        Ok(Box::new(audit_sql::Reading::begin(pool).await?))
    }

    async fn insert_once(
        &self,
        columns: &[&Columns<'_>],
        lease: Option<Lease>,
    ) -> Result<Vec<Placed>, StoreError> {
        if columns.iter().all(|columns| columns.search_rating.is_none()) {
            return insert(&mut *self.pool.acquire().await?, columns, lease).await;
        }
        let mut transaction = self.pool.begin(BEGIN).await?;
        lock_raters(&mut transaction, columns).await?;
        let too_often = ratings_sql::too_often(&mut transaction, columns).await?;
        let admitted: Vec<_> = columns
            .iter()
            .zip(&too_often)
            .filter_map(|(columns, too_often)| too_often.is_none().then_some(*columns))
            .collect();
        let mut placed = insert(&mut transaction, &admitted, lease).await?;
        let stored: Vec<_> = admitted
            .iter()
            .zip(&placed)
            .filter_map(|(columns, placed)| match placed {
                Placed::Stored(order, at) => Some((*columns, *order, *at)),
                Placed::RequestIdTaken | Placed::TooOften(_) => None,
            })
            .collect();
        ratings_sql::insert(&mut transaction, &stored).await?;
        transaction.commit().await?;
        let mut placed = placed.drain(..);
        let all = too_often.into_iter().map(|too_often| match too_often {
            Some(wait) => Placed::TooOften(wait),
            None => placed.next().unwrap_or(Placed::RequestIdTaken),
        });
        Ok(all.collect())
    }

    /// The result of an item whose request id was taken when its group was inserted.
    async fn replay(&self, item: &Columns<'_>, lease: Option<Lease>) -> Result<Inserted, StoreError> {
        loop {
            if let Some(replayed) = feedback_sql::replay_of(&mut *self.pool.acquire().await?, item).await? {
                return Ok(replayed);
            }
            // The id was deleted in between, so it is free again.
            match self.insert_once(&[item], lease).await?[..] {
                [Placed::Stored(order, at)] => {
                    return Ok(Inserted::Stored(rows::accepted("feedback", order, at)?));
                }
                [Placed::TooOften(wait)] => return Ok(Inserted::TooOften(wait)),
                _ => {}
            }
        }
    }

    async fn insert_group(
        &self,
        columns: &[Columns<'_>],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        let all: Vec<_> = columns.iter().collect();
        let placed = retry_conflicts(&self.entropy, || self.insert_once(&all, lease)).await?;
        let mut results = Vec::with_capacity(columns.len());
        for (placed, item) in placed.into_iter().zip(columns) {
            results.push(match placed {
                Placed::Stored(order, at) => rows::accepted("feedback", order, at)
                    .map(Inserted::Stored)
                    .map_err(StoreError::from),
                Placed::TooOften(wait) => Ok(Inserted::TooOften(wait)),
                // The other items are already stored, whatever comes of this.
                Placed::RequestIdTaken => retry_conflicts(&self.entropy, || self.replay(item, lease)).await,
            });
        }
        Ok(results)
    }

    /// Releases the leases of replicas that are gone.
    async fn release_of_others(&self, holder: LeaseHolder) -> Result<u64, StoreError> {
        let mut replicas = self.replicas.lock().await;
        let replicas = replicas.get_or_insert_with(|| Replicas::new(self.url.clone(), holder));
        let Some(living) = replicas.look().await? else {
            return Ok(0);
        };
        let released = self.release_unless_of(living).await;
        if released.is_err() {
            replicas.start_over();
        }
        released
    }

    async fn release_unless_of(&self, living: BTreeSet<LeaseHolder>) -> Result<u64, StoreError> {
        let living: Vec<_> = living.into_iter().map(LeaseHolder::to_bytes).collect();
        let living: Vec<&[u8]> = living.iter().map(<[u8; 4]>::as_slice).collect();
        let released = sqlx::query(RELEASE_OTHERS)
            .bind(living)
            .execute(&mut *self.pool.acquire().await?)
            .await?;
        Ok(released.rows_affected())
    }

    /// A connection.
    async fn reader(&self) -> Result<StatementConnection, StoreError> {
        self.pool.acquire().await
    }

    /// Any connection may write.
    async fn writer(&self) -> Result<StatementConnection, StoreError> {
        self.pool.acquire().await
    }

    /// Begins a transaction that may write.
    async fn begin_write(&self) -> Result<Transaction, StoreError> {
        self.pool.begin(BEGIN).await
    }

    /// Whether the server answers.
    async fn answers(&self) -> Result<(), StoreError> {
        Ok(self.pool.acquire().await?.ping().await?)
    }

    /// Nothing that a client of PostgreSQL can do: its own vacuum frees what was deleted, and how long its log is kept is
    /// the operators' choice (docs/operations.md).
    #[expect(clippy::unused_async, reason = "SQLite has something to do")]
    async fn clean(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn pool_connections(&self) -> Connections {
        self.pool.connections()
    }

    async fn close_pools(&self) {
        self.replicas.lock().await.take();
        self.pool.close().await;
    }

    /// A connection for a list; `wide` if the list may have to scan much.
    async fn lister(&self, wide: bool) -> Result<StatementConnection, StoreError> {
        if wide {
            self.pool.browse().await
        } else {
            self.pool.acquire().await
        }
    }

    /// Runs a statement for a test.
    #[cfg(test)]
    pub(crate) async fn execute(&self, sql: sqlx::AssertSqlSafe<String>) -> Result<u64, sqlx::Error> {
        sqlx::raw_sql(sql)
            .execute(&mut *self.pool.acquire().await.unwrap())
            .await
            .map(|done| done.rows_affected())
    }
}
