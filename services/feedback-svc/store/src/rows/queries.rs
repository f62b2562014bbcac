//! Rows of queries, parsed.

use emend_core::QueryId;
use emend_proto::feedback::v1 as pb;
use emend_store::CorruptRow;
use jiff::Timestamp;
use prost::Message as _;
use sqlx_macros::FromRow;

use crate::records::{
    documents::NamedResults,
    mining::SessionQuery,
    queries::{Interaction, Query, QueryResult, StoredInteraction, StoredQuery, result_message},
};

/// What is neither looked for nor counted, as it is stored: an encoded [`pb::Query`] of these fields alone.
pub(crate) fn details(query: &Query) -> Vec<u8> {
    pb::Query {
        top_results: query.top_results.iter().map(result_message).collect(),
        namespaces: query.namespaces.clone(),
        min_score: query.min_score,
        client_version: query.client_version.clone(),
        build: query.build.clone(),
        ..pb::Query::default()
    }
    .encode_to_vec()
}

/// A query with its personal parts.
#[derive(Debug, FromRow)]
pub(crate) struct QueryRow {
    number: i64,
    query_id: String,
    query_type: String,
    embedding_version: String,
    index_version: String,
    variant: String,
    hit_count: Option<i64>,
    details: Vec<u8>,
    searched_at: i64,
    recorded_at: i64,
    named_results: Option<Vec<u8>>,
    session_id: String,
    query_text: String,
    answer_text: String,
    classification: String,
}

impl QueryRow {
    pub(crate) const COLUMNS: &str = "q.number, q.query_id, q.query_type, q.embedding_version, q.index_version, q.variant, \
         q.hit_count, q.details, q.searched_at, q.recorded_at, q.named_results, p.session_id, p.query_text, p.answer_text, p.classification";
}

fn time(
    table: &'static str,
    column: &'static str,
    number: i64,
    micros: i64,
) -> Result<Timestamp, CorruptRow> {
    Timestamp::from_microsecond(micros).map_err(|error| CorruptRow::new(table, column, number, error))
}

fn query_id(table: &'static str, number: i64, raw: &str) -> Result<QueryId, CorruptRow> {
    QueryId::parse(raw).map_err(|invalid| CorruptRow::new(table, "query_id", number, invalid))
}

/// How many results a query found, if that is known.
fn hit_count(number: i64, stored: Option<i64>) -> Result<Option<u32>, CorruptRow> {
    let parsed = stored.map(u32::try_from).transpose();
    parsed.map_err(|error| CorruptRow::new("queries", "hit_count", number, error))
}

impl TryFrom<QueryRow> for StoredQuery {
    type Error = CorruptRow;

    fn try_from(row: QueryRow) -> Result<Self, CorruptRow> {
        let number = row.number;
        let details = pb::Query::decode(row.details.as_slice())
            .map_err(|error| CorruptRow::new("queries", "details", number, error))?;
        let hit_count = hit_count(number, row.hit_count)?;
        let named_results = row.named_results.as_deref().map(NamedResults::parse).transpose();
        let named_results =
            named_results.map_err(|invalid| CorruptRow::new("queries", "named_results", number, invalid))?;
        let results = details.top_results.into_iter().map(|result| QueryResult {
            title: result.title,
            score: result.score,
            object_id: result.object_id,
        });
        Ok(Self {
            number,
            searched_at: time("queries", "searched_at", number, row.searched_at)?,
            recorded_at: time("queries", "recorded_at", number, row.recorded_at)?,
            query: Query {
                id: query_id("queries", number, &row.query_id)?,
                query_text: row.query_text,
                answer_text: row.answer_text,
                query_type: row.query_type,
                classification: row.classification,
                top_results: results.collect(),
                namespaces: details.namespaces,
                min_score: details.min_score,
                embedding_version: row.embedding_version,
                index_version: row.index_version,
                client_version: details.client_version,
                build: details.build,
                variant: row.variant,
                session_id: row.session_id,
                hit_count,
                named_results,
            },
            interactions: Vec::new(),
        })
    }
}

/// An interaction.
#[derive(Debug, FromRow)]
pub(crate) struct InteractionRow {
    number: i64,
    query_id: String,
    action: String,
    object_id: String,
    position: i64,
    acted_at: i64,
}

impl TryFrom<InteractionRow> for StoredInteraction {
    type Error = CorruptRow;

    fn try_from(row: InteractionRow) -> Result<Self, CorruptRow> {
        const TABLE: &str = "query_interactions";
        Ok(Self {
            acted_at: time(TABLE, "acted_at", row.number, row.acted_at)?,
            interaction: Interaction {
                query_id: query_id(TABLE, row.number, &row.query_id)?,
                object_id: row.object_id,
                action: row.action,
                position: u32::try_from(row.position)
                    .map_err(|error| CorruptRow::new(TABLE, "position", row.number, error))?,
            },
        })
    }
}

/// A query of a session.
#[derive(Debug, FromRow)]
pub(crate) struct SessionRow {
    number: i64,
    session_id: String,
    query_text: String,
    hit_count: Option<i64>,
    searched_at: i64,
    clicked_at: Option<i64>,
}

impl TryFrom<SessionRow> for SessionQuery {
    type Error = CorruptRow;

    fn try_from(row: SessionRow) -> Result<Self, CorruptRow> {
        let clicked_at = row
            .clicked_at
            .map(|at| time("query_interactions", "acted_at", row.number, at));
        Ok(Self {
            session_id: row.session_id,
            text: row.query_text,
            at: time("queries", "searched_at", row.number, row.searched_at)?,
            found_nothing: hit_count(row.number, row.hit_count)? == Some(0),
            clicked_at: clicked_at.transpose()?,
        })
    }
}
