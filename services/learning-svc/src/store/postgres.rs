//! PostgreSQL, for any number of replicas on one database.
//!
//! The portable SQL is compiled here against [`Db`]; this file holds what differs.

use emend_core::{CandidateId, ContestId, FeedbackId};
use emend_store::{
    Connections, PostgresUrl, StoreError,
    audit::OpenError,
    postgres::{
        BEGIN_LONG_READ as BEGIN_AUDIT, BoundedPool, PostgresConfig, StatementConnection, open_postgres,
        open_postgres_to_read,
    },
};
use sqlx::{QueryBuilder, migrate::Migrator};

use self::work_sql::push_list;
use crate::{audit::store::AuditRead, store::Keyed};

#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../audit/store/evidence_sql.rs"]
mod audit_evidence_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../audit/store/sql.rs"]
mod audit_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../resources/store/bulk_sql.rs"]
mod bulk_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../contests/store/lists_sql.rs"]
mod candidates_sql;
#[cfg(any(test, feature = "simulation"))]
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "contents_sql.rs"]
mod contents_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../contests/store/sql.rs"]
mod contests_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/deletes_sql.rs"]
mod deletes_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/elements_sql.rs"]
mod elements_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../erasure/store/sql.rs"]
mod erasures_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/events_sql.rs"]
mod events_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/reads_sql.rs"]
mod evidence_reads_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/sql.rs"]
mod evidence_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/exports_sql.rs"]
mod exports_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/identities_sql.rs"]
mod identities_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../outputs/store/improvements_sql.rs"]
mod improvements_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../ingest/store/sql.rs"]
mod inbox_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/levels_sql.rs"]
mod levels_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../log/store/sql.rs"]
mod log_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../nodes/store/sql.rs"]
mod nodes_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../policies/store/sql.rs"]
mod policies_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../profiles/store/sql.rs"]
mod profiles_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../outputs/store/sql.rs"]
mod ratings_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/refresh_sql.rs"]
mod refresh_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/replace_sql.rs"]
mod replace_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../resources/store/sql.rs"]
mod resources_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../log/store/lists_sql.rs"]
mod revisions_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../standings/store/sql.rs"]
mod standings_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/trust_sql.rs"]
mod trust_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/upsert_sql.rs"]
mod upsert_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/verification_sql.rs"]
mod verification_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "work_sql.rs"]
mod work_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/works_sql.rs"]
mod works_sql;

/// The database that the portable SQL is compiled against.
pub(super) type Db = sqlx::Postgres;
/// A transaction of the store.
pub(super) type Transaction = emend_store::postgres::Transaction;
/// The store of that database.
pub(super) type Backend = PostgresStore;

/// Contests are locked by their rows, which are created for that.
const LOCKS_ROWS: bool = true;

/// It takes one prepared statement at a time.
const TAKES_SEVERAL: bool = false;

/// Events applied in one transaction. Each takes an advisory lock, of which PostgreSQL has room for some 6,000 by default, for
/// all replicas and workers.
const GROUP: usize = 128;

/// Locks the rows of a SELECT.
pub(super) const FOR_UPDATE: &str = " FOR UPDATE";
/// Locks the rows of a SELECT against changes.
pub(super) const FOR_SHARE: &str = " FOR SHARE";

/// Appends the condition that a contest has one of these ids, which have an index of their own: what was planned for pairs with
/// the hash of the key while there were few contests would pass over all of them once there are many.
fn push_contests(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = ContestId>) {
    query.push("contest_id IN ");
    push_list(query, ids.into_iter().map(|id| id.0));
}

/// Appends the condition that a candidate `k` has one of these ids: these, too, have an index of their own.
fn push_candidates(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = CandidateId>) {
    query.push("k.candidate_id IN ");
    push_list(query, ids.into_iter().map(|id| id.0));
}

/// The channel notified by commits that write revisions.
pub const CHANNEL: &str = "emend_learning_revisions";

const SCHEMA: &str = "emend_learning";

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// The store in one PostgreSQL database.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: BoundedPool,
}

impl PostgresStore {
    /// Opens the database, creating or migrating the schema if need be.
    pub async fn open(url: &PostgresUrl, max_connections: u32) -> Result<Self, StoreError> {
        let config = PostgresConfig {
            url: url.clone(),
            schema: SCHEMA,
            application_name: "emend learning-svc",
            max_connections,
        };
        let pool = open_postgres(&config, &MIGRATIONS).await?;
        Ok(Self { pool })
    }

    /// Opens everything in the service's schema for an audit.
    pub(crate) async fn read(url: &PostgresUrl) -> Result<Box<dyn AuditRead>, OpenError> {
        let config = PostgresConfig {
            url: url.clone(),
            schema: SCHEMA,
            application_name: "emend audit of learning-svc",
            max_connections: 1,
        };
        let pool = open_postgres_to_read(&config, &MIGRATIONS).await?;
        Ok(Box::new(audit_sql::Reading::begin(pool).await?))
    }

    /// A connection for reading.
    pub(super) async fn reader(&self) -> Result<StatementConnection, StoreError> {
        self.pool.acquire().await
    }

