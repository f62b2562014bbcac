//! Documents of OpenSearch UBI as they come: queries and events over HTTP, at the addresses where raters are served.
//!
//! A body is one document, a list of them, or JSON lines, also as the bulk API takes them. What is posted, in however many bodies, counts as
//! what is in files that are imported: several documents of one query are one query. What can't be read is named with its line, and the
//! rest is recorded.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    extract::{DefaultBodyLimit, State},
    response::{IntoResponse, Response},
    routing::post,
};
use emend_base::SharedClock;
use emend_core::violation::FieldViolation;
use emend_proto::feedback::v1 as pb;
use emend_wire::ubi::{Document, Index, Object, Reader, Searches};
use feedback_store::records::documents::NamedResults;
use jiff::Timestamp;
use serde_json::{Value, json};
use tonic::codegen::http::{HeaderMap, StatusCode};

use crate::{
    metrics::Dropped,
    queries::{
        grpc::parse,
        record::{Record, Recorder},
    },
    ratings::http::{self, Binding, Listener},
};

/// The longest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// The most documents in one body.
const MOST: usize = 1_000;
/// When to send again what found no room.
const AGAIN: Duration = Duration::from_secs(1);

/// Where documents are recorded.
#[derive(Debug, Clone)]
pub(crate) struct Taking {
    pub(crate) recorder: Recorder,
    pub(crate) clock: SharedClock,
}

/// The addresses of documents, beside those of ratings.
pub(crate) fn routes(listener: &Arc<Listener>, taking: &Taking) -> Router {
    let of = |index: Option<Index>| {
        let taking = taking.clone();
        let take = async move |State(listener): State<Arc<Listener>>,
                               Extension(peer): Extension<SocketAddr>,
                               headers: HeaderMap,
                               body: Body| {
            let client = listener.client_of(peer, &headers);
            let now = taking.clock.now();
            let answer = async |body: &[u8]| {
                let taken = Taken::read(body, index, &listener.binding, now);
                let (dropped, reason) = taking.recorder.record(&client, taken.records.into_iter());
                taken.counts.answer(dropped, reason)
            };
            listener.take(&headers, body, MAX_BODY, answer).await
        };
        post(take).options(http::preflight)
    };
    Router::new()
        .route("/v1/ubi", of(None))
        .route("/v1/ubi/queries", of(Some(Index::Queries)))
        .route("/v1/ubi/events", of(Some(Index::Events)))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::clone(listener))
}

/// What a body holds.
struct Taken {
    /// Queries come before what was done with their results.
    records: Vec<Record>,
    counts: Counts,
}

/// What became of the documents of a body.
#[derive(Debug, Default)]
struct Counts {
    queries: usize,
    interactions: usize,
    /// Queries with an empty text.
    browsing: usize,
    /// Events about no result.
    passed_over: usize,
    /// What can't be taken, by its line.
    errors: Vec<(u64, FieldViolation)>,
}

impl Taken {
    fn read(body: &[u8], index: Option<Index>, binding: &Binding, now: Timestamp) -> Self {
        let mut counts = Counts::default();
        let mut searches = Searches::default();
        let documents = documents(body, index);
        if documents.is_empty() {
            let expected = "is missing: the body must be a document, a JSON list of documents, or JSON lines";
            counts.errors.push((1, wrong(expected.to_owned())));
        }
        for (line, document) in documents {
            match document {
                Ok(Document::Query(query)) => searches.query(line, *query),
                Ok(Document::Interaction(interaction)) => searches.interaction(line, interaction),
                Ok(Document::Browsing) => counts.browsing += 1,
                Ok(Document::Other) => counts.passed_over += 1,
                Err(error) => counts.errors.push((line, error)),
            }
        }
        let (queries, interactions) = searches.into_rows();
        let mut records = Vec::with_capacity(queries.len() + interactions.len());
        for (line, query) in queries {
            let results = query.top_results.iter();
            let named = NamedResults::of(results.map(|result| result.object_id.as_str()));
            let request = pb::RecordQueryRequest {
                namespace: binding.namespace.to_string(),
                queries: vec![query],
            };
            match parse::queries(&binding.caller, request, now) {
                Ok(new) => records.extend(new.into_iter().map(|mut new| {
                    new.item.named_results = Some(named.clone());
                    Record::Query(Box::new(new))
                })),
                Err(violations) => counts.refused(line, violations),
            }
        }
        counts.queries = records.len();
        for (line, interaction) in interactions {
            let request = pb::RecordInteractionRequest {
                namespace: binding.namespace.to_string(),
                interactions: vec![interaction],
            };
            match parse::interactions(&binding.caller, &request, now) {
                Ok(new) => records.extend(new.into_iter().map(|new| Record::Interaction(Box::new(new)))),
                Err(violations) => counts.refused(line, violations),
            }
        }
        counts.interactions = records.len() - counts.queries;
        counts.errors.sort_by_key(|(line, _)| *line);
        Self { records, counts }
    }
}

