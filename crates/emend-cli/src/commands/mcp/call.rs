//! A call's arguments, checked against the tool's schema, and its answer.
//!
//! Everything that is wrong with a call is named at once, by the tool's own parameters, also what a service finds.

use std::borrow::Cow;

use emend_base::status::Explained;
use emend_core::{FieldViolation, text::clean};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tonic::{Code, Status};

use super::schema;
use crate::failure::{Failure, Result};

/// The arguments, if they are as the tool's schema says. What is null is left out.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(arguments: JsonObject) -> Result<T> {
    parse_meant(arguments, |_| Vec::new())
}

/// The same of arguments that also have to mean something together: `wrong` says what does not. What it says of an argument takes the
/// place of what the schema says of it.
pub(super) fn parse_meant<T: DeserializeOwned + JsonSchema>(
    arguments: JsonObject,
    wrong: impl FnOnce(&T) -> Vec<FieldViolation>,
) -> Result<T> {
    let schema = Value::Object(schema::input::<T>());
    let mut arguments = Value::Object(arguments);
    leave_out_nulls(&mut arguments);
    let mut checked = Checked {
        violations: Vec::new(),
    };
    checked.check(&schema, &arguments, "");
    let by_schema = checked.violations;
    let violations = match serde_json::from_value(arguments) {
        Ok(arguments) => {
            let mut violations = wrong(&arguments);
            for violation in by_schema {
                if violations.iter().all(|known| known.field != violation.field) {
                    violations.push(violation);
                }
            }
            if violations.is_empty() {
                return Ok(arguments);
            }
            violations
        }
        // What the schema does not say, such as a number that is too large.
        Err(error) if by_schema.is_empty() => vec![violation("arguments", error.to_string())],
        Err(_) => by_schema,
    };
    Err(Status::from(emend_base::Error::InvalidArgument(violations)).into())
}

fn leave_out_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(leave_out_nulls);
    }
}

/// The result of a call, or why it was refused: as structured content, and for older front ends as a text, with the message
/// first. Refusals are results too, so that the assistant reads them; they have no structured content, whose form the tool's
/// schema promises.
pub(super) fn answer(result: Result<Value>, named: fn(&str) -> String) -> CallToolResult {
    let (is_error, mut object) = match result {
        Ok(value) => (false, value),
        Err(failure) => {
            let mut error = by_parameters(failure, named).to_json()["error"].take();
            let message = error.as_object_mut().and_then(|error| error.remove("message"));
            (true, json!({"message": message, "error": error}))
        }
    };
    leave_out_hidden(&mut object);
    let structured = (!is_error).then(|| object.clone());
    let message = object.as_object_mut().and_then(|object| object.remove("message"));
    let answer = Answer {
        message: message.as_ref().and_then(Value::as_str).unwrap_or_default(),
        rest: object.as_object(),
    };
    let text = serde_json::to_string(&answer).unwrap_or_default();
    let content = vec![ContentBlock::text(text)];
    if is_error {
        CallToolResult::error(content)
    } else {
        let mut result = CallToolResult::success(content);
        result.structured_content = structured;
        result
    }
}

