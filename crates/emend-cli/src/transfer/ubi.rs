//! Files of `OpenSearch`'s User Behavior Insights, version 1: the documents of its indexes `ubi_queries` and `ubi_events`, as
//! JSON lines (also with their `_source` as a search answers them, or as the bulk API takes them, each after the line of its
//! action) or as CSV with dotted column names.
//!
//! Which it is says the index, if it is named; else a document with an `action_name` is an event, another one a query. Events
//! that name no query or no object tell nothing of a result, and a query with an empty text is browsing: both are passed over.

use std::io::BufRead;

use emend_proto::feedback::v1::{Query, QueryInteraction, QueryResult};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    RowError,
    source::{Lines, csv::Records},
};

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
enum Index {
    Queries,
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
pub(super) const MAX_RESULTS: usize = 100;

/// Reads JSON lines and passes each document to `take` with its line, until there are no more or `take` returns false.
pub fn read_jsonl(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Document, RowError>) -> bool) {
    let mut lines = Lines::of(from);
    let mut action = Action::default();
    while let Some((line, text)) = lines.next_text() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        let of_action = std::mem::take(&mut action);
        let object = text.and_then(|text| {
            serde_json::from_str(text)
                .map_err(|error| RowError::row(format!("is not a JSON object: {error}")))
        });
        if let Some(next) = object.as_ref().ok().and_then(Action::of) {
            action = next;
            continue;
        }
        let document = object.and_then(|object| document(&object, of_action));
        if !take(line, document) {
            return;
        }
    }
}

/// Reads CSV with a header in the same way.
pub fn read_csv(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Document, RowError>) -> bool) {
    let mut records = match Records::of(from) {
        Ok(Some(records)) => records,
        Ok(None) => return,
        Err((line, error)) => {
            take(line, Err(error));
            return;
        }
    };
    while let Some((line, record)) = records.next_record() {
        let document = record.and_then(|record| {
            let cells = records.header().iter().zip(record);
            let cells = cells.map(|(name, cell)| (name.to_owned(), Value::String(cell)));
            document(&cells.collect(), Action::default())
        });
        if !take(line, document) {
            return;
        }
    }
}

type Object = Map<String, Value>;

