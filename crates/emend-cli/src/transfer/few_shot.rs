//! Few-shot examples as JSON lines, each of which becomes a rating.
//!
//! | form | rated |
//! |---|---|
//! | `{"input", "output"}`, with any further field of a rating | as `value` says; good without one |
//! | `{"prompt", "completion"}` | likewise |
//! | `{"messages": [{"role", "content"}, …]}` | the last of the assistant to the last of the user before it |
//! | `{"prompt", "chosen", "rejected"}` | the rejected one bad, corrected to the chosen one |
//!
//! An example without a `target_id` has one that is derived from what it says, so that it is the same in every import.

use emend_core::ratings::{RatingClass, TARGETS, target_name};
use emend_proto::common::v1::Rating;
use serde::Deserialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::record::RowError;

/// What is said of an output, and by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The rating.
    pub rating: Rating,
    /// Why; may be empty.
    pub reason: String,
    /// Who rated it; may be empty.
    pub reporter: String,
    /// Derived from all of it: it makes a second import of the same example safe.
    pub request_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    target: Option<String>,
    #[serde(alias = "rating", alias = "label")]
    value: Option<Value>,
    #[serde(alias = "id")]
    target_id: Option<String>,
    #[serde(alias = "prompt", alias = "input_text")]
    input: Option<String>,
    #[serde(alias = "completion", alias = "output_text", alias = "rejected")]
    output: Option<String>,
    #[serde(alias = "corrected_text")]
    corrected: Option<String>,
    /// What a pair prefers.
    chosen: Option<String>,
    messages: Option<Vec<Turn>>,
    #[serde(alias = "correct_judgement")]
    judgement: Option<String>,
    issues: Vec<String>,
    prompt_version: Option<String>,
    reason: Option<String>,
    reporter: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    role: String,
    content: String,
}

impl Example {
    /// Reads a line. Its target is the one it names, else the given one.
    pub fn parse(text: &str, target: Option<&str>) -> Result<Self, RowError> {
        let written: Written = serde_json::from_str(text)
            .map_err(|error| RowError::row(format!("is not the expected JSON: {error}")))?;
        let is_pair = written.chosen.is_some();
        let (input, output) = match written.messages {
            Some(turns) => asked_and_answered(turns)?,
            None => (written.input, written.output),
        };
        let required = |name: &str, value: Option<String>| {
            let value = value.filter(|value| !value.trim().is_empty());
            value.ok_or_else(|| RowError::field(name, "is required"))
        };
        let target = written.target.or_else(|| target.map(str::to_owned));
        let target =
            target.ok_or_else(|| RowError::field("target", "is required: name it, or pass --target"))?;
        let target = target_name(&target).to_owned();
        let class = if is_pair {
            RatingClass::Bad
        } else {
            RatingClass::Good
        };
        let value = match written.value {
            Some(Value::String(value)) => value,
            None => value_of(&target, class)?,
            Some(other) => {
                let example = value_of(&target, class).unwrap_or_else(|_| "GOOD".into());
                return Err(RowError::field(
                    "value",
                    format!("must be a value of the target, such as {example}, not {other}"),
                ));
            }
        };
        let mut rating = Rating {
            target,
            value,
            target_id: written.target_id.unwrap_or_default(),
            input_text: required("input", input)?,
            output_text: required("output", output)?,
            prompt_version: written.prompt_version.unwrap_or_default(),
            issues: written.issues,
            corrected_text: written.corrected.or(written.chosen).unwrap_or_default(),
            correct_judgement: written.judgement.unwrap_or_default(),
            ..Rating::default()
        };
        if rating.target_id.is_empty() {
            let texts = [&rating.target, &rating.input_text, &rating.output_text];
            rating.target_id = format!("example-{:032x}", digest(&texts.map(String::as_str)));
        }
        let reason = written.reason.unwrap_or_default();
        let reporter = written.reporter.unwrap_or_default();
        let mut all = vec![
            rating.target.as_str(),
            &rating.value,
            &rating.target_id,
            &rating.input_text,
            &rating.output_text,
            &rating.prompt_version,
            &rating.corrected_text,
            &rating.correct_judgement,
            &reason,
            &reporter,
        ];
        all.extend(rating.issues.iter().map(String::as_str));
        let request_id = format!("example-{:032x}", digest(&all));
        Ok(Self {
            rating,
            reason,
            reporter,
            request_id,
        })
    }
}