    /// A connection for a statement that may scan a lot.
    pub(super) async fn browser(&self) -> Result<StatementConnection, StoreError> {
        self.pool.browse().await
    }

    /// Begins a READ COMMITTED transaction that may write.
    pub(super) async fn begin_write(&self) -> Result<Transaction, StoreError> {
        self.pool.begin("BEGIN ISOLATION LEVEL READ COMMITTED").await
    }

    /// Begins the transaction of a unit of work, all of whose look-ups use indexes.
    ///
    /// The planner has to be told: the plan of a prepared statement is kept, and one made while `contests` was small scans
    /// it for every look-up by id, however large it grows; within one large import nothing makes it look again. (Seen with
    /// EXPLAIN EXECUTE: prepared at 10 contests, a scan at 50,000. The other statements of a unit of work would keep to
    /// their indexes by themselves.)
    pub(super) async fn begin_work(&self) -> Result<Transaction, StoreError> {
        self.pool
            .begin("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off")
            .await
    }

    /// The same for several callers, which no lock holds up for long.
    pub(super) async fn begin_group_work(&self) -> Result<Transaction, StoreError> {
        self.pool
            .begin(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off; \
                 SET LOCAL lock_timeout = '250ms'",
            )
            .await
    }

    /// Begins a transaction that reads one consistent state.
    pub(super) async fn begin_read(&self) -> Result<Transaction, StoreError> {
        self.pool
            .begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await
    }

    /// Runs a test's statements.
    #[cfg(test)]
    pub(super) async fn tamper(&self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::raw_sql(sql)
            .execute(&mut *self.pool.acquire().await?)
            .await?;
        self.close_pools().await;
        Ok(())
    }

    /// Whether somebody waits for a lock in a test's database.
    #[cfg(test)]
    pub(super) async fn somebody_waits(&self) -> Result<bool, StoreError> {
        let waiting = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock')";
        let waits = sqlx::query_scalar(waiting)
            .fetch_one(&mut *self.pool.acquire().await?)
            .await?;
        self.close_pools().await;
        Ok(waits)
    }

    /// Nothing that a client of PostgreSQL can do: its own vacuum frees what was deleted, and how long its log is kept is
    /// the operators' choice (docs/operations.md).
    #[expect(clippy::unused_async, reason = "SQLite has something to do")]
    pub(super) async fn clean(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The current state of all connections.
    pub(super) fn pool_connections(&self) -> Connections {
        self.pool.connections()
    }

    /// Closes all connections.
    pub(super) async fn close_pools(&self) {
        self.pool.close().await;
    }
}

/// Keys for `count` new rows of a table with a key of its own.
pub(super) async fn new_keys(
    transaction: &mut Transaction,
    table: Keyed,
    count: usize,
) -> Result<Vec<i64>, StoreError> {
    let taken = match table {
        Keyed::Contests => {
            "SELECT nextval(pg_get_serial_sequence('contests', 'contest')) FROM generate_series(1, $1)"
        }
        Keyed::Candidates => {
            "SELECT nextval(pg_get_serial_sequence('candidates', 'candidate')) FROM generate_series(1, $1)"
        }
    };
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Ok(sqlx::query_scalar(taken)
        .bind(count)
        .fetch_all(&mut **transaction)
        .await?)
}

/// Makes all others that handle one of these feedbacks wait until this transaction ends: a feedback and its retraction
/// share no row that both would write, and must not miss each other.
pub(super) async fn lock_feedback(
    transaction: &mut Transaction,
    ids: &[FeedbackId],
) -> Result<(), StoreError> {
    // Advisory locks have 64-bit keys. Two feedbacks with the same key merely wait for each other.
    let mut keys: Vec<i64> = ids
        .iter()
        .map(|id| id.0.as_u64_pair().0.cast_signed() ^ id.0.as_u64_pair().1.cast_signed())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    sqlx::query("SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key")
        .bind(keys)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Plans the further statements of this transaction for the tables as they are now.
///
/// The plan of a prepared statement is kept until its tables are analysed next. (Seen with EXPLAIN EXECUTE: prepared while a
/// namespace had no fragments, a look-up of 64 of them by their ids goes on to read all that the namespace has. Of 50,000
/// that takes 200 ms, and with a plan made for them 0.4 ms, of which the planning is half.)
pub(super) async fn plan_anew(transaction: &mut Transaction) -> Result<(), StoreError> {
    sqlx::raw_sql("SET LOCAL plan_cache_mode = force_custom_plan")
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Wakes the log tailers of other replicas if and when this transaction commits.
pub(super) async fn notify(transaction: &mut Transaction) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_notify($1, '')")
        .bind(CHANNEL)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// A fresh, empty store and its database.
#[cfg(test)]
pub(super) async fn open_for_test() -> Option<(Backend, emend_store::testing::TestDatabase)> {
    let database = emend_store::testing::TestPostgres::create().await?;
    let store = PostgresStore::open(database.url(), 4).await.unwrap();
    Some((store, database))
}
