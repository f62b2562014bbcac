//! The query DSL of OpenSearch and Elasticsearch.

use serde_json::{Map, Value, json};

use super::{Operator, Part, Parts, Target};

/// What the text as it was written counts, beside 1 for its expansions.
const AS_WRITTEN: f32 = 2.0;

/// The text as it was written, and above nothing else what it was expanded to.
pub(super) fn query(parts: &Parts<'_>, target: &Target) -> Value {
    if parts.parts.is_empty() {
        return json!({"match_none": {}});
    }
    let written: Vec<_> = parts.as_written().collect();
    let written = written.join(" ");
    if !parts.is_expanded() {
        return words(&written, target, None);
    }
    let clauses: Vec<Value> = parts.parts.iter().map(|part| clause(part, target)).collect();
    let expanded = match target.operator {
        Operator::And => json!({"bool": {"must": clauses}}),
        Operator::Or => json!({"bool": {"should": clauses, "minimum_should_match": 1}}),
    };
    json!({"bool": {
        "should": [words(&written, target, Some(AS_WRITTEN)), expanded],
        "minimum_should_match": 1,
    }})
}

fn clause(part: &Part<'_>, target: &Target) -> Value {
    match part {
        Part::Word(word) => words(word, target, None),
        Part::Any { alternatives, .. } => {
            let phrases: Vec<Value> = alternatives.iter().map(|text| phrase(text, target)).collect();
            json!({"bool": {"should": phrases, "minimum_should_match": 1}})
        }
    }
}

/// Words that may stand in different fields.
fn words(text: &str, target: &Target, boost: Option<f32>) -> Value {
    let operator = match target.operator {
        Operator::And => "and",
        Operator::Or => "or",
    };
    let mut options = json!({"type": "cross_fields", "operator": operator});
    if let Some(boost) = boost {
        options["boost"] = json!(boost);
    }
    multi_match(text, options, target)
}

/// A text whose words stand one behind another.
fn phrase(text: &str, target: &Target) -> Value {
    multi_match(text, json!({"type": "phrase"}), target)
}

fn multi_match(text: &str, options: Value, target: &Target) -> Value {
    let mut query = Map::from_iter([("query".to_owned(), json!(text))]);
    if !target.fields.is_empty() {
        let fields: Vec<_> = target.fields.iter().map(ToString::to_string).collect();
        query.insert("fields".to_owned(), json!(fields));
    }
    if let Value::Object(options) = options {
        query.extend(options);
    }
    json!({"multi_match": query})
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{HOSTILE, expanded},
        *,
    };

    fn target(fields: &[&str]) -> Target {
        Target {
            fields: fields.iter().map(|field| field.parse().unwrap()).collect(),
            ..Target::default()
        }
    }

    #[test]
    fn a_text_without_terms_is_one_match() {
        let text = expanded("set up", &[]);
        assert_eq!(
            query(&Parts::of(&text), &target(&["title^3", "body"])),
            json!({"multi_match": {
                "query": "set up", "fields": ["title^3", "body"], "type": "cross_fields", "operator": "and",
            }})
        );
        let none = expanded("  ", &[]);
        assert_eq!(query(&Parts::of(&none), &target(&[])), json!({"match_none": {}}));
    }

    #[test]
    fn the_text_as_written_counts_above_its_expansions() {
        let text = expanded(
            "cheap notebook",
            &[("notebook", &["notebook", "laptop computer"])],
        );
        let found = query(&Parts::of(&text), &target(&[]));
        assert_eq!(
            found,
            json!({"bool": {"minimum_should_match": 1, "should": [
                {"multi_match": {"query": "cheap notebook", "type": "cross_fields", "operator": "and", "boost": 2.0}},
                {"bool": {"must": [
                    {"multi_match": {"query": "cheap", "type": "cross_fields", "operator": "and"}},
                    {"bool": {"minimum_should_match": 1, "should": [
                        {"multi_match": {"query": "notebook", "type": "phrase"}},
                        {"multi_match": {"query": "laptop computer", "type": "phrase"}},
                    ]}},
                ]}},
            ]}})
        );
    }

    #[test]
    fn a_text_is_the_query_of_a_match_and_nothing_else() {
        /// Every member that is no text of a match.
        fn without_texts(query: &Value) -> Value {
            match query {
                Value::Object(members) => members
                    .iter()
                    .filter(|(name, value)| *name != "query" || !value.is_string())
                    .map(|(name, value)| (name.clone(), without_texts(value)))
                    .collect::<Map<_, _>>()
                    .into(),
                Value::Array(all) => all.iter().map(without_texts).collect(),
                other => other.clone(),
            }
        }
        let target = target(&["title^3"]);
        for hostile in HOSTILE {
            // As many words, which can do no harm.
            let tame: Vec<&str> = super::super::words(hostile).map(|_| "w").collect();
            let [found, harmless] = [(*hostile).to_owned(), tame.join(" ")].map(|written| {
                let text = expanded(&format!("{written} term"), &[("term", &["term", &written])]);
                query(&Parts::of(&text), &target)
            });
            assert_eq!(without_texts(&found), without_texts(&harmless), "{hostile:?}");
            let text = found.to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read, found, "it stays in its place on the way, too");
        }
    }
}
