//! The port of audits: everything that is stored, read in one consistent state.
//!
//! It must know nothing of what has to be so.

use async_trait::async_trait;
use emend_core::FeedbackId;
use emend_runtime::{audit::OpenError, database::DatabaseUrl};
use futures::stream::BoxStream;

use super::{PostgresStore, SqliteStore, StoreError, rows::AuditedRow};

/// A row that is there without the others of its feedback, or is not there with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adrift {
    /// Of which table.
    pub(crate) part: String,
    /// Whose.
    pub(crate) accept_order: i64,
    /// It is not there; else the feedback is not.
    pub(crate) missing: bool,
}

/// A request id that was taken twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RepeatedRequestId {
    /// The feedback that should have been answered with the earlier one.
    pub(crate) accept_order: i64,
    /// The earlier one.
    pub(crate) earlier: i64,
}

/// One reading of everything: all that it answers is of the moment when it was begun.
#[async_trait]
pub(crate) trait AuditRead: Send {
    /// How many feedbacks there are.
    async fn count(&mut self) -> Result<u64, StoreError>;

    /// How many events wait to be delivered, dead letters left out.
    async fn waiting(&mut self) -> Result<u64, StoreError>;

    /// All feedback that has all its parts, by id; for each one row, or as many as it has outbox entries.
    fn rows(&mut self) -> BoxStream<'_, Result<AuditedRow, StoreError>>;

    /// The same of some.
    fn rows_of(&mut self, ids: &[FeedbackId]) -> BoxStream<'_, Result<AuditedRow, StoreError>>;

    /// Rows that do not go together; at most 1,000.
    async fn adrift(&mut self) -> Result<Vec<Adrift>, StoreError>;

    /// Request ids that were taken twice within so many microseconds; at most 1,000.
    async fn repeated_request_ids(
        &mut self,
        within_micros: i64,
    ) -> Result<Vec<RepeatedRequestId>, StoreError>;

    /// The highest accept order that a feedback has, and the last one given.
    async fn accept_orders(&mut self) -> Result<(i64, i64), StoreError>;
}

/// Begins a reading.
pub(crate) async fn open(database: &DatabaseUrl) -> Result<Box<dyn AuditRead>, OpenError> {
    match database {
        DatabaseUrl::Sqlite(path) => SqliteStore::read(path).await,
        DatabaseUrl::Postgres(url) => PostgresStore::read(url).await,
    }
}
