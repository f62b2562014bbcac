//! Documents of `OpenSearch`'s User Behavior Insights, up to version 1.3.0 of its schemas: those of its indexes `ubi_queries` and `ubi_events`, as they are
//! (also with their `_source` as a search answers them), or as the bulk API takes them, each after its action.
//!
//! Which it is says the index, if it is named; else a document with an `action_name` is an event, another one a query. Events
//! that name no query or no object tell nothing of a result, and a query with an empty text is browsing: both are passed over.
//! Several documents may be of one query ([`Searches`]). A query that names no id gets one of what it says, so that it is the same query
//! whoever reads it, and however often.

mod searches;

use emend_core::violation::FieldViolation;
use emend_proto::feedback::v1::{Query, QueryInteraction, QueryResult};
use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

pub use searches::{Placed, Searches};

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A query.
    Query(Box<Query>),
    /// What was done with one of its results.
    Interaction(QueryInteraction),
    /// A query with an empty text: somebody looked around, and searched for nothing.
    Browsing,
    /// An event that is about no result.
    Other,
}

/// What an index holds, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Queries.
    Queries,
    /// Events.
    Events,
}

impl Index {
    /// That of this name, as `ubi_queries` and `ubi_events`; none: the name does not tell.
    fn named(name: &Value) -> Option<Self> {
        let name = name.as_str()?;
        match (name.contains("queries"), name.contains("events")) {
            (true, false) => Some(Self::Queries),
            (false, true) => Some(Self::Events),
            _ => None,
        }
    }
}

/// A line of the bulk API that says what is to be done with the document in the next line.
#[derive(Debug, Clone, Copy, Default)]
struct Action {
    /// The index that it names.
    index: Option<Index>,
    /// Whether the document stands below `doc`.
    is_update: bool,
}

impl Action {
    /// Reads a line, if it is one of an action.
    fn of(object: &Object) -> Option<Self> {
        let mut fields = object.iter();
        let (Some((name, Value::Object(what))), None) = (fields.next(), fields.next()) else {
            return None;
        };
        match name.as_str() {
            "index" | "create" | "update" => Some(Self {
                index: what.get("_index").and_then(Index::named),
                is_update: name == "update",
            }),
            // No document follows.
            "delete" => Some(Self::default()),
            _ => None,
        }
    }
}

/// The most ids of results that are taken from a query; all are counted.
pub const MAX_RESULTS: usize = 100;

/// Reads documents one after another, some of which may stand behind a line of the bulk API that says what is to be done with them.
#[derive(Debug, Default)]
pub struct Reader {
    index: Option<Index>,
    action: Action,
}

impl Reader {
    /// One whose documents are of this index unless they say another themselves.
    pub fn of(index: Option<Index>) -> Self {
        Self {
            index,
            action: Action::default(),
        }
    }

    /// Reads the next line, which may be unreadable. None: it says what is to be done with the document after it.
    pub fn next<E: From<FieldViolation>>(&mut self, line: Result<Object, E>) -> Option<Result<Document, E>> {
        let mut action = std::mem::take(&mut self.action);
        let object = match line {
            Ok(object) => object,
            Err(error) => return Some(Err(error)),
        };
        if let Some(next) = Action::of(&object) {
            self.action = next;
            return None;
        }
        action.index = action.index.or(self.index);
        Some(acted_on(&object, action).map_err(E::from))
    }
}

fn wrong(field: &str, description: impl Into<String>) -> FieldViolation {
    FieldViolation {
        field: field.to_owned(),
        description: description.into(),
    }
}

/// A document as it is read.
pub type Object = Map<String, Value>;

/// A document that no action stands before.
pub fn document(object: &Object) -> Result<Document, FieldViolation> {
    acted_on(object, Action::default())
}

fn acted_on(object: &Object, action: Action) -> Result<Document, FieldViolation> {
    let index = object.get("_index").and_then(Index::named).or(action.index);
    let within = if action.is_update { "doc" } else { "_source" };
    let object = match object.get(within) {
        Some(Value::Object(source)) => source,
        _ => object,
    };
    let is_event = match index {
        Some(index) => index == Index::Events,
        None => text(object, &["action_name"])?.is_some(),
    };
    if is_event {
        return event(object);
    }
    match at(object, "user_query") {
        Some(Value::Null) => Ok(Document::Browsing),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Document::Browsing),
        _ => query(object).map(|query| Document::Query(Box::new(query))),
    }
}

