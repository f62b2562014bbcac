//! The unit of work in SQL: one transaction, on which the repositories work.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{CandidateId, ContestId};
use emend_store::{
    Connections, CorruptRow, StoreError,
    sql::{Dialect, Row, Statement, Transaction},
};
use jiff::Timestamp;

use crate::{
    Database, Store, UnitOfWork, WholeUnit,
    contests::ContestRepository,
    database::{self, SqlStore},
    erasure::Erasures,
    evidence::RulingRepository,
    ingest::InboxRepository,
    log::LogRepository,
    nodes::NodeRepository,
    outputs::{RatingRepository, improvements::Redactions},
    policies::PolicyRepository,
    profiles::EntryRepository,
    resources::ResourceRepository,
};

type Result<T> = std::result::Result<T, StoreError>;

/// With more contests than these, statements do not wait for others: they are of so many different texts that few stay
/// prepared, and long enough to be worth the way. One may be counted by another.
const FEW: usize = 2;

/// One unit of work: a transaction, rolled back when it is dropped.
///
/// Where a database takes several statements at once, one whose result nobody waits for is handed over with the next one:
/// each time costs a change to another thread and back, more than most of these statements themselves.
pub(crate) struct Work {
    /// Only for who has handed over what waits: see [`Work::transaction`].
    transaction: Transaction,
    /// Statements that are complete and wait, and the one that is being written.
    waiting: Statement,
    /// How many those are.
    statements: usize,
    /// Whether one of several failed: those after it were not executed, so nothing may be committed.
    failed: bool,
    /// The database's keys of the contests that are locked, and of their candidates.
    pub(crate) keys: Keys,
    /// How many statements ran so far.
    #[cfg(test)]
    pub(crate) executed: usize,
}

/// By which keys rows refer to what was read under this unit of work's locks.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    contests: HashMap<ContestId, i64>,
    /// Contests that this unit of work creates, and when it did: nothing is stored of them but what it has written.
    pub(crate) new: HashMap<ContestId, Timestamp>,
    candidates: HashMap<(i64, CandidateId), i64>,
}

impl Keys {
    /// The key of a contest, which must be locked.
    pub(crate) fn contest(&self, id: ContestId) -> Result<i64> {
        let key = self.contests.get(&id).copied();
        key.ok_or_else(|| CorruptRow::new("contests", "contest_id", id, "written without its lock").into())
    }

    /// Whether a contest is locked, or may be created by this unit of work.
    pub(crate) fn is_known(&self, id: ContestId) -> bool {
        self.contests.contains_key(&id) || self.is_new(id)
    }

    /// Whether this unit of work creates a contest.
    pub(crate) fn is_new(&self, id: ContestId) -> bool {
        self.new.contains_key(&id)
    }

    /// When a contest was created, if its row is yet to be written.
    pub(crate) fn unstored(&self, id: ContestId) -> Option<Timestamp> {
        let created_at = *self.new.get(&id)?;
        (!self.contests.contains_key(&id)).then_some(created_at)
    }

    /// The key of a contest's candidate, which must have been read or written.
    pub(crate) fn candidate(&self, contest: ContestId, id: CandidateId) -> Result<i64> {
        let key = self.candidates.get(&(self.contest(contest)?, id)).copied();
        key.ok_or_else(|| CorruptRow::new("candidates", "candidate_id", id, "named and not stored").into())
    }

    /// Forgets contests that this unit of work does not create after all.
    pub(crate) fn forget(&mut self, contests: &[ContestId]) {
        for id in contests {
            self.contests.remove(id);
            self.new.remove(id);
        }
    }

    /// Notes the key of a locked contest.
    pub(crate) fn note_contest(&mut self, id: ContestId, key: i64) {
        self.contests.insert(id, key);
    }

    /// Notes the key of a candidate.
    pub(crate) fn note_candidate(&mut self, contest: i64, id: CandidateId, key: i64) {
        self.candidates.insert((contest, id), key);
    }
}

impl Work {
    pub(crate) async fn begin(store: &SqlStore) -> Result<Self> {
        Ok(Self::on(store.begin_work().await?))
    }

    async fn begin_group(store: &SqlStore) -> Result<Self> {
        Ok(Self::on(store.begin_group_work().await?))
    }

    fn on(transaction: Transaction) -> Self {
        Self {
            transaction,
            waiting: Statement::new(""),
            statements: 0,
            failed: false,
            keys: Keys::default(),
            #[cfg(test)]
            executed: 0,
        }
    }

