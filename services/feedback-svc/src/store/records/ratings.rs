//! What is known of ratings of search answers beside what was said.

use bytes::Bytes;
use emend_core::search::SearchRating;

use crate::store::records::labels::Tag;

/// Whether the query that a rating is about is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextState {
    /// Not yet.
    Pending,
    /// It is.
    Complete,
    /// It was not recorded in time.
    Missing,
}

impl ContextState {
    const ALL: [Self; 3] = [Self::Pending, Self::Complete, Self::Missing];

    /// The number under which it is stored, which is that on the wire.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Pending => 1,
            Self::Complete => 2,
            Self::Missing => 3,
        }
    }

    /// The state with this number.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// What is known about a rating beside what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RatingState {
    /// Whether its query is known.
    pub(crate) context: ContextState,
    /// The type of its query; empty while that is not known, like the other names. They outlive an erasure.
    pub(crate) query_type: String,
    /// Which model made the embeddings.
    pub(crate) embedding_version: String,
    /// Which index was searched.
    pub(crate) index_version: String,
    /// Which variant of an experiment the user saw.
    pub(crate) variant: String,
    /// Whether its query was recorded before it.
    pub(crate) is_known_at_once: bool,
    /// What somebody called it, in alphabetical order.
    pub(crate) tags: Vec<Tag>,
    /// Whether somebody has dealt with it.
    pub(crate) processed: bool,
    /// Whether a newer rating counts instead.
    pub(crate) replaced: bool,
    /// Its query, if it is known and not erased.
    pub(crate) query: Option<EncodedQuery>,
}

/// A query as it was recorded, with its clicks: an encoded [`emend_proto::feedback::v1::Query`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedQuery(pub(crate) Bytes);

impl RatingState {
    /// That of a new rating whose query is not known yet.
    pub(crate) fn new() -> Self {
        Self {
            context: ContextState::Pending,
            query_type: String::new(),
            embedding_version: String::new(),
            index_version: String::new(),
            variant: String::new(),
            is_known_at_once: false,
            tags: Vec::new(),
            processed: false,
            replaced: false,
            query: None,
        }
    }
}

/// Which ratings; without conditions all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RatingFilter {
    /// Only those with this value.
    pub(crate) value: Option<SearchRating>,
    /// Only those of queries of this type.
    pub(crate) query_type: Option<String>,
    /// Only those with this tag.
    pub(crate) tag: Option<Tag>,
    /// Only those that somebody has dealt with, or only the others.
    pub(crate) processed: Option<bool>,
    /// Only those that count: not replaced, not retracted.
    pub(crate) only_counting: bool,
}
