//! The store on SQLite or PostgreSQL: opening it, its transactions, and what the two databases do differently.

use emend_core::{CandidateId, ContestId, FeedbackId};
use emend_store::{
    DatabaseUrl, StoreError,
    audit::OpenError,
    postgres::{self, PostgresConfig, open_postgres},
    sql::{Conn, Dialect, Pools, Row, Separated, Statement, Transaction},
    sqlite::{self, open_sqlite},
};
use sqlx::migrate::Migrator;
use uuid::Uuid;

use crate::Keyed;

type Result<T> = std::result::Result<T, StoreError>;

/// The channel of PostgreSQL that is notified by commits that write revisions.
pub const CHANNEL: &str = "emend_learning_revisions";

const SCHEMA: &str = "emend_learning";

static SQLITE: Migrator = sqlx_macros::migrate!("./migrations/sqlite");
static POSTGRES: Migrator = sqlx_macros::migrate!("./migrations/postgres");

/// The store in one database.
#[derive(Debug, Clone)]
pub struct SqlStore {
    pools: Pools,
}

fn postgres_config(url: &emend_store::PostgresUrl, max_connections: u32) -> PostgresConfig {
    PostgresConfig {
        url: url.clone(),
        schema: SCHEMA,
        application_name: "emend learning-svc",
        max_connections,
    }
}

impl SqlStore {
    /// Opens the database, creating or migrating its schema if need be. `connections` is the number of readers (SQLite) or of
    /// all connections (PostgreSQL).
    pub async fn open(database: &DatabaseUrl, connections: u32) -> Result<Self> {
        let pools = match database {
            DatabaseUrl::Sqlite(path) => Pools::Sqlite(open_sqlite(path, connections, &SQLITE).await?),
            DatabaseUrl::Postgres(url) => {
                Pools::Postgres(open_postgres(&postgres_config(url, connections), &POSTGRES).await?)
            }
        };
        Ok(Self { pools })
    }

    /// Opens the existing database for an audit and begins to read one state of it.
    pub(crate) async fn begin_to_read(database: &DatabaseUrl) -> std::result::Result<Transaction, OpenError> {
        match database {
            DatabaseUrl::Sqlite(path) => sqlite::begin_to_read(path, &SQLITE).await,
            DatabaseUrl::Postgres(url) => {
                let config = PostgresConfig {
                    application_name: "emend audit of learning-svc",
                    ..postgres_config(url, 1)
                };
                postgres::begin_to_read(&config, &POSTGRES).await
            }
        }
    }

    /// The connections.
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// The SQL that the database speaks.
    pub(crate) fn dialect(&self) -> Dialect {
        self.pools.dialect()
    }

    /// A connection for reading.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        self.pools.reader().await
    }

    /// A connection for a statement that may scan a lot.
    pub(crate) async fn browser(&self) -> Result<Conn> {
        self.pools.browser().await
    }

    /// Begins a transaction that may write.
    pub(crate) async fn begin_write(&self) -> Result<Transaction> {
        self.pools.begin_write().await
    }

    /// Begins a transaction that reads one consistent state.
    pub(crate) async fn begin_read(&self) -> Result<Transaction> {
        self.pools.begin_read().await
    }

    /// Begins the transaction of a unit of work, all of whose look-ups use indexes.
    ///
    /// PostgreSQL's planner has to be told: the plan of a prepared statement is kept, and one made while `contests` was small
    /// scans it for every look-up by id, however large it grows; within one large import nothing makes it look again. (Seen
    /// with EXPLAIN EXECUTE: prepared at 10 contests, a scan at 50,000. The other statements of a unit of work would keep to
    /// their indexes by themselves.)
    pub(crate) async fn begin_work(&self) -> Result<Transaction> {
        match &self.pools {
            Pools::Sqlite(pools) => Ok(pools.begin_write().await?.into()),
            Pools::Postgres(pool) => Ok(pool
                .begin("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off")
                .await?
                .into()),
        }
    }

    /// The same for several callers, which no lock holds up for long. On SQLite there are no locks but the one of the whole
    /// file, for which they queue.
    pub(crate) async fn begin_group_work(&self) -> Result<Transaction> {
        match &self.pools {
            Pools::Sqlite(pools) => Ok(pools.begin_write().await?.into()),
            Pools::Postgres(pool) => Ok(pool
                .begin(
                    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off; \
                     SET LOCAL lock_timeout = '250ms'",
                )
                .await?
                .into()),
        }
    }

    /// All rows of a statement, on a connection of its own.
    pub(crate) async fn rows<R: Row>(&self, statement: Statement) -> Result<Vec<R>> {
        self.reader().await?.rows(statement).await
    }
}

/// Whether contests are locked by their rows, which are created for that. On SQLite only one transaction writes at a time: a
/// contest is created when it is written.
pub(crate) const fn locks_rows(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Sqlite => false,
        Dialect::Postgres => true,
    }
}

/// Whether several statements can be handed over at once. PostgreSQL takes one prepared statement at a time.
pub(crate) const fn takes_several(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Sqlite => true,
        Dialect::Postgres => false,
    }
}

/// How many events are applied in one transaction at most: the more, the fewer statements, and the fewer times a page is
/// written. On PostgreSQL each takes an advisory lock, of which it has room for some 6,000 by default, for all replicas and
/// workers.
pub(crate) const fn group(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Sqlite => 256,
        Dialect::Postgres => 128,
    }
}

