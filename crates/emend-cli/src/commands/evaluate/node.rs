//! What a search node finds for queries.

use std::collections::HashMap;

use emend_proto::{
    common::v1::SearchTuningValue,
    search::v1::{Expansion, SearchRequest, SearchResponse, search_service_client::SearchServiceClient},
};
use tonic::{Request, transport::Channel};

use super::{judgements::Query, runs::Run};
use crate::{context::Context, failure::Result};

/// With what a node searches.
pub(super) enum With {
    /// With what was learned.
    Learned,
    /// As if nothing had been learned.
    Nothing,
    /// With what was learned, and the query expanded so.
    Expansion(Expansion),
    /// With what was learned, and tuned so.
    Tuning(SearchTuningValue),
}

/// What a node answered, by query id.
pub(super) type Answers = HashMap<String, SearchResponse>;

/// Asks a node these queries, one after the other.
pub(super) async fn ask<'q>(
    context: &Context,
    node: &SearchServiceClient<Channel>,
    queries: impl IntoIterator<Item = (&'q String, &'q Query)>,
    with: impl Fn(&str) -> With,
) -> Result<Answers> {
    let mut answers = Answers::new();
    for (id, query) in queries {
        let mut asked = SearchRequest {
            query: query.text(id).to_owned(),
            query_type: query.query_type.clone(),
            unrecorded: true,
            ..SearchRequest::default()
        };
        match with(id) {
            With::Learned => {}
            With::Nothing => asked.without_learning = true,
            With::Expansion(expansion) => asked.expansion = Some(expansion),
            With::Tuning(tuning) => asked.tuning = Some(tuning),
        }
        let mut request = Request::new(asked);
        request.set_timeout(context.global.timeout);
        answers.insert(id.clone(), node.clone().search(request).await?.into_inner());
    }
    Ok(answers)
}

/// The ids of what was found.
pub(super) fn run(answers: &Answers) -> Run {
    let ids = |of: &SearchResponse| of.results.iter().map(|result| result.id.clone()).collect();
    let entry = |(query, of): (&String, &SearchResponse)| (query.clone(), ids(of));
    answers.iter().map(entry).collect()
}
