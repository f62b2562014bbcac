//! The unit of work in SQL: one transaction, on which the repositories work. Written once, compiled for each database.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{CandidateId, ContestId};
use emend_store::{Connections, CorruptRow, StoreError};
use jiff::Timestamp;
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::{Backend, Db, GROUP, TAKES_SEVERAL, Transaction};
use crate::{
    contests::store::ContestRepository,
    erasure::store::Erasures,
    evidence::store::{EvidenceRepository, EvidenceStore},
    ingest::store::InboxRepository,
    log::store::LogRepository,
    nodes::store::NodeRepository,
    outputs::store::{
        RatingRepository,
        improvements::{ImprovementRepository, OutputStore},
    },
    policies::store::PolicyRepository,
    profiles::store::{ProfileRepository, ProfileStore},
    resources::store::{BulkRepository, ResourceRepository},
    store::{Store, UnitOfWork},
};

type Result<T> = std::result::Result<T, StoreError>;

/// With more contests than these, statements do not wait for others: they are of so many different texts that few stay
/// prepared, and long enough to be worth the way. One may be counted by another.
const FEW: usize = 2;

/// One unit of work: a transaction, rolled back when it is dropped.
///
/// Where a database takes several statements at once, one whose result nobody waits for is handed over with the next one:
/// each time costs a change to another thread and back, more than most of these statements themselves.
pub(super) struct Work {
    /// Only for who has handed over what waits: see [`Work::transaction`].
    transaction: Transaction,
    /// Statements that are complete and wait, and the one that is being written.
    waiting: QueryBuilder<Db>,
    /// How many those are.
    statements: usize,
    /// Whether one of several failed: those after it were not executed, so nothing may be committed.
    failed: bool,
    /// The database's keys of the contests that are locked, and of their candidates.
    pub(super) keys: Keys,
    /// How many statements ran so far.
    #[cfg(test)]
    pub(super) executed: usize,
}

/// By which keys rows refer to what was read under this unit of work's locks.
#[derive(Debug, Default)]
pub(super) struct Keys {
    contests: HashMap<ContestId, i64>,
    /// Contests that this unit of work creates, and when it did: nothing is stored of them but what it has written.
    pub(super) new: HashMap<ContestId, Timestamp>,
    candidates: HashMap<(i64, CandidateId), i64>,
}

impl Keys {
    /// The key of a contest, which must be locked.
    pub(super) fn contest(&self, id: ContestId) -> Result<i64> {
        let key = self.contests.get(&id).copied();
        key.ok_or_else(|| CorruptRow::new("contests", "contest_id", id, "written without its lock").into())
    }

    /// Whether a contest is locked, or may be created by this unit of work.
    pub(super) fn is_known(&self, id: ContestId) -> bool {
        self.contests.contains_key(&id) || self.is_new(id)
    }

    /// Whether this unit of work creates a contest.
    pub(super) fn is_new(&self, id: ContestId) -> bool {
        self.new.contains_key(&id)
    }

    /// When a contest was created, if its row is yet to be written.
    pub(super) fn unstored(&self, id: ContestId) -> Option<Timestamp> {
        let created_at = *self.new.get(&id)?;
        (!self.contests.contains_key(&id)).then_some(created_at)
    }

    /// The key of a contest's candidate, which must have been read or written.
    pub(super) fn candidate(&self, contest: ContestId, id: CandidateId) -> Result<i64> {
        let key = self.candidates.get(&(self.contest(contest)?, id)).copied();
        key.ok_or_else(|| CorruptRow::new("candidates", "candidate_id", id, "named and not stored").into())
    }

    /// Forgets contests that this unit of work does not create after all.
    pub(super) fn forget(&mut self, contests: &[ContestId]) {
        for id in contests {
            self.contests.remove(id);
            self.new.remove(id);
        }
    }

    /// Notes the key of a locked contest.
    pub(super) fn note_contest(&mut self, id: ContestId, key: i64) {
        self.contests.insert(id, key);
    }

    /// Notes the key of a candidate.
    pub(super) fn note_candidate(&mut self, contest: i64, id: CandidateId, key: i64) {
        self.candidates.insert((contest, id), key);
    }
}

impl Work {
    pub(super) async fn begin(store: &Backend) -> Result<Self> {
        Ok(Self::of(store.begin_work().await?))
    }

    async fn begin_group(store: &Backend) -> Result<Self> {
        Ok(Self::of(store.begin_group_work().await?))
    }

    fn of(transaction: Transaction) -> Self {
        Self {
            transaction,
            waiting: QueryBuilder::new(""),
            statements: 0,
            failed: false,
            keys: Keys::default(),
            #[cfg(test)]
            executed: 0,
        }
    }