/// The documents of a body with their lines; of a list, with their places in it, the first being 1.
fn documents(body: &[u8], index: Option<Index>) -> Vec<(u64, Result<Document, FieldViolation>)> {
    let objects: Vec<_> = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(items)) => (1..).zip(items.into_iter().map(object)).collect(),
        Ok(one) => vec![(1, object(one))],
        Err(_) => {
            let lines = (1..).zip(body.split(|byte| *byte == b'\n'));
            let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
            let read = |line| {
                serde_json::from_slice(line).map_err(|error| wrong(format!("is not a JSON object: {error}")))
            };
            lines.map(|(number, line)| (number, read(line))).collect()
        }
    };
    let mut reader = Reader::of(index);
    let mut found = Vec::new();
    for (line, object) in objects {
        if found.len() == MOST {
            found.push((
                line,
                Err(wrong(format!("must be one of at most {MOST} documents"))),
            ));
            break;
        }
        if let Some(document) = reader.next(object) {
            found.push((line, document));
        }
    }
    found
}

fn object(value: Value) -> Result<Object, FieldViolation> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(wrong("is not a JSON object".to_owned())),
    }
}

fn wrong(description: String) -> FieldViolation {
    FieldViolation {
        field: "document".to_owned(),
        description,
    }
}

/// The names that UBI has for what a query or an interaction has in the contract.
const NAMES: [(&str, &str); 7] = [
    ("query_text", "user_query"),
    ("session_id", "client_id"),
    ("top_results", "query_response_hit_ids"),
    ("searched_at", "timestamp"),
    ("acted_at", "timestamp"),
    ("action", "action_name"),
    ("object_id", "event_attributes.object.object_id"),
];

impl Counts {
    fn refused(&mut self, line: u64, violations: emend_core::Violations) {
        for FieldViolation { field, description } in violations.into_vec() {
            // What stands before it names the only item of its request.
            let own = field.split_once("].").map_or(&*field, |(_, own)| own);
            let stem = own.split(['[', '.']).next().unwrap_or(own);
            let name = NAMES.iter().find(|(known, _)| *known == stem);
            let field = name.map_or(own, |(_, name)| name).to_owned();
            self.errors.push((line, FieldViolation { field, description }));
        }
    }

    fn answer(self, dropped: usize, reason: Option<Dropped>) -> Response {
        let is_empty = self.queries + self.interactions + self.browsing + self.passed_over == 0;
        let status = match reason {
            Some(Dropped::QueueFull) => StatusCode::TOO_MANY_REQUESTS,
            Some(Dropped::Stopping | Dropped::Database | Dropped::Refused) => StatusCode::SERVICE_UNAVAILABLE,
            None if is_empty && !self.errors.is_empty() => StatusCode::BAD_REQUEST,
            None => StatusCode::OK,
        };
        let errors: Vec<_> = self
            .errors
            .iter()
            .map(
                |(line, error)| json!({"line": line, "field": error.field, "description": error.description}),
            )
            .collect();
        let body = json!({
            "queries": self.queries,
            "interactions": self.interactions,
            "browsing": self.browsing,
            "passed_over": self.passed_over,
            "dropped": dropped,
            "errors": errors,
        });
        let mut answer = (status, http::JSON, body.to_string()).into_response();
        if reason.is_some() {
            // Sent again, what was recorded stays as it is.
            http::retry_after(&mut answer, AGAIN);
        }
        answer
    }
}
