//! The port of audits: everything stored, read in one consistent state.

use async_trait::async_trait;
use emend_core::FeedbackId;
use emend_store::{DatabaseUrl, audit::OpenError};
use futures::stream::BoxStream;

use super::{PostgresStore, SqliteStore, StoreError, rows::AuditedRow};

/// A row that exists without the others of its feedback, or is missing among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InconsistentRow {
    /// The table it belongs to.
    pub(crate) part: String,
    /// The accept order of its feedback.
    pub(crate) accept_order: i64,
    /// The row is missing; otherwise its feedback is.
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

/// One read of everything: all it returns is as of the moment it began.
#[async_trait]
pub(crate) trait AuditRead: Send {
    /// How many feedbacks there are.
    async fn count(&mut self) -> Result<u64, StoreError>;

    /// How many events await delivery, dead letters excluded.
    async fn waiting(&mut self) -> Result<u64, StoreError>;

    /// All feedback that has all its parts, by id: one row for each of its outbox entries, or one row if it has none.
    fn rows(&mut self) -> BoxStream<'_, Result<AuditedRow, StoreError>>;

    /// The same for these ids.
    fn rows_of(&mut self, ids: &[FeedbackId]) -> BoxStream<'_, Result<AuditedRow, StoreError>>;

    /// Rows that do not belong together; at most 1,000.
    async fn adrift(&mut self) -> Result<Vec<InconsistentRow>, StoreError>;

    /// The accept orders of ratings of which it is wrong whether a newer one replaces them; at most 1,000.
    async fn wrongly_replaced(&mut self) -> Result<Vec<i64>, StoreError>;

    /// Request ids that were taken twice within this many microseconds; at most 1,000.
    async fn repeated_request_ids(
        &mut self,
        within_micros: i64,
    ) -> Result<Vec<RepeatedRequestId>, StoreError>;

    /// The highest accept order of any feedback, and the last one given.
    async fn accept_orders(&mut self) -> Result<(i64, i64), StoreError>;
}

/// Opens a database for an audit.
pub(crate) async fn open(database: &DatabaseUrl) -> Result<Box<dyn AuditRead>, OpenError> {
    match database {
        DatabaseUrl::Sqlite(path) => SqliteStore::read(path).await,
        DatabaseUrl::Postgres(url) => PostgresStore::read(url).await,
    }
}