    /// The transaction, in which everything before is executed.
    pub(super) async fn transaction(&mut self) -> Result<&mut Transaction> {
        if self.statements > 0 {
            let mut waiting = self.take_waiting();
            let done = waiting.build().execute(&mut *self.transaction).await;
            self.failed |= done.is_err();
            done?;
        }
        Ok(&mut self.transaction)
    }

    /// Begins a statement that changes something: the caller completes it and then calls [`Work::written`], or
    /// [`Work::rows_written`] if it returns rows.
    pub(super) fn write(&mut self, sql: &'static str) -> &mut QueryBuilder<Db> {
        if self.statements > 0 {
            self.waiting.push("; ");
        }
        self.statements += 1;
        #[cfg(test)]
        {
            self.executed += 1;
        }
        self.waiting.push(sql)
    }

    /// Whether the statement that was begun may wait for the next one.
    pub(super) fn waits(&self) -> bool {
        TAKES_SEVERAL && self.keys.contests.len() + self.keys.new.len() <= FEW
    }

    /// Executes the statement that was begun, now or with the next one.
    pub(super) async fn written(&mut self) -> Result<()> {
        if !self.waits() {
            self.transaction().await?;
        }
        Ok(())
    }

    /// Executes what was begun, now, and returns all its rows.
    pub(super) async fn rows_written<R>(&mut self) -> Result<Vec<R>>
    where
        R: for<'r> FromRow<'r, <Db as sqlx::Database>::Row> + Send + Unpin,
    {
        if self.statements == 0 {
            return Ok(Vec::new());
        }
        let mut waiting = self.take_waiting();
        let rows = waiting.build_query_as().fetch_all(&mut *self.transaction).await;
        self.failed |= rows.is_err();
        Ok(rows?)
    }

    fn take_waiting(&mut self) -> QueryBuilder<Db> {
        self.statements = 0;
        std::mem::replace(&mut self.waiting, QueryBuilder::new(""))
    }

    pub(super) async fn rows<R>(&mut self, mut query: QueryBuilder<Db>) -> Result<Vec<R>>
    where
        R: for<'r> sqlx::FromRow<'r, <Db as sqlx::Database>::Row> + Send + Unpin,
    {
        #[cfg(test)]
        {
            self.executed += 1;
        }
        let transaction = self.transaction().await?;
        Ok(query.build_query_as().fetch_all(&mut **transaction).await?)
    }

    /// The database's time.
    pub(super) async fn database_time(&mut self) -> Result<Timestamp> {
        let now: i64 = sqlx::query_scalar("SELECT now FROM database_clock")
            .fetch_one(&mut **self.transaction().await?)
            .await?;
        Timestamp::from_microsecond(now)
            .map_err(|error| CorruptRow::new("database_clock", "now", now, error).into())
    }

    /// Executes a statement. Returns how many rows it changed.
    pub(super) async fn run(&mut self, mut query: QueryBuilder<Db>) -> Result<u64> {
        #[cfg(test)]
        {
            self.executed += 1;
        }
        let transaction = self.transaction().await?;
        Ok(query.build().execute(&mut **transaction).await?.rows_affected())
    }
}

impl Backend {
    /// All rows of a query, on a connection of its own.
    pub(super) async fn rows<R>(&self, mut query: QueryBuilder<Db>) -> Result<Vec<R>>
    where
        R: for<'r> FromRow<'r, <Db as sqlx::Database>::Row> + Send + Unpin,
    {
        Ok(query
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await?)
    }
}

#[async_trait]
impl UnitOfWork for Work {
    fn contests(&mut self) -> &mut dyn ContestRepository {
        self
    }

    fn resources(&mut self) -> &mut dyn ResourceRepository {
        self
    }

    fn policies(&mut self) -> &mut dyn PolicyRepository {
        self
    }

    fn log(&mut self) -> &mut dyn LogRepository {
        self
    }

    fn inbox(&mut self) -> &mut dyn InboxRepository {
        self
    }

    fn nodes(&mut self) -> &mut dyn NodeRepository {
        self
    }

    fn ratings(&mut self) -> Option<&mut dyn RatingRepository> {
        Some(self)
    }

    fn improvements(&mut self) -> Option<&mut dyn ImprovementRepository> {
        Some(self)
    }

    fn evidence(&mut self) -> Option<&mut dyn EvidenceRepository> {
        Some(self)
    }

    fn erasures(&mut self) -> Option<&mut dyn Erasures> {
        Some(self)
    }

