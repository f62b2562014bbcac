//! The port of audits: everything stored, read in one consistent state.

use async_trait::async_trait;
use emend_core::FeedbackId;
use emend_store::StoreError;
use emend_store::{DatabaseUrl, audit::OpenError};
use futures::stream::BoxStream;

use crate::store::{
    PostgresStore, SqliteStore,
    records::queries::{StoredInteraction, StoredQuery},
    rows::AuditedRow,
};

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

/// A rating of a search answer: what is known of its query, and what of its feedback goes with that.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct RatedRow {
    pub(crate) accept_order: i64,
    pub(crate) received_at: i64,
    pub(crate) redacted_at: Option<i64>,
    /// What its reporter sent of the query, a JSON object.
    pub(crate) sent: String,
    pub(crate) rated_at: i64,
    pub(crate) query_id: String,
    pub(crate) context_state: i64,
    pub(crate) known_at_once: i64,
    pub(crate) query_type: String,
    pub(crate) embedding_version: String,
    pub(crate) index_version: String,
    pub(crate) variant: String,
    pub(crate) query: Vec<u8>,
    pub(crate) session_id: String,
    pub(crate) tags: String,
}

/// A rewording that was proposed, with its event as long as that is in the outbox.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct MinedRow {
    pub(crate) namespace: String,
    pub(crate) failed: String,
    pub(crate) worked: String,
    pub(crate) accept_order: i64,
    pub(crate) payload: Option<Vec<u8>>,
}

/// What is wrong with a row of queries, or of what is counted of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A query without its personal part, or the other way round.
    Parts,
    /// The count of a day.
    Day,
    /// The count of a term.
    Term,
    /// Whether an interaction is a click.
    Click,
    /// It is dated ahead of the database's clock.
    Ahead,
}

impl Wrong {
    const ALL: [Self; 5] = [Self::Parts, Self::Day, Self::Term, Self::Click, Self::Ahead];

    /// The number by which a read names it.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Parts => 1,
            Self::Day => 2,
            Self::Term => 3,
            Self::Ahead => 4,
            Self::Click => 5,
        }
    }

    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|wrong| wrong.number() == number)
    }
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

    /// Ratings of search answers, by accept order.
    fn ratings(&mut self) -> BoxStream<'_, Result<RatedRow, StoreError>>;

    /// Rewordings that were proposed, by accept order.
    fn mined(&mut self) -> BoxStream<'_, Result<MinedRow, StoreError>>;

    /// Whether this rewording was proposed in that namespace.
    async fn was_mined(&mut self, namespace: &str, failed: &str, worked: &str) -> Result<bool, StoreError>;

    /// Recorded queries, by number.
    fn queries(&mut self) -> BoxStream<'_, Result<StoredQuery, StoreError>>;

    /// Interactions, by number.
    fn interactions(&mut self) -> BoxStream<'_, Result<StoredInteraction, StoreError>>;

    /// What is wrong with rows of queries and of what is counted of them, and which; at most 1,000. Dated ahead is what is
    /// more than so many microseconds after now.
    async fn wrong_queries(&mut self, ahead_micros: i64) -> Result<Vec<(Wrong, String)>, StoreError>;

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
