//! Expanded texts as engines take them: whatever is in a text, it stays in its place.

use emend_binding::answers::{Expanded, Group};
use emend_edge::fragment::{Engine, Operator, Target, fragment};
use serde_json::Value;

/// Stands between what is between terms, and a term with its alternatives.
const PART: char = '\u{1}';
/// Stands between a term and each of its alternatives.
const ALTERNATIVE: char = '\u{2}';
/// The most texts that are written for one where an engine knows no "or".
const MOST_LINES: usize = 12;

/// Parts of a text alternate: what stands between terms, and a term with its alternatives. The query has the form that the query of
/// a harmless text of as many words has.
pub(super) fn queries(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let parts: Vec<&str> = text.split(PART).take(9).collect();
    let (hostile, harmless) = (expanded(&parts, str::to_owned), expanded(&parts, tame));
    let mut written = 0;
    // OpenSearch and Elasticsearch take the same, and so do Solr and Lucene.
    for (operator, fields) in [(Operator::And, ""), (Operator::Or, "title^2.5,body")] {
        let fields = fields.split(',').filter(|field| !field.is_empty());
        let target = Target {
            fields: fields.filter_map(|field| field.parse().ok()).collect(),
            index: "shop".into(),
            operator,
        };
        for engine in [Engine::OpenSearch, Engine::Solr, Engine::Postgres] {
            let query = fragment(engine, &hostile, &target);
            let quote = if engine == Engine::Postgres { '\'' } else { '"' };
            assert_eq!(
                form(&query, quote),
                form(&fragment(engine, &harmless, &target), quote),
                "{query}"
            );
            written += query.to_string().len();
        }
        for (engine, list) in [(Engine::Meilisearch, "queries"), (Engine::Typesense, "searches")] {
            let query = fragment(engine, &hostile, &target);
            for search in query[list].as_array().into_iter().flatten() {
                let text = search["q"].as_str().expect("each has a text");
                assert!(!text.trim().is_empty(), "an empty text finds everything");
                assert!(
                    !text.contains(|letter: char| letter == '"' || letter.is_control()),
                    "{text:?}"
                );
                assert!(
                    !text.split(' ').any(|word| word.starts_with(['-', '+', '*'])),
                    "{text:?}"
                );
            }
            written += query.to_string().len();
        }
        let query = fragment(Engine::Plain, &hostile, &target);
        let text = query.as_str().expect("it is a text");
        let lines: Vec<&str> = text.split('\n').filter(|_| !text.is_empty()).collect();
        assert!(lines.len() <= MOST_LINES, "{text:?}");
        for line in lines {
            assert!(!line.trim().is_empty(), "an empty text finds everything");
            assert!(!line.contains(ends_line), "{text:?}");
        }
        written += text.len();
    }
    written
}

/// Whether some program or other takes it for the end of a line.
fn ends_line(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// A text of these parts, each as `write` has it.
fn expanded(parts: &[&str], write: impl Fn(&str) -> String) -> Expanded {
    let (mut original, mut groups) = (String::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        if place % 2 == 0 {
            original.push_str(&write(part));
            continue;
        }
        // A term stands apart, as the harmless one does.
        original.push(' ');
        let mut texts = part.split(ALTERNATIVE);
        let start = original.len();
        original.push_str(&write(texts.next().unwrap_or_default()));
        groups.push(Group {
            start,
            end: original.len(),
            alternatives: texts.take(5).map(&write).collect(),
        });
        original.push(' ');
    }
    Expanded {
        text: original.clone(),
        original,
        groups,
    }
}

/// As many words, of which none can do harm.
fn tame(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words = words.filter(|word| word.chars().any(char::is_alphanumeric));
    words.map(|_| "w").collect::<Vec<_>>().join(" ")
}

/// What a query is apart from its texts.
fn form(query: &Value, quote: char) -> Value {
    match query {
        Value::String(query) => Value::String(outside(query, quote)),
        query => without_texts(query),
    }
}

/// What stands outside of quotes, as the parsers of Lucene and of PostgreSQL read them: a backslash takes away the meaning of what
/// follows, and in PostgreSQL a quote that of the quote behind it.
fn outside(query: &str, quote: char) -> String {
    let mut outside = String::new();
    let mut letters = query.chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if is_quoted => drop(letters.next().expect("something follows a backslash")),
            letter if letter == quote && is_quoted && quote == '\'' && letters.peek() == Some(&quote) => {
                letters.next();
            }
            letter if letter == quote => {
                is_quoted = !is_quoted;
                outside.push(letter);
            }
            letter if is_quoted => assert!(!letter.is_control(), "{query:?}"),
            letter => outside.push(letter),
        }
    }
    assert!(!is_quoted, "a quote is open: {query:?}");
    outside
}

/// A query in JSON, without what is searched for.
fn without_texts(query: &Value) -> Value {
    match query {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let is_text = name == "query" && value.is_string();
                let value = if is_text {
                    Value::Null
                } else {
                    without_texts(value)
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_texts).collect()),
        other => other.clone(),
    }
}