fn document(object: &Object, action: Action) -> Result<Document, RowError> {
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

fn query(object: &Object) -> Result<Query, RowError> {
    let hits = hits(object)?;
    let hit_count = hits
        .as_ref()
        .map(|hits| i32::try_from(hits.len()).unwrap_or(i32::MAX));
    let result = |object_id| QueryResult {
        object_id,
        ..QueryResult::default()
    };
    Ok(Query {
        query_id: required(object, "query_id")?,
        query_text: required(object, "user_query")?,
        session_id: text(object, &["client_id"])?.unwrap_or_default(),
        top_results: hits.into_iter().flatten().take(MAX_RESULTS).map(result).collect(),
        hit_count,
        searched_at: timestamp(object)?,
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
fn position(object: &Object) -> Result<i32, RowError> {
    let whole = |field: &str, text: &str, least: i32, most: i32| {
        let parsed = text.parse::<i32>();
        let parsed = parsed.map_err(|_| RowError::field(field, "must be a whole number"))?;
        if (least..=most).contains(&parsed) {
            Ok(parsed)
        } else {
            let bounds = format!("must be {least} to {most}, is {parsed}");
            Err(RowError::field(field, bounds))
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

fn event(object: &Object) -> Result<Document, RowError> {
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
fn text(object: &Object, paths: &[&str]) -> Result<Option<String>, RowError> {
    for path in paths {
        match at(object, path) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.trim().is_empty() => {}
            Some(Value::String(text)) => return Ok(Some(text.clone())),
            Some(Value::Number(number)) => return Ok(Some(number.to_string())),
            Some(_) => return Err(RowError::field(path, "must be a text")),
        }
    }
    Ok(None)
}

fn required(object: &Object, field: &str) -> Result<String, RowError> {
    text(object, &[field])?.ok_or_else(|| RowError::field(field, "is required"))
}

/// The ids of the results: a list, or in CSV its JSON or ids with commas between them. None: nobody said what was found.
fn hits(object: &Object) -> Result<Option<Vec<String>>, RowError> {
    const FIELD: &str = "query_response_hit_ids";
    let wrong = || RowError::field(FIELD, "must be a list of ids");
    let ids = |items: &[Value]| {
        let id = |item: &Value| match item {
            Value::String(id) => Ok(id.clone()),
            Value::Number(id) => Ok(id.to_string()),
            _ => Err(wrong()),
        };
        items.iter().map(id).collect::<Result<Vec<String>, RowError>>()
    };
    match at(object, FIELD) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(list)) if list.trim().is_empty() => Ok(None),
        Some(Value::Array(items)) => ids(items).map(Some),
        Some(Value::String(list)) if list.trim_start().starts_with('[') => {
            ids(&serde_json::from_str::<Vec<Value>>(list).map_err(|_| wrong())?).map(Some)
        }
        Some(Value::String(list)) => {
            let ids = list.split(',').map(str::trim).filter(|id| !id.is_empty());
            Ok(Some(ids.map(str::to_owned).collect()))
        }
        Some(_) => Err(wrong()),
    }
}

/// ISO 8601 with a zone, or milliseconds since 1970.
fn timestamp(object: &Object) -> Result<Option<prost_types::Timestamp>, RowError> {
    let Some(text) = text(object, &["timestamp"])? else {
        return Ok(None);
    };
    let at = match text.parse::<i64>() {
        Ok(millis) => Timestamp::from_millisecond(millis).ok(),
        Err(_) => text.parse().ok(),
    };
    let at = at.ok_or_else(|| {
        RowError::field(
            "timestamp",
            "must be a time with its zone in ISO 8601, or milliseconds since 1970",
        )
    })?;
    Ok(Some(emend_wire::render::timestamp(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(jsonl: &str) -> Vec<Result<Document, String>> {
        let mut found = Vec::new();
        read_jsonl(jsonl.as_bytes(), &mut |_, document| {
            found.push(document.map_err(|error| format!("{}: {}", error.field, error.description)));
            true
        });
        found
    }

    #[test]
    fn queries_and_events_are_read_as_opensearch_writes_them() {
        let found = read(concat!(
            r#"{"query_id":"q1","user_query":"red shoes","client_id":"c1","query_response_id":"r1","#,
            r#""query_response_hit_ids":["sku-1",2],"timestamp":"2024-06-11T13:04:05.123Z","query_attributes":{}}"#,
            "\n\n",
            r#"{"_index":"ubi_events","_source":{"action_name":"item_click","query_id":"q1","timestamp":1718111046000,"#,
            r#""event_attributes":{"object":{"object_id":"sku-1"},"position":{"ordinal":3}}}}"#,
            "\n",
            r#"{"action_name":"page_exit","query_id":"q1"}"#,
            "\n"
        ));
        let [
            Ok(Document::Query(query)),
            Ok(Document::Interaction(click)),
            Ok(Document::Other),
        ] = &found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!(
            (query.query_id.as_str(), query.query_text.as_str()),
            ("q1", "red shoes")
        );
        assert_eq!((query.session_id.as_str(), query.hit_count), ("c1", Some(2)));
        assert_eq!(query.top_results[1].object_id, "2");
        assert_eq!(query.searched_at.unwrap().nanos, 123_000_000);
        assert_eq!((click.object_id.as_str(), click.position), ("sku-1", 3));
        assert_eq!(click.acted_at.unwrap().seconds, 1_718_111_046);
    }

    #[test]
    fn a_query_that_does_not_say_what_it_found_did_not_find_nothing() {
        let found = read(concat!(
            "{\"query_id\":\"q\",\"user_query\":\"tv\"}\n",
            "{\"query_id\":\"q\",\"user_query\":\"tv\",\"query_response_hit_ids\":null}\n",
            "{\"query_id\":\"q\",\"user_query\":\"tv\",\"query_response_hit_ids\":[]}\n",
        ));
        let hits: Vec<_> = found
            .iter()
            .map(|document| match document {
                Ok(Document::Query(query)) => query.hit_count,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(hits, [None, None, Some(0)]);
    }

    #[test]
    fn lines_of_bulk_actions_are_no_documents_and_name_the_index() {
        let found = read(concat!(
            "{\"index\":{\"_index\":\"ubi_queries\",\"_id\":\"1\"}}\n",
            "{\"query_id\":\"q1\",\"user_query\":\"laptop\",\"action_name\":\"on_search\"}\n",
            "{\"create\":{\"_index\":\"ubi_events\"}}\n",
            "{\"query_id\":\"q1\",\"event_attributes\":{\"object\":{\"object_id\":\"a\"}}}\n",
            "{\"update\":{\"_index\":\"shop\",\"_id\":\"2\"}}\n",
            "{\"doc\":{\"query_id\":\"q2\",\"user_query\":\"tv\"}}\n",
            "{\"delete\":{\"_index\":\"ubi_events\",\"_id\":\"3\"}}\n",
            "{\"query_id\":\"q3\",\"user_query\":\"hat\"}\n",
            "{\"index\":{\"_index\":\"ubi_events\"}}\n",
            "{\n",
            "{\"query_id\":\"q4\",\"user_query\":\"shoe\"}\n",
        ));
        let ids: Vec<_> = found
            .iter()
            .map(|document| match document {
                Ok(Document::Query(query)) => query.query_id.as_str(),
                Ok(_) => "another",
                Err(error) => error.split(':').next().unwrap(),
            })
            .collect();
        assert_eq!(ids, ["q1", "action_name", "q2", "q3", "", "q4"]);
    }

    #[test]
    fn a_rank_begins_with_nothing_and_an_ordinal_with_one() {
        let position = |attributes: &str| {
            let event = format!(
                r#"{{"action_name":"click","query_id":"q","event_attributes":{{"object":{{"object_id":"a"}},{attributes}}}}}"#
            );
            match read(&event).remove(0) {
                Ok(Document::Interaction(interaction)) => Ok(interaction.position),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        for (attributes, expected) in [
            (r#""rank":0"#, 1),
            (r#""rank":4"#, 5),
            (r#""rank":null"#, 0),
            (r#""position":{"ordinal":1}"#, 1),
            (r#""position":{"ordinal":2},"rank":7"#, 2),
            (r#""position":{"ordinal":null}"#, 0),
        ] {
            assert_eq!(position(attributes), Ok(expected), "{attributes}");
        }
        for (attributes, error) in [
            (r#""rank":-1"#, "rank: must be 0 to 99999, is -1"),
            (
                r#""position":{"ordinal":-1}"#,
                "position.ordinal: must be 0 to 100000, is -1",
            ),
        ] {
            assert_eq!(position(attributes), Err(error.to_owned()), "{attributes}");
        }
    }

    #[test]
    fn a_query_with_an_empty_text_is_browsing_whose_events_are_understood() {
        let found = read(concat!(
            "{\"query_id\":\"q\",\"user_query\":\" \",\"query_response_hit_ids\":[]}\n",
            "{\"query_id\":\"q\",\"user_query\":null}\n",
            "{\"action_name\":\"click\",\"query_id\":\"q\",\"user_query\":\"\",\"object_id\":\"a\"}\n",
        ));
        assert!(matches!(
            &found[..],
            [
                Ok(Document::Browsing),
                Ok(Document::Browsing),
                Ok(Document::Interaction(_))
            ]
        ));
    }

    #[test]
    fn csv_has_the_same_fields_with_dotted_names() {
        let csv = "query_id,user_query,query_response_hit_ids,action_name,object.object_id,position.ordinal\n\
                   q1,\"red, shoes\",\"[\"\"a\"\",\"\"b\"\"]\",,,\n\
                   q2,blue,\"a, b ,c\",,,\n\
                   q3,red,[],,,\n\
                   q4,red,,,,\n\
                   q5,,,,,\n\
                   q1,,,click,a,1\n";
        let mut found = Vec::new();
        read_csv(csv.as_bytes(), &mut |line, document| {
            found.push((line, document.unwrap()));
            true
        });
        let counts: Vec<_> = found
            .iter()
            .map(|(line, document)| match document {
                Document::Query(query) => (*line, query.hit_count),
                other => (*line, (*other == Document::Browsing).then_some(-1)),
            })
            .collect();
        assert_eq!(
            counts,
            [
                (2, Some(2)),
                (3, Some(3)),
                (4, Some(0)),
                (5, None),
                (6, Some(-1)),
                (7, None)
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let found = read(concat!(
            "{\"user_query\":\"x\"}\n",
            "{\"query_id\":\"q\",\"user_query\":{\"a\":1}}\n",
            "{\"query_id\":\"q\",\"user_query\":\"x\",\"timestamp\":\"yesterday\"}\n",
            "{\"query_id\":\"q\",\"user_query\":\"x\",\"query_response_hit_ids\":7}\n",
            "[]\n"
        ));
        let errors: Vec<String> = found.into_iter().map(Result::unwrap_err).collect();
        for (error, begins) in errors.iter().zip([
            "query_id: is required",
            "user_query: must be a text",
            "timestamp: must be a time",
            "query_response_hit_ids: must be a list of ids",
            ": is not a JSON object",
        ]) {
            assert!(error.starts_with(begins), "{error}");
        }
    }
}