/// Appends the condition that a contest has one of these ids.
///
/// On SQLite their index begins with the hash of the key, and a list for each of its columns would be looked up in all
/// combinations. PostgreSQL has an index of the ids alone: what was planned for pairs with the hash of the key while there were
/// few contests would pass over all of them once there are many.
pub(crate) fn push_contests(query: &mut Statement, ids: impl IntoIterator<Item = ContestId> + Clone) {
    let condition = ("(key_hash, contest_id) IN (", ")");
    let sqlite = among_rows(condition, ids.clone(), |mut row, id| {
        row.push_bind(id.key_hash()).push_bind(bytes(id.0));
    });
    let mut postgres = Statement::new("contest_id IN ");
    postgres.push_list(ids.into_iter().map(|id| bytes(id.0)));
    query.push_either(sqlite, postgres);
}

/// Appends the condition that a candidate `k` has one of these ids. On SQLite they have no index of their own: they are looked
/// up in the contests whose ids begin and end as theirs say: their own, and of others with the same key one in 65,536.
pub(crate) fn push_candidates(query: &mut Statement, ids: impl IntoIterator<Item = CandidateId> + Clone) {
    let condition = (
        "(k.contest, k.candidate_id) IN (SELECT n.contest, named.column4 FROM (",
        ") AS named CROSS JOIN contests AS n WHERE n.key_hash = named.column1 \
         AND n.contest_id BETWEEN named.column2 AND named.column3)",
    );
    let sqlite = among_rows(condition, ids.clone(), |mut row, id| {
        let (first, last) = id.contests().into_inner();
        row.push_bind(id.key_hash())
            .push_bind(bytes(first.0))
            .push_bind(bytes(last.0))
            .push_bind(bytes(id.0));
    });
    let mut postgres = Statement::new("k.candidate_id IN ");
    postgres.push_list(ids.into_iter().map(|id| bytes(id.0)));
    query.push_either(sqlite, postgres);
}

/// A condition around `VALUES` with a row for each id; for none, one that nothing meets.
fn among_rows<T>(
    (before, after): (&'static str, &'static str),
    ids: impl IntoIterator<Item = T>,
    bind: impl FnMut(Separated<'_>, T),
) -> Statement {
    let mut ids = ids.into_iter().peekable();
    if ids.peek().is_none() {
        return Statement::new("FALSE");
    }
    let mut condition = Statement::new(before);
    condition.push_values(ids, bind).push(after);
    condition
}

/// Keys for `count` new rows of a table with a key of its own.
pub(crate) async fn new_keys(transaction: &mut Transaction, table: Keyed, count: usize) -> Result<Vec<i64>> {
    match transaction.dialect() {
        Dialect::Sqlite => {
            let newest = match table {
                Keyed::Contests => "SELECT coalesce(max(contest), 0) FROM contests",
                Keyed::Candidates => "SELECT coalesce(max(candidate), 0) FROM candidates",
            };
            // The one writer is alone: nobody else takes the keys after the newest.
            let newest: i64 = transaction.value(Statement::new(newest)).await?;
            Ok((newest + 1..).take(count).collect())
        }
        Dialect::Postgres => {
            let taken = match table {
                Keyed::Contests => {
                    "SELECT nextval(pg_get_serial_sequence('contests', 'contest')) FROM generate_series(1, $1)"
                }
                Keyed::Candidates => {
                    "SELECT nextval(pg_get_serial_sequence('candidates', 'candidate')) FROM generate_series(1, $1)"
                }
            };
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            transaction.values(Statement::new(taken).bind(count)).await
        }
    }
}

/// Makes all others that handle one of these feedbacks wait until this transaction ends: a feedback and its retraction
/// share no row that both would write, and must not miss each other. On SQLite nobody else writes while this transaction does.
pub(crate) async fn lock_feedback(transaction: &mut Transaction, ids: &[FeedbackId]) -> Result<()> {
    match transaction.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => {
            // Advisory locks have 64-bit keys. Two feedbacks with the same key merely wait for each other.
            let mut keys: Vec<i64> = ids
                .iter()
                .map(|id| id.0.as_u64_pair().0.cast_signed() ^ id.0.as_u64_pair().1.cast_signed())
                .collect();
            keys.sort_unstable();
            keys.dedup();
            let lock = "SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key";
            transaction.execute(Statement::new(lock).bind(keys)).await?;
        }
    }
    Ok(())
}

/// Plans the further statements of this transaction for the tables as they are now. SQLite's plans do not depend on how large
/// they are.
///
/// The plan of a statement that PostgreSQL prepared is kept until its tables are analysed next. (Seen with EXPLAIN EXECUTE:
/// prepared while a namespace had no fragments, a look-up of 64 of them by their ids goes on to read all that the namespace has.
/// Of 50,000 that takes 200 ms, and with a plan made for them 0.4 ms, of which the planning is half.)
pub(crate) async fn plan_anew(transaction: &mut Transaction) -> Result<()> {
    match transaction.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => {
            let anew = "SET LOCAL plan_cache_mode = force_custom_plan";
            transaction.execute_text(anew).await?;
        }
    }
    Ok(())
}

/// Wakes the log tailers of other replicas if and when this transaction commits. No other process can have an SQLite file open,
/// and this one's tailer is woken after the commit.
pub(crate) async fn notify(transaction: &mut Transaction) -> Result<()> {
    match transaction.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => {
            let notify = Statement::new("SELECT pg_notify($1, '')").bind(CHANNEL);
            transaction.execute(notify).await?;
        }
    }
    Ok(())
}

/// An id as it is stored.
pub(crate) fn bytes(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}