    fn profiles(&mut self) -> Option<&mut dyn ProfileRepository> {
        Some(self)
    }

    fn bulk(&mut self) -> Option<&mut dyn BulkRepository> {
        Some(self)
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.transaction().await?;
        if self.failed {
            return Err(
                sqlx::Error::Protocol("a statement of this transaction has failed".to_owned()).into(),
            );
        }
        Ok(self.transaction.commit().await?)
    }
}

#[async_trait]
impl Store for Backend {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>> {
        Ok(Box::new(Work::begin(self).await?))
    }

    async fn begin_group(&self) -> Result<Box<dyn UnitOfWork>> {
        Ok(Box::new(Work::begin_group(self).await?))
    }

    fn group(&self) -> usize {
        GROUP
    }

    fn outputs(&self) -> Option<&dyn OutputStore> {
        Some(self)
    }

    fn evidence(&self) -> Option<&dyn EvidenceStore> {
        Some(self)
    }

    fn profiles(&self) -> Option<&dyn ProfileStore> {
        Some(self)
    }

    #[cfg(any(test, feature = "simulation"))]
    async fn contents(&self) -> Result<crate::store::contents::Contents> {
        super::contents_sql::read(self).await
    }

    fn connections(&self) -> Connections {
        self.pool_connections()
    }

    async fn ping(&self) -> Result<()> {
        sqlx::query("SELECT 1")
            .execute(&mut *self.reader().await?)
            .await?;
        Ok(())
    }

    async fn close(&self) {
        self.close_pools().await;
    }
}

/// Appends `($1, $2, …)`; for no items, a list that matches nothing.
pub(super) fn push_list(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = Uuid>) {
    let mut ids = ids.into_iter().peekable();
    if ids.peek().is_none() {
        query.push("(NULL)");
        return;
    }
    query.push("(");
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(bytes(id));
    }
    query.push(")");
}

/// The one row of the candidate with an id, if there is one. The id is a hash: candidates of two contests may have the same.
pub(super) fn only<T>(mut rows: Vec<T>, id: CandidateId) -> Result<Option<T>> {
    if rows.len() > 1 {
        return Err(CorruptRow::new(
            "candidates",
            "candidate_id",
            id,
            "candidates of two contests have it",
        )
        .into());
    }
    Ok(rows.pop())
}

/// Appends `($1, $2, …)` for keys within the database; for none, a list that matches nothing.
pub(super) fn push_keys(query: &mut QueryBuilder<Db>, keys: &[i64]) {
    if keys.is_empty() {
        query.push("(NULL)");
        return;
    }
    query.push("(");
    let mut list = query.separated(", ");
    for key in keys {
        list.push_bind(*key);
    }
    query.push(")");
}

/// Appends the number of a LIMIT. SQLite plans a statement anew each time a parameter is bound that alone is its LIMIT.
pub(super) fn push_limit(query: &mut QueryBuilder<Db>, limit: u32) {
    query
        .push("CAST(")
        .push_bind(i64::from(limit))
        .push(" AS BIGINT)");
}

/// How the database executes a statement of a unit of work, a step a line.
#[cfg(test)]
pub(super) async fn plan(store: &Backend, query: QueryBuilder<Db>) -> String {
    explain(store.begin_work().await.unwrap(), query).await
}

/// How the database executes a statement outside of units of work, a step a line.
#[cfg(test)]
pub(super) async fn plan_to_read(store: &Backend, query: QueryBuilder<Db>) -> String {
    explain(store.begin_write().await.unwrap(), query).await
}

#[cfg(test)]
async fn explain(mut transaction: Transaction, mut query: QueryBuilder<Db>) -> String {
    use sqlx::Execute as _;
    let is_postgres = std::any::type_name::<Db>().contains("Postgres");
    if is_postgres {
        sqlx::query("ANALYZE").execute(&mut *transaction).await.unwrap();
    }
    let explain = if is_postgres {
        "EXPLAIN"
    } else {
        "EXPLAIN QUERY PLAN"
    };
    let sql = format!("{explain} {}", query.sql().as_str());
    let arguments = query.build().take_arguments().unwrap().unwrap_or_default();
    let column = if is_postgres { 0 } else { 3 };
    let rows = sqlx::query_with(sqlx::AssertSqlSafe(sql), arguments)
        .fetch_all(&mut *transaction)
        .await
        .unwrap();
    let steps = rows.iter().map(|row| sqlx::Row::get::<String, _>(row, column));
    steps.collect::<Vec<_>>().join("\n")
}

/// An id as it is stored.
pub(super) fn bytes(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}
