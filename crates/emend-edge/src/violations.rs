//! What is wrong with a request, said of each field, by the schema of what is taken.
//!
//! serde stops at the first thing that it does not like and names no path. A request that it refused is therefore compared with
//! the schema that describes it to programs.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use emend_binding::Error;
use emend_client::Violations;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::openapi::plain_choices;

/// The longest value that is shown, in characters.
const SHOWN: usize = 60;

/// A request as it is taken, or every field that is wrong.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(asked: &Value) -> Result<T, Error> {
    // Once more only if it is refused: what is asked thousands of times a second is well-formed.
    T::deserialize(asked).map_err(|refused| {
        let mut violations = Violations::new();
        compare("", &schema::<T>(), asked, &mut violations);
        if violations.is_empty() {
            violations.add("request", refused.to_string());
        }
        violations.into()
    })
}

/// The schema of what is taken, made once.
fn schema<T: JsonSchema>() -> Arc<Value> {
    static MADE: Mutex<BTreeMap<Cow<'static, str>, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = made.entry(T::schema_id()).or_insert_with(|| {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        plain_choices(&mut schema);
        schema.sort_all_objects();
        Arc::new(schema)
    });
    Arc::clone(schema)
}

fn compare(path: &str, schema: &Value, asked: &Value, violations: &mut Violations) {
    if let Some(others) = schema.get("anyOf").and_then(Value::as_array) {
        // A value or nothing.
        let given = others.iter().find(|other| !is_of(other, &Value::Null));
        if let Some(given) = given.filter(|_| !asked.is_null()) {
            compare(path, given, asked, violations);
        }
        return;
    }
    if !is_of(schema, asked) {
        violations.add(
            field(path),
            format!("must be {}, is {}", kinds(schema), shown(asked)),
        );
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(asked)
    {
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        let why = format!("must be one of {}, is {}", choices.join(", "), shown(asked));
        violations.add(field(path), why);
    }
    match asked {
        Value::Object(given) => compare_fields(path, schema, given, violations),
        Value::Array(items) => {
            if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
                && items.len() as u64 > most
            {
                violations.add(
                    field(path),
                    format!("must be at most {most}, are {}", items.len()),
                );
            }
            if let Some(schema) = schema.get("items") {
                for (place, item) in items.iter().enumerate() {
                    compare(&format!("{path}[{place}]"), schema, item, violations);
                }
            }
        }
        _ => {}
    }
}

fn compare_fields(path: &str, schema: &Value, given: &Map<String, Value>, violations: &mut Violations) {
    let none = Map::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let within = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !given.contains_key(name) {
            violations.add(within(name), "must be given");
        }
    }
    let others = schema.get("additionalProperties");
    // By name, whatever else is built with serde_json.
    for (name, value) in given.iter().collect::<BTreeMap<_, _>>() {
        match known.get(name).or(others) {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                violations.add(
                    within(name),
                    format!("is unknown: known are {}", known.join(", ")),
                );
            }
            Some(schema) => compare(&within(name), schema, value, violations),
        }
    }
}

fn field(path: &str) -> &str {
    if path.is_empty() { "request" } else { path }
}

/// The types that a schema allows; none: any.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(schema: &Value, asked: &Value) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.iter().any(|name| match *name {
            "null" => asked.is_null(),
            "string" => asked.is_string(),
            // An address says it as a text.
            "boolean" => asked.is_boolean() || asked == "true" || asked == "false",
            "integer" => asked.is_i64() || asked.is_u64(),
            "number" => asked.is_number(),
            "array" => asked.is_array(),
            "object" => asked.is_object(),
            _ => false,
        })
}

/// What a schema allows, in words.
fn kinds(schema: &Value) -> String {
    let words = types(schema).into_iter().filter_map(|name| match name {
        "string" => Some("a text"),
        "boolean" => Some("true or false"),
        "integer" => Some("a whole number"),
        "number" => Some("a number"),
        "array" => Some("a list"),
        "object" => Some("an object"),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" or ")
}

fn shown(asked: &Value) -> String {
    match asked {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lookups::{Expand, Resolve};

    fn found<T: DeserializeOwned + JsonSchema>(asked: &Value) -> Vec<String> {
        let refused = parse::<T>(asked).err().expect("it is refused");
        let found = refused.violations.iter();
        found
            .map(|violation| format!("{}: {}", violation.field, violation.description))
            .collect()
    }

    #[test]
    fn every_field_that_is_wrong_is_named_with_what_it_must_be() {
        assert_eq!(
            found::<Resolve>(&json!({
                "phrases": "a",
                "kind": 3,
                "candidates": [{"value": "a", "score": 0.5}, {"value": null, "score": "high", "id": 1}, "b"],
            })),
            [
                "phrase: must be given",
                "candidates[1].id: is unknown: known are score, value",
                "candidates[1].score: must be a number, is \"high\"",
                "candidates[1].value: must be a text, is null",
                "candidates[2]: must be an object, is \"b\"",
                "kind: must be a text, is 3",
                "phrases: is unknown: known are candidates, kind, near, phrase, user",
            ]
        );
        assert_eq!(
            found::<Expand>(&json!({"text": "a", "as": "sphinx", "units": "words"})),
            [
                "as: must be one of opensearch, elasticsearch, solr, lucene, postgres, meilisearch, typesense, plain, is \"sphinx\"",
                "units: must be one of code_points, utf16, bytes, is \"words\"",
            ]
        );
        assert_eq!(
            found::<Resolve>(&json!([])),
            ["request: must be an object, is a list of 0"]
        );
        let many = vec![json!({"value": "a", "score": 1}); 1_001];
        let candidates = json!({"phrase": 1, "candidates": many});
        assert_eq!(
            found::<Resolve>(&candidates),
            [
                "candidates: must be at most 1000, are 1001",
                "phrase: must be a text, is 1"
            ]
        );
    }
}