/// Removes from all texts what people do not see: an assistant would read it all the same. Lines end with line feeds.
pub(super) fn leave_out_hidden(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = clean(text) {
                *text = clean;
            }
            if text.contains('\r') {
                *text = text.replace("\r\n", "\n").replace('\r', "\n");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_hidden),
        Value::Object(fields) => fields.values_mut().for_each(leave_out_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    message: &'a str,
    #[serde(flatten)]
    rest: Option<&'a Map<String, Value>>,
}

/// The refusal with fields of the request named as the parameters that they were made of.
fn by_parameters(failure: Failure, named: fn(&str) -> String) -> Failure {
    let Failure::Refused(mut refused) = failure else {
        return failure;
    };
    for violation in &mut refused.field_violations {
        violation.field = named(&violation.field);
    }
    if refused.code == Code::InvalidArgument && !refused.field_violations.is_empty() {
        refused.message = listed(&refused);
    }
    Failure::Refused(refused)
}

fn listed(refused: &Explained) -> String {
    let each = refused.field_violations.iter();
    let each: Vec<String> = each.map(ToString::to_string).collect();
    format!("invalid argument: {}", each.join("; "))
}

fn violation(field: &str, description: impl Into<String>) -> FieldViolation {
    FieldViolation {
        field: field.to_owned(),
        description: description.into(),
    }
}

/// What is wrong with a value, by the parts of JSON Schema that the tools' schemas use.
struct Checked {
    violations: Vec<FieldViolation>,
}

impl Checked {
    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        let words = words(schema);
        if !words.is_empty() {
            if !value.as_str().is_some_and(|word| words.contains(&word)) {
                let expected = words.join(", ");
                self.violations
                    .push(violation(path, format!("must be one of {expected}; is {value}")));
            }
            return;
        }
        let Some(expected) = schema["type"].as_str() else {
            return;
        };
        if !is_of_type(value, expected) {
            let why = format!("must be of the type {expected}; is {value}");
            self.violations.push(violation(path, why));
            return;
        }
        match value {
            Value::Object(fields) => self.check_object(schema, fields, path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.check(&schema["items"], item, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn check_object(&mut self, schema: &Value, fields: &Map<String, Value>, path: &str) {
        let within = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.violations.push(violation(&within(name), "is required"));
            }
        }
        for (name, value) in fields {
            match (
                &schema["properties"][name.as_str()],
                &schema["additionalProperties"],
            ) {
                (Value::Null, Value::Bool(false)) => {
                    let known = schema["properties"].as_object().into_iter().flatten();
                    let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
                    let why = format!("is no argument here; it takes {}", known.join(", "));
                    self.violations.push(violation(&within(name), why));
                }
                (Value::Null, others) => self.check(others, value, &within(name)),
                (known, _) => self.check(known, value, &within(name)),
            }
        }
    }
}

/// The words that a value must be one of; empty if it may be any.
fn words(schema: &Value) -> Vec<&str> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    listed.filter_map(Value::as_str).collect()
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::arguments::{
        EvidenceArguments, FeedbackArguments, ListArguments, ResolveArguments,
    };

    fn wrong<T: DeserializeOwned + JsonSchema>(arguments: &Value) -> Vec<String> {
        let arguments = arguments.as_object().expect("an object").clone();
        match parse::<T>(arguments) {
            Ok(_) => Vec::new(),
            Err(Failure::Refused(refused)) => {
                let fields = refused.field_violations.iter();
                let mut fields: Vec<String> = fields.map(|violation| violation.field.clone()).collect();
                fields.sort();
                fields
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn everything_that_is_wrong_with_the_arguments_is_named_at_once() {
        let feedback = json!({
            "feedback_type": "verbs", "system_choice": 7, "scope": "all", "reporter": "ana", "context": {"topic": 1},
        });
        let fields = wrong::<FeedbackArguments>(&feedback);
        assert_eq!(
            fields,
            [
                "context.topic",
                "feedback_type",
                "original_input",
                "reporter",
                "scope",
                "system_choice"
            ]
        );
        let resolve = json!({"phrase": "a", "own_choices": [{"value": "b", "score": "high", "why": ""}, 7]});
        let fields = wrong::<ResolveArguments>(&resolve);
        assert_eq!(
            fields,
            ["own_choices[0].score", "own_choices[0].why", "own_choices[1]"]
        );
        let list = json!({"statuses": ["pending", "open"], "page_size": 1.5});
        assert_eq!(wrong::<ListArguments>(&list), ["page_size", "statuses[1]"]);
        assert_eq!(
            wrong::<ListArguments>(&json!({"page_size": 5_000_000_000_i64})),
            ["arguments"]
        );
        let evidence = json!({"task_id": "t", "action": "claim_reject", "args": {"claim": "c"}});
        assert_eq!(wrong::<EvidenceArguments>(&evidence), ["args.claim"]);
        // What may be left out may be null.
        let nothing = json!({"statuses": null, "phrase": null});
        assert_eq!(wrong::<ListArguments>(&nothing), [""; 0]);
    }

    #[test]
    fn an_answer_is_structured_and_a_text_that_begins_with_its_message() {
        let text = |result| {
            let answer = answer(result, str::to_owned);
            let answer = serde_json::to_value(&answer).expect("JSON");
            let text = answer["content"][0]["text"].as_str().expect("a text").to_owned();
            let said: Value = serde_json::from_str(&text).expect("JSON");
            match answer.get("structuredContent") {
                Some(structured) => assert_eq!(*structured, said),
                None => assert_eq!(answer["isError"], true, "{answer}"),
            }
            text
        };
        let good = text(Ok(json!({"found": true, "message": "Found."})));
        assert_eq!(good, r#"{"message":"Found.","found":true}"#);
        let hidden = text(Ok(
            json!({"message": "a\u{202E}\u{1B}\r\nc", "of": [{"text": "b\u{E0041}\n\r"}]}),
        ));
        assert_eq!(hidden, r#"{"message":"a\nc","of":[{"text":"b\n\n"}]}"#);
        let bad = text(Err(Failure::usage("no")));
        assert_eq!(bad, r#"{"message":"no","error":{"code":"INVALID_ARGUMENT"}}"#);
    }
}