/// What a made id begins with.
const MADE: &str = "ubi-";

fn query(object: &Object) -> Result<Query, FieldViolation> {
    let hits = hits(object)?;
    let (query_text, searched_at) = (required(object, "user_query")?, timestamp(object)?);
    let session_id = text(object, &["client_id"])?.unwrap_or_default();
    let query_id = if let Some(id) = text(object, &["query_id"])? {
        id
    } else {
        let at = searched_at.map(|at| (at.seconds, at.nanos));
        let response = text(object, &["query_response_id"])?;
        let said = serde_json::json!([query_text, session_id, at, response, hits]);
        format!("{MADE}{:032x}", xxh3_128(said.to_string().as_bytes()))
    };
    let hit_count = hits
        .as_ref()
        .map(|hits| i32::try_from(hits.len()).unwrap_or(i32::MAX));
    let result = |object_id| QueryResult {
        object_id,
        ..QueryResult::default()
    };
    Ok(Query {
        query_id,
        query_text,
        session_id,
        top_results: hits.into_iter().flatten().take(MAX_RESULTS).map(result).collect(),
        hit_count,
        searched_at,
        ..Query::default()
    })
}

/// The place of a result, the first being 1.
const ORDINAL: &str = "position.ordinal";
/// The same, the first being 0.
const RANK: &str = "rank";
/// The greatest position that is kept.
const MAX_POSITION: i32 = 100_000;

/// The place of the result that an event is about, the first being 1; 0: not known.
fn position(object: &Object) -> Result<i32, FieldViolation> {
    let whole = |field: &str, text: &str, least: i32, most: i32| {
        let parsed = text.parse::<i32>();
        let parsed = parsed.map_err(|_| wrong(field, "must be a whole number"))?;
        if (least..=most).contains(&parsed) {
            Ok(parsed)
        } else {
            let bounds = format!("must be {least} to {most}, is {parsed}");
            Err(wrong(field, bounds))
        }
    };
    if let Some(ordinal) = text(object, &["event_attributes.position.ordinal", ORDINAL])? {
        return whole(ORDINAL, &ordinal, 0, MAX_POSITION);
    }
    match text(object, &["event_attributes.rank", RANK])? {
        Some(rank) => Ok(whole(RANK, &rank, 0, MAX_POSITION - 1)? + 1),
        None => Ok(0),
    }
}

fn event(object: &Object) -> Result<Document, FieldViolation> {
    const OBJECT_ID: [&str; 3] = [
        "event_attributes.object.object_id",
        "object.object_id",
        "object_id",
    ];
    let object_id = text(object, &OBJECT_ID)?;
    let (Some(query_id), Some(object_id)) = (text(object, &["query_id"])?, object_id) else {
        return Ok(Document::Other);
    };
    Ok(Document::Interaction(QueryInteraction {
        query_id,
        object_id,
        action: required(object, "action_name")?,
        position: position(object)?,
        acted_at: timestamp(object)?,
    }))
}

/// What stands at a path of keys, which may also be one key with dots.
fn at<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    at(object.get(first)?.as_object()?, rest)
}

/// The text or number at the first of these paths that has one.
fn text(object: &Object, paths: &[&str]) -> Result<Option<String>, FieldViolation> {
    for path in paths {
        match at(object, path) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.trim().is_empty() => {}
            Some(Value::String(text)) => return Ok(Some(text.clone())),
            Some(Value::Number(number)) => return Ok(Some(number.to_string())),
            Some(_) => return Err(wrong(path, "must be a text")),
        }
    }
    Ok(None)
}

fn required(object: &Object, field: &str) -> Result<String, FieldViolation> {
    text(object, &[field])?.ok_or_else(|| wrong(field, "is required"))
}

/// The ids of the results: a list, or in CSV its JSON or ids with commas between them. None: nobody said what was found.
fn hits(object: &Object) -> Result<Option<Vec<String>>, FieldViolation> {
    const FIELD: &str = "query_response_hit_ids";
    let no_list = || wrong(FIELD, "must be a list of ids");
    let ids = |items: &[Value]| {
        let id = |item: &Value| match item {
            Value::String(id) => Ok(id.clone()),
            Value::Number(id) => Ok(id.to_string()),
            _ => Err(no_list()),
        };
        items
            .iter()
            .map(id)
            .collect::<Result<Vec<String>, FieldViolation>>()
    };
    match at(object, FIELD) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(list)) if list.trim().is_empty() => Ok(None),
        Some(Value::Array(items)) => ids(items).map(Some),
        Some(Value::String(list)) if list.trim_start().starts_with('[') => {
            ids(&serde_json::from_str::<Vec<Value>>(list).map_err(|_| no_list())?).map(Some)
        }
        Some(Value::String(list)) => {
            let ids = list.split(',').map(str::trim).filter(|id| !id.is_empty());
            Ok(Some(ids.map(str::to_owned).collect()))
        }
        Some(_) => Err(no_list()),
    }
}

