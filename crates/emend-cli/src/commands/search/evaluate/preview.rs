//! What previews have in common: which queries are looked at, and who is asked.

use std::{collections::HashSet, path::PathBuf};

use emend_core::search::Judged;
use emend_proto::feedback::v1::{ListQueriesRequest, Query as RecordedQuery};

use emend_lab::evaluate::{Queries, Query};

use super::judgements::Format;
use crate::{context::Context, failure::Result};

/// Which queries are looked at, and who is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// Judged queries, instead of recorded ones
    #[arg(long, value_name = "FILE")]
    pub(super) judgements: Option<PathBuf>,
    /// How the judgements are written
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    pub(super) format: Format,
    /// Look at so many recorded queries; 0 for all
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1_000,
        conflicts_with = "judgements"
    )]
    pub(super) limit: usize,
    /// A search node to ask what the queries find now and then
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) node: Option<String>,
    /// How many results of a query count
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) k: u16,
}

/// What backends recorded, of equal texts and types the newest; of one type, or of all if it is empty.
pub(super) async fn recorded(
    context: &Context,
    query_type: &str,
    limit: usize,
) -> Result<Vec<RecordedQuery>> {
    let request = ListQueriesRequest {
        namespace: context.namespace(),
        query_type: query_type.to_owned(),
        ..ListQueriesRequest::default()
    };
    let (mut listed, _) = context.list(&request, limit).await?;
    let mut seen = HashSet::new();
    // The texts of some are erased.
    listed.retain(|query| {
        !query.query_text.is_empty() && seen.insert((query.query_text.clone(), query.query_type.clone()))
    });
    Ok(listed)
}

/// The same, as queries that nobody judged.
pub(super) fn unjudged(recorded: &[RecordedQuery]) -> Queries {
    let query = |query: &RecordedQuery| {
        let unjudged = Query {
            text: query.query_text.clone(),
            query_type: query.query_type.clone(),
            judged: Judged::new([]),
        };
        (query.query_id.clone(), unjudged)
    };
    recorded.iter().map(query).collect()
}
