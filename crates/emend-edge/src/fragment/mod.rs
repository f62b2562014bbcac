//! Expanded texts as the engines that people have take them.
//!
//! A text that was expanded is a row of parts, from left to right: words as they stand, and groups of which any alternative will
//! do. Each engine's form is written from those parts, never by putting texts into a query: a text stands in a JSON string, or
//! between quotes in which every character that could end them is escaped. So it is searched for, whatever is in it.

mod dsl;
mod field;
mod lucene;
mod tsquery;
mod variations;

use emend_binding::answers::Expanded;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub use self::field::{Field, FieldError};

/// Who is to take the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// OpenSearch's query DSL.
    OpenSearch,
    /// Elasticsearch's query DSL, which is the same.
    Elasticsearch,
    /// The query syntax of Solr's standard parser and of `edismax`.
    Solr,
    /// Lucene's classic query syntax, which is the same: what `query_string` takes, too.
    Lucene,
    /// The text of a `tsquery`, for `to_tsquery`.
    Postgres,
    /// A federated multi-search of Meilisearch.
    Meilisearch,
    /// A union of searches of Typesense.
    Typesense,
    /// Texts without any syntax, a line for each: the text as it was written, then with each alternative.
    Plain,
}

/// How many of the parts a result must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operator {
    /// All.
    #[default]
    And,
    /// Any.
    Or,
}

/// What of an engine is searched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// The fields; none: what the engine searches by default.
    pub fields: Vec<Field>,
    /// The index or collection, where the query names it.
    pub index: String,
    /// How many of the parts a result must have.
    pub operator: Operator,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'e> {
    /// A word as it stands.
    Word(&'e str),
    /// A term that stands there, and what else to search for.
    Any {
        stands: &'e str,
        alternatives: &'e [String],
    },
}

/// A text in its parts.
#[derive(Debug)]
pub(crate) struct Parts<'e> {
    /// From left to right.
    parts: Vec<Part<'e>>,
}

impl<'e> Parts<'e> {
    /// Of a text whose places are counted in bytes.
    fn of(expanded: &'e Expanded) -> Self {
        let original = &expanded.original;
        let mut parts = Vec::new();
        let mut end = 0;
        for group in &expanded.groups {
            parts.extend(words(&original[end..group.start]).map(Part::Word));
            parts.push(Part::Any {
                stands: &original[group.start..group.end],
                alternatives: &group.alternatives,
            });
            end = group.end;
        }
        parts.extend(words(&original[end..]).map(Part::Word));
        Self { parts }
    }

    fn is_expanded(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Any { .. }))
    }

    /// The text itself, word by word.
    fn as_written(&self) -> impl Iterator<Item = &'e str> + '_ {
        self.parts.iter().map(|part| match part {
            Part::Word(word) => *word,
            Part::Any { stands, .. } => stands,
        })
    }
}

/// What stands between white space, without what has nothing to search for.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| word.chars().any(char::is_alphanumeric))
}

/// The query that an engine takes for an expanded text whose places are counted in bytes. A text without words is a query that
/// finds nothing.
pub fn fragment(engine: Engine, expanded: &Expanded, target: &Target) -> Value {
    let parts = Parts::of(expanded);
    match engine {
        Engine::OpenSearch | Engine::Elasticsearch => dsl::query(&parts, target),
        Engine::Solr | Engine::Lucene => Value::String(lucene::query(&parts, target)),
        Engine::Postgres => Value::String(tsquery::query(&parts, target)),
        Engine::Meilisearch => variations::meilisearch(&parts, target),
        Engine::Typesense => variations::typesense(&parts, target),
        Engine::Plain => Value::String(variations::plain(&parts)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use emend_binding::answers::Group;

    use super::*;

    /// An expanded text with these alternatives where these terms stand.
    pub(crate) fn expanded(original: &str, terms: &[(&str, &[&str])]) -> Expanded {
        let groups = terms.iter().map(|(term, alternatives)| {
            let start = original.find(term).expect("the term stands in the text");
            Group {
                start,
                end: start + term.len(),
                alternatives: alternatives.iter().map(|&text| text.to_owned()).collect(),
            }
        });
        Expanded {
            groups: groups.collect(),
            text: original.to_owned(),
            original: original.to_owned(),
        }
    }

    /// What stands in its place in every form.
    pub(crate) const HOSTILE: &[&str] = &[
        "\" OR *:* OR \"",
        "a\\",
        "\\\" OR secret:\"x",
        "' | secret | '",
        "\\' & 'x",
        "{!parser q=secret}x",
        "_query_:\"{!func}x\"",
        "x) OR (*:*",
        "a && b || !c",
        "/.*/ [a TO *] ~2 ^9",
        "</script>\u{0}\u{7f}\u{202e}x",
        "-not +must \"phrase\"",
        "a':* & !'b",
        "''x'':ABCD <-> y",
        "\\u0022 OR x:\\u0022",
        "x\"}}, \"match_all\": {}, \"y\": {\"z",
        "a\n* : *\r\nb",
        "\u{2028}x\u{2029}^9 \u{201c}y\u{201d}",
    ];

    #[test]
    fn a_text_is_cut_into_words_and_groups() {
        let text = expanded("how to 顔にダメージ now", &[("顔", &["顔", "face"])]);
        let parts = Parts::of(&text);
        assert_eq!(
            parts.as_written().collect::<Vec<_>>(),
            ["how", "to", "顔", "にダメージ", "now"]
        );
        assert!(parts.is_expanded());
        let plain = expanded(" - ?! ", &[]);
        assert_eq!(Parts::of(&plain).parts, []);
    }
}