/// ISO 8601, in UTC where it names no zone, or milliseconds since 1970.
fn timestamp(object: &Object) -> Result<Option<prost_types::Timestamp>, FieldViolation> {
    let Some(text) = text(object, &["timestamp"])? else {
        return Ok(None);
    };
    let at = match text.parse::<i64>() {
        Ok(millis) => Timestamp::from_millisecond(millis).ok(),
        Err(_) => text.parse().ok().or_else(|| without_zone(&text)),
    };
    let at = at.ok_or_else(|| {
        wrong(
            "timestamp",
            "must be a time in ISO 8601, of UTC where it names no zone, or milliseconds since 1970",
        )
    })?;
    Ok(Some(crate::render::timestamp(at)))
}

/// The moment of a date and time that name no zone.
fn without_zone(text: &str) -> Option<Timestamp> {
    let time = text.get("2018-11-13".len()..)?;
    let is_plain = time.starts_with(['T', 't', ' '])
        && time
            .chars()
            .skip(1)
            .all(|letter| letter.is_ascii_digit() || ":.,".contains(letter));
    let at = is_plain.then(|| text.parse::<civil::DateTime>().ok())??;
    at.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: &Value) -> Result<Document, FieldViolation> {
        super::document(document.as_object().expect("an object"))
    }

    fn query_of(document: &Value) -> Query {
        match read(document) {
            Ok(Document::Query(query)) => *query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_query_without_an_id_has_that_of_what_it_says() {
        let search = json!({"user_query": "tv", "client_id": "c", "query_response_hit_ids": ["a"], "timestamp": "2018-11-13T20:20:39Z"});
        let id = query_of(&search).query_id;
        assert!(id.starts_with(MADE) && id.len() == MADE.len() + 32, "{id}");
        // The same moment and results, said otherwise, as in CSV.
        let same = json!({"user_query": "tv", "client_id": "c", "query_response_hit_ids": "a", "timestamp": 1_542_140_439_000_i64});
        assert_eq!(query_of(&same).query_id, id);
        for (field, value) in [
            ("user_query", json!("tvs")),
            ("client_id", json!("d")),
            ("query_response_hit_ids", json!([])),
            ("query_response_hit_ids", Value::Null),
            ("query_response_id", json!("r")),
            ("timestamp", json!("2018-11-13T20:20:40Z")),
        ] {
            let mut other = search.clone();
            other[field] = value;
            assert_ne!(query_of(&other).query_id, id, "{other}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_one_of_utc() {
        let of = |timestamp: Value| {
            let query = read(&json!({"query_id": "q", "user_query": "tv", "timestamp": timestamp}));
            query.map(|document| match document {
                Document::Query(query) => query.searched_at.map(|at| (at.seconds, at.nanos)),
                other => panic!("{other:?}"),
            })
        };
        // The examples of the schema, and what others make of them.
        for (timestamp, expected) in [
            (json!("2018-11-13T20:20:39+00:00"), (1_542_140_439, 0)),
            (json!("2018-11-13T20:20:39Z"), (1_542_140_439, 0)),
            (json!("2018-11-13T20:20:39"), (1_542_140_439, 0)),
            (json!("2018-11-13T20:20:39.250"), (1_542_140_439, 250_000_000)),
            (json!("2018-11-13 20:20:39"), (1_542_140_439, 0)),
            (json!("2018-11-13T20:20:39+02:00"), (1_542_133_239, 0)),
            (json!(1_542_140_439_000_i64), (1_542_140_439, 0)),
        ] {
            assert_eq!(of(timestamp.clone()), Ok(Some(expected)), "{timestamp}");
        }
        for timestamp in [
            "2018-11-13",
            "2018-11-13T20:20:39[Nowhere/Atall]",
            "2018-11-13T20:20:39 CET",
            "yesterday",
        ] {
            assert_eq!(
                of(json!(timestamp)).unwrap_err().field,
                "timestamp",
                "{timestamp}"
            );
        }
    }
}
