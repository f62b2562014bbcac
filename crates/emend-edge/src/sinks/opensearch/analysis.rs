//! A synonym filter in the settings of an index.

use serde_json::{Map, Value, json};

use crate::sinks::{
    content::Seen,
    error::SinkError,
    synonyms::{self, PROBE},
};

/// A synonym filter, and the first analyzer that has it.
#[derive(Debug)]
pub(super) struct Filter {
    definition: Map<String, Value>,
    tokenizer: Value,
    char_filters: Value,
    /// The filters before it.
    before: Vec<Value>,
}

impl Filter {
    /// The filter of this name in the settings of an index.
    pub(super) fn of(settings: &Value, index: &str, name: &str) -> Result<Self, SinkError> {
        let mut indexes = settings.as_object().into_iter().flat_map(Map::values);
        let (Some(found), None) = (indexes.next(), indexes.next()) else {
            return Err(SinkError::refused(format!(
                "OpenSearch: {index:?} must be one index, or an alias of one"
            )));
        };
        let analysis = found
            .pointer("/settings/index/analysis")
            .cloned()
            .unwrap_or_default();
        let definition = analysis.pointer(&format!("/filter/{}", pointer(name)));
        let definition = definition.and_then(Value::as_object).cloned();
        let definition = definition.filter(|definition| {
            matches!(
                definition.get("type").and_then(Value::as_str),
                Some("synonym" | "synonym_graph")
            )
        });
        let missing = || {
            SinkError::refused(format!(
                "OpenSearch: the index {index:?} must have a filter {name:?} of type synonym_graph, in a search analyzer"
            ))
        };
        let definition = definition.ok_or_else(missing)?;
        let analyzers = analysis.get("analyzer").and_then(Value::as_object);
        let with_it = analyzers.into_iter().flat_map(Map::values).find_map(|analyzer| {
            let filters = list(analyzer.get("filter"));
            let place = filters.iter().position(|filter| filter == name)?;
            Some(Self {
                definition: definition.clone(),
                tokenizer: analyzer.get("tokenizer").cloned().unwrap_or(json!("standard")),
                char_filters: json!(list(analyzer.get("char_filter"))),
                before: filters[..place].to_vec(),
            })
        });
        with_it.ok_or_else(missing)
    }

    /// What is in the settings.
    pub(super) fn seen(&self) -> Seen {
        let rules = list(self.definition.get("synonyms"));
        let rules: Vec<&str> = rules.iter().filter_map(Value::as_str).collect();
        match synonyms::parse(rules.iter().copied()) {
            Some(found) => synonyms::seen(&found),
            None if rules.iter().any(|rule| rule.starts_with(PROBE)) => Seen::Changed(format!(
                "{} synonyms that are not those that were written",
                rules.len()
            )),
            None => Seen::Foreign(format!("{} synonyms", rules.len())),
        }
    }

    /// What has the engine read these rules as the index would.
    pub(super) fn reading(&self, rules: &[&str]) -> Value {
        let mut filter = self.definition.clone();
        filter.remove("synonyms_path");
        filter.remove("updateable");
        filter.insert("synonyms".into(), json!(rules));
        let mut filters = self.before.clone();
        filters.push(Value::Object(filter));
        json!({
            "tokenizer": self.tokenizer,
            "char_filter": self.char_filters,
            "filter": filters,
            "text": PROBE,
        })
    }
}

/// A setting that is a list, or the only one of a list.
fn list(setting: Option<&Value>) -> Vec<Value> {
    match setting {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        Some(one) => vec![one.clone()],
    }
}

/// A name as a part of a JSON pointer.
fn pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
