//! What a search node finds for queries.

use std::collections::HashMap;

use emend_proto::{
    common::v1::SearchTuningValue,
    search::v1::{Expansion, SearchRequest, SearchResponse, search_service_client::SearchServiceClient},
};
use tonic::Request;

use crate::{
    context::{Connection, Context},
    failure::{Failure, Result},
};
use emend_lab::evaluate::{Query, runs::Run};

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

/// A search node that is asked.
pub(super) struct Node<'c> {
    context: &'c Context,
    address: &'c str,
    client: SearchServiceClient<Connection>,
    must_serve: Option<String>,
}

impl<'c> Node<'c> {
    /// A node, whichever namespace it serves.
    pub(super) async fn connect(context: &'c Context, address: &'c str) -> Result<Self> {
        Ok(Self {
            context,
            address,
            client: context.search_node(address).await?,
            must_serve: None,
        })
    }

    /// The same, whose answers count only if it serves the namespace of the context, of which there is more to compare with them.
    #[must_use]
    pub(super) fn of_namespace(mut self) -> Self {
        self.must_serve = Some(self.context.namespace());
        self
    }

    /// Asks these queries, one after the other.
    pub(super) async fn ask<'q>(
        &self,
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
            request.set_timeout(self.context.timeout());
            let answer = self.client.clone().search(request).await?.into_inner();
            self.check(&answer.namespace)?;
            answers.insert(id.clone(), answer);
        }
        Ok(answers)
    }

    /// Refuses the answers of another namespace's node. One that does not say what it serves is believed.
    fn check(&self, serves: &str) -> Result {
        match &self.must_serve {
            Some(namespace) if !serves.is_empty() && serves != namespace => Err(Failure::usage(format!(
                "the search node at {} serves the namespace {serves:?}, not {namespace:?}: pass --namespace {serves}",
                self.address
            ))),
            _ => Ok(()),
        }
    }
}

/// The namespace that a node said it serves; empty: it did not say, or was not asked.
pub(super) fn namespace(answers: &Answers) -> &str {
    answers.values().next().map_or("", |answer| &answer.namespace)
}

/// The ids of what was found.
pub(super) fn run(answers: &Answers) -> Run {
    let ids = |answer: &SearchResponse| answer.results.iter().map(|result| result.id.clone()).collect();
    let entry = |(query, answer): (&String, &SearchResponse)| (query.clone(), ids(answer));
    answers.iter().map(entry).collect()
}
