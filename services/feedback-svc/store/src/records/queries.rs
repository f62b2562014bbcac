//! Recorded queries and interactions, and what is counted of them.

use std::time::Duration;

use emend_core::{Caller, Namespace, QueryId, normalize::normalize, search::is_click};
use emend_proto::feedback::v1 as pb;
use emend_wire::render::timestamp;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use super::documents::NamedResults;

/// Of the results of a query this many are kept: those with the highest scores.
pub const KEPT_RESULTS: usize = 5;

/// How long a query is kept unless the settings say otherwise.
pub const DEFAULT_RETENTION: Duration = Duration::from_hours(24);

/// How many queries of a namespace are kept unless the settings say otherwise.
pub const DEFAULT_MAX_QUERIES: u32 = 100_000;

/// What tells texts of queries apart, whatever their case, width and spaces; none of an empty one.
pub fn query_key(text: &str) -> Option<[u8; 16]> {
    let normal = normalize(text);
    (!normal.is_empty()).then(|| xxh3_128(normal.as_bytes()).to_be_bytes())
}

/// How much is kept of what outlives the queries of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct KeptCounts {
    /// Words. Beyond it the rarest are pruned, down to nine tenths.
    pub words: u32,
    /// Days.
    pub days: u32,
    /// Rows of days, types, versions and variants. Beyond it the oldest and rarest lose their names; their queries count on.
    pub rows: u32,
}

impl KeptCounts {
    /// What is kept by every service.
    pub const SET: Self = Self {
        words: 100_000,
        days: 2 * 366,
        rows: 100_000,
    };
}

/// What became of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Words that were pruned.
    pub words: u64,
    /// Rows of days that were forgotten, or lost their names.
    pub rows: u64,
}

/// A search as its backend recorded it. A text that is not there is empty; personal data in texts is masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The backend's id of it.
    pub id: QueryId,
    /// What was searched for; empty only once it is erased.
    pub query_text: String,
    /// What the user was answered beside the results.
    pub answer_text: String,
    /// How it was searched.
    pub query_type: String,
    /// What a classifier made of it.
    pub classification: String,
    /// The best results, best first, at most [`KEPT_RESULTS`].
    pub top_results: Vec<QueryResult>,
    /// The parts of the index that were searched.
    pub namespaces: Vec<String>,
    /// The score that a result needed.
    pub min_score: Option<f64>,
    /// Which model made the embeddings.
    pub embedding_version: String,
    /// Which index was searched.
    pub index_version: String,
    /// The version of the user's client.
    pub client_version: String,
    /// The build of the backend.
    pub build: String,
    /// Which variant of an experiment the user saw.
    pub variant: String,
    /// The user's session.
    pub session_id: String,
    /// How many results there were; none: not known.
    pub hit_count: Option<u32>,
    /// The results that documents of the query named; none: it was recorded whole, and no document adds to it.
    pub named_results: Option<NamedResults>,
}

/// One result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryResult {
    /// Its title.
    pub title: String,
    /// Its score; finite.
    pub score: f64,
    /// Its id in the index.
    pub object_id: String,
}

/// What a user did with a result. Equal ones of one query count once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interaction {
    /// The query whose result it was.
    pub query_id: QueryId,
    /// The result's id in the index.
    pub object_id: String,
    /// What was done, in lower case.
    pub action: String,
    /// The place of the result, the first being 1; 0: not known.
    pub position: u32,
}

impl Interaction {
    /// Whether it is a click.
    pub fn is_click(&self) -> bool {
        is_click(&self.action)
    }
}

/// A query or an interaction to store.
#[derive(Debug, Clone, PartialEq)]
pub struct New<T> {
    /// The search application.
    pub namespace: Namespace,
    /// The authenticated client that recorded it.
    pub caller: Caller,
    /// What is recorded.
    pub item: T,
    /// When it happened; none: when it was received.
    pub at: Option<Timestamp>,
    /// How long ago it was received.
    pub waited: Duration,
}

/// A stored query.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredQuery {
    /// Grows from query to query of a database, with gaps.
    pub number: i64,
    /// The query.
    pub query: Query,
    /// When it was searched.
    pub searched_at: Timestamp,
    /// When it was stored, by the database's clock.
    pub recorded_at: Timestamp,
    /// What users did with its results, oldest first.
    pub interactions: Vec<StoredInteraction>,
}

/// A stored interaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInteraction {
    /// The interaction.
    pub interaction: Interaction,
    /// When it was done.
    pub acted_at: Timestamp,
}

/// Which queries of a namespace to list, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Of this type.
    pub query_type: Option<String>,
    /// Those that are known to have found nothing.
    pub only_without_hits: bool,
    /// Searched at this time or later.
    pub from: Option<Timestamp>,
    /// Searched before this time.
    pub before: Option<Timestamp>,
    /// Those before the one with this number.
    pub after: Option<i64>,
    /// At most this many.
    pub limit: u32,
}

/// The message of a stored query.
pub fn query_message(stored: StoredQuery) -> pb::Query {
    let query = stored.query;
    pb::Query {
        query_id: query.id.to_string(),
        query_text: query.query_text,
        answer_text: query.answer_text,
        query_type: query.query_type,
        classification: query.classification,
        top_results: query.top_results.iter().map(result_message).collect(),
        namespaces: query.namespaces,
        min_score: query.min_score,
        embedding_version: query.embedding_version,
        index_version: query.index_version,
        client_version: query.client_version,
        build: query.build,
        variant: query.variant,
        session_id: query.session_id,
        hit_count: query
            .hit_count
            .map(|hits| i32::try_from(hits).unwrap_or(i32::MAX)),
        searched_at: Some(timestamp(stored.searched_at)),
        recorded_at: Some(timestamp(stored.recorded_at)),
        interactions: stored.interactions.into_iter().map(interaction_message).collect(),
    }
}

/// That of a stored interaction.
pub fn interaction_message(stored: StoredInteraction) -> pb::QueryInteraction {
    let interaction = stored.interaction;
    pb::QueryInteraction {
        query_id: interaction.query_id.to_string(),
        object_id: interaction.object_id,
        action: interaction.action,
        position: i32::try_from(interaction.position).unwrap_or(i32::MAX),
        acted_at: Some(timestamp(stored.acted_at)),
    }
}

/// A result's message.
pub fn result_message(result: &QueryResult) -> pb::QueryResult {
    pb::QueryResult {
        title: result.title.clone(),
        score: result.score,
        object_id: result.object_id.clone(),
    }
}
