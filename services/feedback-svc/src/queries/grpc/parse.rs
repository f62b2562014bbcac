//! Requests → arguments of the use cases: a valid value, or every violated field at once.

use std::time::Duration;

use emend_core::{
    Caller, Invalid, Namespace, QueryId, Violations,
    personal_data::mask,
    text::clean,
    violation::{bounded_prose, bounded_text},
};
use emend_proto::feedback::v1 as pb;
use emend_wire::{
    page::{self, QueryHash},
    parse,
};
use feedback_store::records::queries::{Interaction, KEPT_RESULTS, New, Query, QueryFilter, QueryResult};
use jiff::Timestamp;

/// Queries or interactions in one request.
const MAX_BATCH: usize = 100;
const MAX_QUERY_TEXT: usize = 2_000;
const MAX_ANSWER_TEXT: usize = 8_000;
const MAX_CLASSIFICATION: usize = 500;
const MAX_RESULTS: usize = 100;
const MAX_TITLE: usize = 300;
const MAX_OBJECT_ID: usize = 256;
const MAX_NAMESPACES: usize = 32;
const MAX_NAME: usize = 64;
const MAX_ACTION: usize = 100;
const MAX_SESSION: usize = 128;
const MAX_POSITION: u32 = 100_000;
/// How far in the future something may have happened, for clocks that differ.
const AHEAD: Duration = Duration::from_mins(5);
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 500;

pub(in crate::queries) fn queries(
    caller: &Caller,
    request: pb::RecordQueryRequest,
    now: Timestamp,
) -> Result<Vec<New<Query>>, Violations> {
    let one = |message| query(message, now);
    items(caller, &request.namespace, "queries", request.queries, one)
}

pub(in crate::queries) fn interactions(
    caller: &Caller,
    request: &pb::RecordInteractionRequest,
    now: Timestamp,
) -> Result<Vec<New<Interaction>>, Violations> {
    let one = |message: &pb::QueryInteraction| interaction(message, now);
    items(
        caller,
        &request.namespace,
        "interactions",
        &request.interactions,
        one,
    )
}

/// What is recorded, with when it happened.
type At<T> = (T, Option<Timestamp>);

fn items<M, T>(
    caller: &Caller,
    namespace: &str,
    field: &str,
    messages: impl IntoIterator<Item = M, IntoIter: ExactSizeIterator>,
    one: impl Fn(M) -> Result<At<T>, Violations>,
) -> Result<Vec<New<T>>, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(namespace));
    let messages = messages.into_iter();
    let count = messages.len();
    if count == 0 || count > MAX_BATCH {
        violations.add(field, format!("must have 1 to {MAX_BATCH} items, has {count}"));
    }
    let mut parsed = Vec::with_capacity(count.min(MAX_BATCH));
    for (index, message) in messages.take(MAX_BATCH).enumerate() {
        parsed.extend(violations.part(&format!("{field}[{index}]"), one(message)));
    }
    let new = |namespace: Namespace| {
        let new = |(item, at)| New {
            namespace: namespace.clone(),
            caller: caller.clone(),
            item,
            at,
            waited: Duration::ZERO,
        };
        parsed.into_iter().map(new).collect()
    };
    let parsed = namespace.map(new);
    violations.finish(parsed)
}

/// A time that has come, give or take what clocks differ.
fn past_time(message: Option<&prost_types::Timestamp>, now: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    let Some(message) = message else {
        return Ok(None);
    };
    let at = parse::timestamp(message)?;
    if at > now.saturating_add(AHEAD).unwrap_or(Timestamp::MAX) {
        return Err(Invalid::new("must be at most 5 minutes in the future"));
    }
    Ok(Some(at))
}

fn masked(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    Ok(mask(&bounded_prose(raw, min, max)?).into_owned())
}

fn query(message: pb::Query, now: Timestamp) -> Result<At<Query>, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("query_id", QueryId::parse(&message.query_id));
    let query_text = violations.check("query_text", masked(&message.query_text, 1, MAX_QUERY_TEXT));
    let answer_text = violations.check("answer_text", masked(&message.answer_text, 0, MAX_ANSWER_TEXT));
    let classification = violations.check(
        "classification",
        masked(&message.classification, 0, MAX_CLASSIFICATION),
    );
    let mut name = |field: &str, raw: &str, max| violations.check(field, bounded_text(raw, 0, max));
    let query_type = name("query_type", &message.query_type, MAX_NAME);
    let embedding_version = name("embedding_version", &message.embedding_version, MAX_NAME);
    let index_version = name("index_version", &message.index_version, MAX_NAME);
    let client_version = name("client_version", &message.client_version, MAX_NAME);
    let build = name("build", &message.build, MAX_NAME);
    let variant = name("variant", &message.variant, MAX_NAME);
    let session_id = name("session_id", &message.session_id, MAX_SESSION);
    let namespaces = violations.part("", namespaces(&message.namespaces));
    let found = message.top_results.len();
    let top_results = violations.part("", results(message.top_results));
    if message.min_score.is_some_and(|score| !score.is_finite()) {
        violations.add("min_score", "must be a finite number");
    }
    let hit_count = violations.check("hit_count", hit_count(message.hit_count, found));
    let at = violations.check("searched_at", past_time(message.searched_at.as_ref(), now));
    let parsed = (|| {
        let query = Query {
            id: id?,
            query_text: query_text?,
            answer_text: answer_text?,
            query_type: query_type?,
            classification: classification?,
            top_results: top_results?,
            namespaces: namespaces?,
            min_score: message.min_score,
            embedding_version: embedding_version?,
            index_version: index_version?,
            client_version: client_version?,
            build: build?,
            variant: variant?,
            session_id: session_id?,
            hit_count: hit_count?,
            named_results: None,
        };
        Some((query, at?))
    })();
    violations.finish(parsed)
}