/// A digest of texts, each with its length, so that none runs into the next.
fn digest(texts: &[&str]) -> u128 {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    xxh3_128(&bytes)
}

/// The first value of a target of every namespace that counts so.
fn value_of(target: &str, class: RatingClass) -> Result<String, RowError> {
    let known = TARGETS.iter().find(|known| known.name == target);
    let value = known.and_then(|known| known.values.iter().find(|value| value.class == class));
    let value = value.map(|value| value.name.to_owned());
    value.ok_or_else(|| RowError::field("value", format!("is required with {target}")))
}

/// The last answer of a conversation, and what it answers.
fn asked_and_answered(turns: Vec<Turn>) -> Result<(Option<String>, Option<String>), RowError> {
    let mut turns = turns.into_iter().rev();
    let answer = turns.find(|turn| turn.role == "assistant");
    let answer = answer.ok_or_else(|| RowError::field("messages", "have none of the assistant"))?;
    let question = turns.find(|turn| turn.role == "user");
    let question =
        question.ok_or_else(|| RowError::field("messages", "have none of the user before the answer"))?;
    Ok((Some(question.content), Some(answer.content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        match Example::parse(line, Some("INTERPRET")) {
            Ok(Example { rating, reporter, .. }) => format!(
                "{} {}: {} → {} ({}) [{}] {reporter}",
                rating.target,
                rating.value,
                rating.input_text,
                rating.output_text,
                rating.corrected_text,
                rating.issues.join(";"),
            ),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_form_of_example_is_a_rating() {
        for (line, expected) in [
            (r#"{"input": "a", "output": "b"}"#, "INTERPRET GOOD: a → b () [] "),
            (
                r#"{"input": "a", "output": "b", "target": "summarize-daily"}"#,
                "SUMMARIZE_DAILY GOOD: a → b () [] ",
            ),
            (
                r#"{"prompt": "a", "completion": "b", "target": "TASK_EXTRACT"}"#,
                "TASK_EXTRACT APPROVED: a → b () [] ",
            ),
            (
                r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#,
                "INTERPRET GOOD: a → b () [] ",
            ),
            (
                r#"{"input": "a", "output": "b", "rating": 0.5}"#,
                "value: must be a value of the target, such as GOOD, not 0.5",
            ),
            (
                r#"{"prompt": "a", "chosen": "c", "rejected": "b"}"#,
                "INTERPRET BAD: a → b (c) [] ",
            ),
            (
                r#"{"input": "a", "output": "b", "value": "BAD", "issues": ["evasive"], "corrected": "c", "reporter": "ana"}"#,
                "INTERPRET BAD: a → b (c) [evasive] ana",
            ),
            (r#"{"input": "a"}"#, "output: is required"),
            (
                r#"{"input": "a", "output": "b", "target": "TRIAGE"}"#,
                "value: is required with TRIAGE",
            ),
            (
                r#"{"messages": [{"role": "user", "content": "a"}]}"#,
                "messages: have none of the assistant",
            ),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
        assert!(said("[1]").starts_with("is not the expected JSON: "));
        assert!(said(r#"{"inptu": "a"}"#).contains("unknown field `inptu`"));
        let refused = Example::parse(r#"{"input": "a", "output": "b"}"#, None).unwrap_err();
        assert_eq!(refused.field, "target");
    }

    #[test]
    fn an_example_is_the_same_in_every_import_and_no_other() {
        let read = |line: &str| Example::parse(line, Some("INTERPRET")).unwrap();
        let one = read(r#"{"input": "a", "output": "b"}"#);
        assert_eq!(one, read(r#"{"prompt": "a", "completion": "b"}"#));
        let other = read(r#"{"input": "a", "output": "b", "reason": "short"}"#);
        assert_eq!(one.rating.target_id, other.rating.target_id);
        assert_ne!(one.request_id, other.request_id);
        assert_ne!(
            one.rating.target_id,
            read(r#"{"input": "ab", "output": ""}"#.replace("\"\"", "\"x\"").as_str())
                .rating
                .target_id
        );
        assert!(one.request_id.len() <= 64);
    }
}
