//! Files of `OpenSearch`'s User Behavior Insights: its documents ([`emend_wire::ubi`]) as JSON lines or as CSV with dotted column
//! names.

use std::io::BufRead;

use emend_core::violation::FieldViolation;
pub use emend_wire::ubi::Document;
use emend_wire::ubi::{Object, Reader};
use serde_json::Value;

use super::{
    RowError,
    source::{Lines, csv::Records},
};

impl From<FieldViolation> for RowError {
    fn from(violation: FieldViolation) -> Self {
        Self::field(&violation.field, violation.description)
    }
}

/// Reads JSON lines and passes each document to `take` with its line, until there are no more or `take` returns false.
pub fn read_jsonl(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Document, RowError>) -> bool) {
    let mut lines = Lines::of(from);
    let mut reader = Reader::default();
    while let Some((line, text)) = lines.next_text() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        let object = text.and_then(|text| {
            serde_json::from_str::<Object>(text)
                .map_err(|error| RowError::row(format!("is not a JSON object: {error}")))
        });
        if let Some(document) = reader.next(object)
            && !take(line, document)
        {
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
            emend_wire::ubi::document(&cells.collect()).map_err(RowError::from)
        });
        if !take(line, document) {
            return;
        }
    }
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
            "{\"query_id\":\"q\"}\n",
            "{\"query_id\":\"q\",\"user_query\":{\"a\":1}}\n",
            "{\"query_id\":\"q\",\"user_query\":\"x\",\"timestamp\":\"yesterday\"}\n",
            "{\"query_id\":\"q\",\"user_query\":\"x\",\"query_response_hit_ids\":7}\n",
            "[]\n"
        ));
        let errors: Vec<String> = found.into_iter().map(Result::unwrap_err).collect();
        for (error, begins) in errors.iter().zip([
            "user_query: is required",
            "user_query: must be a text",
            "timestamp: must be a time",
            "query_response_hit_ids: must be a list of ids",
            ": is not a JSON object",
        ]) {
            assert!(error.starts_with(begins), "{error}");
        }
    }
}