/// How many results there were, if that is said: it is not known of a query that names neither their number nor any.
fn hit_count(stated: Option<i32>, results: usize) -> Result<Option<u32>, Invalid> {
    let results = u32::try_from(results).unwrap_or(u32::MAX);
    match stated.map(u32::try_from) {
        None => Ok((results > 0).then_some(results)),
        Some(Ok(stated)) if stated >= results => Ok(Some(stated)),
        Some(_) => Err(Invalid::new(format!(
            "must be at least the number of top_results, {results}"
        ))),
    }
}

fn namespaces(raw: &[String]) -> Result<Vec<String>, Violations> {
    let mut violations = Violations::new();
    let count = raw.len();
    if count > MAX_NAMESPACES {
        violations.add(
            "namespaces",
            format!("must be at most {MAX_NAMESPACES}, has {count}"),
        );
    }
    let parsed = raw.iter().take(MAX_NAMESPACES).enumerate();
    let parsed = parsed
        .filter_map(|(index, name)| {
            violations.check(&format!("namespaces[{index}]"), bounded_text(name, 1, MAX_NAME))
        })
        .collect();
    violations.finish(Some(parsed))
}

/// The best of the results, best first.
fn results(messages: Vec<pb::QueryResult>) -> Result<Vec<QueryResult>, Violations> {
    let mut violations = Violations::new();
    let count = messages.len();
    if count > MAX_RESULTS {
        violations.add(
            "top_results",
            format!("must be at most {MAX_RESULTS}, has {count}"),
        );
    }
    let mut parsed = Vec::with_capacity(count.min(MAX_RESULTS));
    for (index, message) in messages.into_iter().take(MAX_RESULTS).enumerate() {
        let field = |name: &str| format!("top_results[{index}].{name}");
        if !message.score.is_finite() {
            violations.add(field("score"), "must be a finite number");
        }
        let object_id = bounded_text(&message.object_id, 0, MAX_OBJECT_ID);
        if let Some(object_id) = violations.check(&field("object_id"), object_id) {
            parsed.push(QueryResult {
                title: title(&message.title),
                score: message.score,
                object_id,
            });
        }
    }
    // Equal ones stay in the order in which the backend showed them.
    parsed.sort_by(|one, other| other.score.total_cmp(&one.score));
    parsed.truncate(KEPT_RESULTS);
    violations.finish(Some(parsed))
}

/// A document's title, whatever is in it: a backend can't change it.
fn title(raw: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let title: String = raw.trim().chars().map(shown).take(MAX_TITLE).collect();
    clean(&title).into_owned()
}

fn interaction(message: &pb::QueryInteraction, now: Timestamp) -> Result<At<Interaction>, Violations> {
    let mut violations = Violations::new();
    let query_id = violations.check("query_id", QueryId::parse(&message.query_id));
    let object_id = violations.check("object_id", bounded_text(&message.object_id, 1, MAX_OBJECT_ID));
    let action = violations.check("action", bounded_text(&message.action, 1, MAX_ACTION));
    let position = u32::try_from(message.position)
        .ok()
        .filter(|position| *position <= MAX_POSITION)
        .ok_or_else(|| Invalid::new(format!("must be 0 to {MAX_POSITION}, is {}", message.position)));
    let position = violations.check("position", position);
    let at = violations.check("acted_at", past_time(message.acted_at.as_ref(), now));
    let parsed = (|| {
        let interaction = Interaction {
            query_id: query_id?,
            object_id: object_id?,
            action: action?.to_lowercase(),
            position: position?,
        };
        Some((interaction, at?))
    })();
    violations.finish(parsed)
}

/// What is listed.
pub(super) enum Listed {
    /// The query with this id.
    One(Namespace, QueryId),
    /// All that these conditions hold of.
    All(QueryFilter),
}

/// Identifies a list of queries, whatever the page.
pub(super) fn list_hash(request: &pb::ListQueriesRequest) -> QueryHash {
    let query = pb::ListQueriesRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListQueries", &query)
}

pub(super) fn list(request: &pb::ListQueriesRequest, hash: QueryHash) -> Result<Listed, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let limit = violations.check(
        "page_size",
        parse::page_size(request.page_size, DEFAULT_PAGE, MAX_PAGE),
    );
    let after = violations.check("page_token", page::number_position(hash, &request.page_token));
    let query_type = violations.check("query_type", bounded_text(&request.query_type, 0, MAX_NAME));
    let period = parse::period(
        "searched",
        request.searched_from.as_ref(),
        request.searched_before.as_ref(),
    );
    let period = violations.part("", period);
    if !request.query_id.is_empty() {
        let id = violations.check("query_id", QueryId::parse(&request.query_id));
        let one = namespace
            .zip(id)
            .map(|(namespace, id)| Listed::One(namespace, id));
        return violations.finish(one);
    }
    let parsed = (|| {
        let (from, before) = period?;
        Some(Listed::All(QueryFilter {
            namespace: namespace?,
            query_type: query_type.filter(|name| !name.is_empty()),
            only_without_hits: request.only_without_hits,
            from,
            before,
            after: after?,
            limit: limit?,
        }))
    })();
    violations.finish(parsed)
}
