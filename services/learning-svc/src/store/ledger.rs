//! The port of audits: everything that is stored, read in one consistent state, and no more of it in memory at once than an
//! audit has to hold against each other.
//!
//! Contests come in ranges of their ids, which every table that speaks of contests is read by. It must know nothing of
//! what has to be so.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::Policy;
use emend_runtime::{audit::OpenError, database::DatabaseUrl, store::StoreError};
use futures::stream::BoxStream;

use super::{decisions::PolicyKey, log::Head, postgres::PostgresStore, sqlite::SqliteStore};

pub(crate) use super::rows::{
    KeyRow,
    audited::{
        AuditedBallot as BallotRow, AuditedCandidate, AuditedChange, AuditedContest, AuditedResource,
        AuditedTransition, EntryRow,
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// Contests by their ids: behind `after`, up to and with `through`; without it, to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    /// Empty: from the first.
    pub(crate) after: String,
    /// The last one.
    pub(crate) through: Option<String>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Contests.
    pub(crate) contests: u64,
    /// Events that were applied.
    pub(crate) events: u64,
}

/// What a revision's changes look like together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Span {
    /// Which revision.
    pub(crate) revision: i64,
    /// How many changes it has.
    pub(crate) changes: i64,
    /// The lowest ordinal.
    pub(crate) first: i64,
    /// The highest ordinal.
    pub(crate) last: i64,
    /// How many keys it changes.
    pub(crate) keys: i64,
}

/// One reading of everything: all that it answers is of the moment when it was begun.
#[async_trait]
pub(crate) trait LedgerRead: Send {
    /// How much there is.
    async fn extent(&mut self) -> Result<Extent>;

    /// How many contests have something that waits and were evaluated by an older policy than the one in force.
    async fn to_reevaluate(&mut self) -> Result<u64>;

    /// The head; it should be one.
    async fn heads(&mut self) -> Result<Vec<Result<Head>>>;

    /// All policies that were ever set, by what they are for and their version.
    async fn policies(&mut self) -> Result<Vec<Result<(PolicyKey, Policy)>>>;

    /// How many resources the counters say there are, and how many there are.
    async fn resource_counts(&mut self) -> Result<[HashMap<(String, i32), i64>; 2]>;

    /// The last of the next `size` contests behind `after`; none where fewer are left.
    async fn page_end(&mut self, after: &str, size: u32) -> Result<Option<String>>;

    /// The contests of a range.
    async fn contests(&mut self, range: &Range) -> Result<Vec<AuditedContest>>;

    /// Their candidates.
    async fn candidates(&mut self, range: &Range) -> Result<Vec<AuditedCandidate>>;

    /// Their resources.
    async fn resources(&mut self, range: &Range) -> Result<Vec<AuditedResource>>;

    /// Their candidates' transitions: by contest, candidate and sequence.
    fn transitions(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedTransition>>;

    /// Their ballots that count: by contest, newest first.
    fn ballots(&mut self, range: &Range) -> BoxStream<'_, Result<BallotRow>>;

    /// What the log says of them: by contest, newest first.
    fn changes(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedChange>>;

    /// The revisions in (after, through], ascending, and those that have changes.
    async fn revisions(&mut self, after: i64, through: i64) -> Result<(Vec<i64>, Vec<Span>)>;

    /// Transitions of candidates that are not there; at most 1,000 candidates.
    async fn stray_transitions(&mut self) -> Result<Vec<String>>;

    /// All that was taken from feedback-svc, by feedback; a row for each applied event of it.
    fn entries(&mut self) -> BoxStream<'_, Result<EntryRow>>;
}

/// Begins a reading.
pub(crate) async fn open(database: &DatabaseUrl) -> std::result::Result<Box<dyn LedgerRead>, OpenError> {
    match database {
        DatabaseUrl::Sqlite(path) => SqliteStore::read(path).await,
        DatabaseUrl::Postgres(url) => PostgresStore::read(url).await,
    }
}
