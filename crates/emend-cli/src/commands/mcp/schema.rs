//! The schemas of the tools' arguments and answers, each in one piece: some front ends do not follow references.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments: what may be left out is not required, words are plain lists.
pub(super) fn input<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    for name in ["$schema", "title", "description"] {
        schema.remove(name);
    }
    schema
}

/// The type of a field of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Text,
    /// A text, or null where there is none.
    MaybeText,
    Flag,
    /// True, false, or null where it is not known.
    MaybeFlag,
    Whole,
    /// A number, or null where there is none.
    MaybeNumber,
    Texts,
    Object,
    /// An object, or null where there is none.
    MaybeObject,
    Objects,
    /// Objects, or null where they are not known.
    MaybeObjects,
}

impl Field {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::MaybeText => json!({"type": ["string", "null"]}),
            Self::Flag => json!({"type": "boolean"}),
            Self::MaybeFlag => json!({"type": ["boolean", "null"]}),
            Self::Whole => json!({"type": "integer"}),
            Self::MaybeNumber => json!({"type": ["number", "null"]}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Object => json!({"type": "object"}),
            Self::MaybeObject => json!({"type": ["object", "null"]}),
            Self::Objects => json!({"type": "array", "items": {"type": "object"}}),
            Self::MaybeObjects => json!({"type": ["array", "null"], "items": {"type": "object"}}),
        }
    }
}

/// The schema of an answer: every field is there in every answer.
pub(super) fn output(fields: &[(&str, Field)]) -> JsonObject {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, field)| ((*name).to_owned(), field.schema()))
        .collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        if let Value::Array(several) = schema {
            several.iter_mut().for_each(simplify);
        }
        return;
    };
    if let Some(inner) = fields.get("anyOf").and_then(without_null).cloned() {
        fields.remove("anyOf");
        for (name, value) in inner {
            // The field's own words come before those of its type.
            fields.entry(name).or_insert(value);
        }
    }
    if let Some(words) = fields.get("oneOf").and_then(described_words) {
        fields.remove("oneOf");
        let (words, described): (Vec<_>, Vec<_>) = words.into_iter().unzip();
        let mut description = fields
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        for words in described {
            description.push(' ');
            description.push_str(&words);
        }
        fields.insert("type".to_owned(), "string".into());
        fields.insert("enum".to_owned(), words.into());
        fields.insert("description".to_owned(), description.trim_start().into());
    }
    if let Some(Value::Array(types)) = fields.get("type")
        && let [one, null] = &types[..]
        && null == "null"
    {
        let one = one.clone();
        fields.insert("type".to_owned(), one);
    }
    if fields.get("default") == Some(&Value::Null) {
        fields.remove("default");
    }
    fields.values_mut().for_each(simplify);
}

/// The only schema but null's of a choice.
fn without_null(choices: &Value) -> Option<&Map<String, Value>> {
    match &choices.as_array()?[..] {
        [one, null] if null["type"] == "null" => one.as_object(),
        _ => None,
    }
}

/// Each word of a choice, and what it means.
fn described_words(choices: &Value) -> Option<Vec<(String, String)>> {
    let choices = choices.as_array()?;
    choices
        .iter()
        .map(|choice| {
            let word = choice["const"].as_str()?;
            let means = choice["description"].as_str().unwrap_or_default();
            Some((word.to_owned(), format!("`{word}`: {means}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::arguments::{EvidenceArguments, FeedbackArguments, ListArguments};

    #[test]
    fn schemas_are_in_one_piece_with_plain_lists_of_words() {
        for schema in [
            input::<FeedbackArguments>(),
            input::<EvidenceArguments>(),
            input::<ListArguments>(),
        ] {
            let text = Value::Object(schema).to_string();
            for word in ["$ref", "$defs", "oneOf", "anyOf", "\"null\"", "\"const\""] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
        let feedback = Value::Object(input::<FeedbackArguments>());
        assert_eq!(
            feedback["properties"]["feedback_type"]["enum"],
            json!([
                "verb_correction",
                "entity_correction",
                "phrase_mapping",
                "prohibition"
            ])
        );
        assert_eq!(feedback["required"], json!(["feedback_type", "original_input"]));
        let context = &feedback["properties"]["context"];
        for name in ["reporter", "session_id", "cbu_id", "domain"] {
            assert_eq!(context["properties"][name]["type"], "string", "{context}");
        }
        let statuses = Value::Object(input::<ListArguments>())["properties"]["statuses"].clone();
        assert_eq!(statuses["type"], "array");
        assert_eq!(statuses["items"]["enum"].as_array().map(Vec::len), Some(6));
    }
}