    /// The SQL that the database speaks.
    pub(crate) fn dialect(&self) -> Dialect {
        self.transaction.dialect()
    }

    /// The transaction, in which everything before is executed.
    pub(crate) async fn transaction(&mut self) -> Result<&mut Transaction> {
        if self.statements > 0 {
            let waiting = self.take_waiting();
            let done = self.transaction.execute(waiting).await;
            self.failed |= done.is_err();
            done?;
        }
        Ok(&mut self.transaction)
    }

    /// Begins a statement that changes something: the caller completes it and then calls [`Work::written`], or
    /// [`Work::rows_written`] if it returns rows.
    pub(crate) fn write(&mut self, sql: &'static str) -> &mut Statement {
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
    pub(crate) fn waits(&self) -> bool {
        database::takes_several(self.dialect()) && self.keys.contests.len() + self.keys.new.len() <= FEW
    }

    /// Executes the statement that was begun, now or with the next one.
    pub(crate) async fn written(&mut self) -> Result<()> {
        if !self.waits() {
            self.transaction().await?;
        }
        Ok(())
    }

    /// Executes what was begun, now, and returns all its rows.
    pub(crate) async fn rows_written<R>(&mut self) -> Result<Vec<R>>
    where
        R: Row,
    {
        if self.statements == 0 {
            return Ok(Vec::new());
        }
        let waiting = self.take_waiting();
        let rows = self.transaction.rows(waiting).await;
        self.failed |= rows.is_err();
        rows
    }

    fn take_waiting(&mut self) -> Statement {
        self.statements = 0;
        std::mem::replace(&mut self.waiting, Statement::new(""))
    }

    pub(crate) async fn rows<R>(&mut self, query: Statement) -> Result<Vec<R>>
    where
        R: Row,
    {
        #[cfg(test)]
        {
            self.executed += 1;
        }
        let transaction = self.transaction().await?;
        transaction.rows(query).await
    }

    /// The database's time.
    pub(crate) async fn database_time(&mut self) -> Result<Timestamp> {
        let clock = Statement::new("SELECT now FROM database_clock");
        let now: i64 = self.transaction().await?.value(clock).await?;
        Timestamp::from_microsecond(now)
            .map_err(|error| CorruptRow::new("database_clock", "now", now, error).into())
    }

    /// Executes a statement. Returns how many rows it changed.
    pub(crate) async fn run(&mut self, query: Statement) -> Result<u64> {
        #[cfg(test)]
        {
            self.executed += 1;
        }
        let transaction = self.transaction().await?;
        transaction.execute(query).await
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

    fn ratings(&mut self) -> &mut dyn RatingRepository {
        self
    }

    fn redactions(&mut self) -> &mut dyn Redactions {
        self
    }

    fn rulings(&mut self) -> &mut dyn RulingRepository {
        self
    }

    fn entries(&mut self) -> &mut dyn EntryRepository {
        self
    }

    fn erasures(&mut self) -> &mut dyn Erasures {
        self
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.transaction().await?;
        if self.failed {
            return Err(
                sqlx::Error::Protocol("a statement of this transaction has failed".to_owned()).into(),
            );
        }
        self.transaction.commit().await
    }
}

#[async_trait]
impl Database for SqlStore {
    async fn begin_whole(&self) -> Result<Box<dyn WholeUnit>> {
        Ok(Box::new(Work::begin(self).await?))
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>> {
        Ok(Box::new(Work::begin(self).await?))
    }

    async fn begin_group(&self) -> Result<Box<dyn UnitOfWork>> {
        Ok(Box::new(Work::begin_group(self).await?))
    }

    fn group(&self) -> usize {
        database::group(self.dialect())
    }

    #[cfg(any(test, feature = "simulation"))]
    async fn contents(&self) -> Result<crate::contents::Contents> {
        crate::contents_sql::read(self).await
    }

    fn connections(&self) -> Connections {
        self.pools().connections()
    }

    async fn ping(&self) -> Result<()> {
        self.pools().ping().await
    }

    async fn close(&self) {
        self.pools().close().await;
    }
}

/// The one row of the candidate with an id, if there is one. The id is a hash: candidates of two contests may have the same.
pub(crate) fn only<T>(mut rows: Vec<T>, id: CandidateId) -> Result<Option<T>> {
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
