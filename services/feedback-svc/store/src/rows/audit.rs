//! What an audit reads besides feedback.

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
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
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
    pub(crate) query_key: Option<Vec<u8>>,
    pub(crate) session_id: String,
    pub(crate) tags: String,
}

/// A rewording that was proposed, with its event as long as that is in the outbox.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
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
