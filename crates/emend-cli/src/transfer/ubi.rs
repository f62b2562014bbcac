//! Files of `OpenSearch`'s User Behavior Insights, version 1: the documents of its indexes `ubi_queries` and `ubi_events`, as
//! JSON lines (also with their `_source` as a search answers them) or as CSV with dotted column names.
//!
//! A document with an `action_name` is an event, another one a query. Events that name no query or no object tell nothing of
//! a result and are passed over.

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
    /// An event that is about no result.
    Other,
}

/// The most ids of results that are taken from a query; all are counted.
const MAX_RESULTS: usize = 100;

/// Reads JSON lines and passes each document to `take` with its line, until there are no more or `take` returns false.
pub fn read_jsonl(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Document, RowError>) -> bool) {
    let mut lines = Lines::of(from);
    while let Some((line, text)) = lines.next() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        let document = text.and_then(|text| {
            serde_json::from_str(text)
                .map_err(|error| RowError::row(format!("is not a JSON object: {error}")))
                .and_then(|object| document(&object))
        });
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
    while let Some((line, record)) = records.next() {
        let document = record.and_then(|record| {
            let cells = records
                .header()
                .iter()
                .zip(record)
                .filter(|(_, cell)| !cell.is_empty());
            let cells = cells.map(|(name, cell)| (name.to_owned(), Value::String(cell)));
            document(&cells.collect())
        });
        if !take(line, document) {
            return;
        }
    }
}

type Object = Map<String, Value>;

fn document(object: &Object) -> Result<Document, RowError> {
    let object = match object.get("_source") {
        Some(Value::Object(source)) => source,
        _ => object,
    };
    if text(object, &["action_name"])?.is_some() {
        event(object)
    } else {
        query(object).map(|query| Document::Query(Box::new(query)))
    }
}

fn query(object: &Object) -> Result<Query, RowError> {
    let hits = hits(object)?;
    let hit_count = i32::try_from(hits.len()).unwrap_or(i32::MAX);
    let result = |object_id| QueryResult {
        object_id,
        ..QueryResult::default()
    };
    Ok(Query {
        query_id: required(object, "query_id")?,
        query_text: required(object, "user_query")?,
        session_id: text(object, &["client_id"])?.unwrap_or_default(),
        top_results: hits.into_iter().take(MAX_RESULTS).map(result).collect(),
        hit_count: Some(hit_count),
        searched_at: timestamp(object)?,
        ..Query::default()
    })
}

const ORDINAL: &str = "position.ordinal";

fn event(object: &Object) -> Result<Document, RowError> {
    let object_id = text(object, &["event_attributes.object.object_id", "object.object_id"])?;
    let (Some(query_id), Some(object_id)) = (text(object, &["query_id"])?, object_id) else {
        return Ok(Document::Other);
    };
    let position = match text(object, &["event_attributes.position.ordinal", ORDINAL])? {
        None => 0,
        Some(ordinal) => ordinal
            .parse()
            .map_err(|_| RowError::field(ORDINAL, "must be a whole number"))?,
    };
    Ok(Document::Interaction(QueryInteraction {
        query_id,
        object_id,
        action: required(object, "action_name")?,
        position,
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

/// The ids of the results: a list, or in CSV its JSON or ids with commas between them.
fn hits(object: &Object) -> Result<Vec<String>, RowError> {
    const FIELD: &str = "query_response_hit_ids";
    let wrong = || RowError::field(FIELD, "must be a list of ids");
    let of = |items: &[Value]| {
        let id = |item: &Value| match item {
            Value::String(id) => Ok(id.clone()),
            Value::Number(id) => Ok(id.to_string()),
            _ => Err(wrong()),
        };
        items.iter().map(id).collect()
    };
    match at(object, FIELD) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => of(items),
        Some(Value::String(list)) if list.trim_start().starts_with('[') => {
            of(&serde_json::from_str::<Vec<Value>>(list).map_err(|_| wrong())?)
        }
        Some(Value::String(list)) => {
            let ids = list.split(',').map(str::trim).filter(|id| !id.is_empty());
            Ok(ids.map(str::to_owned).collect())
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
    fn csv_has_the_same_fields_with_dotted_names() {
        let csv = "query_id,user_query,query_response_hit_ids,action_name,object.object_id,position.ordinal\n\
                   q1,\"red, shoes\",\"[\"\"a\"\",\"\"b\"\"]\",,,\n\
                   q2,blue,\"a, b ,c\",,,\n\
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
                _ => (*line, None),
            })
            .collect();
        assert_eq!(counts, [(2, Some(2)), (3, Some(3)), (4, None)]);
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
