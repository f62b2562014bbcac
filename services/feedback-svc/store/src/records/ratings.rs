//! What is known of ratings of search answers beside what was said.

use bytes::Bytes;
use emend_core::search::SearchRating;

use crate::records::labels::Tag;

/// Whether the query that a rating is about is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextState {
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
    pub const fn number(self) -> i64 {
        match self {
            Self::Pending => 1,
            Self::Complete => 2,
            Self::Missing => 3,
        }
    }

    /// The state with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// What is known about a rating beside what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingState {
    /// Whether its query is known.
    pub context: ContextState,
    /// The type of its query; empty while that is not known, like the other names. They outlive an erasure.
    pub query_type: String,
    /// Which model made the embeddings.
    pub embedding_version: String,
    /// Which index was searched.
    pub index_version: String,
    /// Which variant of an experiment the user saw.
    pub variant: String,
    /// Whether its query was recorded before it.
    pub is_known_at_once: bool,
    /// What somebody called it, in alphabetical order.
    pub tags: Vec<Tag>,
    /// Whether somebody has dealt with it.
    pub processed: bool,
    /// Whether a newer rating counts instead.
    pub replaced: bool,
    /// Its query, if it is known and not erased.
    pub query: Option<EncodedQuery>,
}

/// A query as it was recorded, with its clicks: an encoded [`emend_proto::feedback::v1::Query`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedQuery(pub Bytes);

impl RatingState {
    /// That of a new rating whose query is not known yet.
    pub fn pending() -> Self {
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
pub struct RatingFilter {
    /// Only those with this value.
    pub value: Option<SearchRating>,
    /// Only those of queries of this type.
    pub query_type: Option<String>,
    /// Only those with this tag.
    pub tag: Option<Tag>,
    /// Only those that somebody has dealt with, or only the others.
    pub processed: Option<bool>,
    /// Only those of queries with this text, whatever its case, width and spaces.
    pub query_text: Option<String>,
    /// Only those that count: not replaced, not retracted.
    pub only_counting: bool,
}
