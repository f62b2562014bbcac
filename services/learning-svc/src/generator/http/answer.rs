//! What endpoints answer, and what models say in it.
//!
//! Models answer with more than the JSON that they are asked for: with their thinking, with prose around it, in fences. What counts is
//! the last JSON object that fits.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Deserializer, Value};

/// The most places in an answer at which a JSON object is looked for.
const MAX_PLACES: usize = 10_000;
/// The marks between which models think aloud.
const THINKING: [&str; 3] = ["think", "thinking", "reasoning"];

/// An answer.
#[derive(Deserialize)]
pub(super) struct Completion {
    #[serde(default)]
    pub(super) choices: Vec<Choice>,
}

/// One of the texts that may be chosen from.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Option<Content>,
    refusal: Option<String>,
}

/// What a message says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of it; of those that are no text, such as thinking, nothing is kept.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

impl Choice {
    /// Whether the endpoint ended the text at its limit.
    pub(super) fn is_cut_off(&self) -> bool {
        self.finish_reason.as_deref() == Some("length")
    }

    /// Whether the endpoint held the text back.
    pub(super) fn is_filtered(&self) -> bool {
        self.finish_reason.as_deref() == Some("content_filter")
    }

    /// With which words the model refuses, if it does.
    pub(super) fn refusal(&self) -> Option<&str> {
        let within = match &self.message.content {
            Some(Content::Parts(parts)) => parts.iter().find_map(|part| part.refusal.as_deref()),
            Some(Content::Text(_)) | None => None,
        };
        let refusal = self.message.refusal.as_deref().or(within);
        refusal.filter(|words| !words.trim().is_empty())
    }

    /// What the model says.
    pub(super) fn into_text(self) -> String {
        match self.message.content {
            None => String::new(),
            Some(Content::Text(text)) => text,
            Some(Content::Parts(parts)) => {
                let is_text = |part: &Part| matches!(&*part.kind, "text" | "output_text");
                parts
                    .into_iter()
                    .filter(is_text)
                    .filter_map(|part| part.text)
                    .collect()
            }
        }
    }
}

/// The error that an endpoint put into an answer of the status 200, as an object with the name `error`, and its code.
pub(super) fn error_within(answer: &Value) -> Option<(Value, Option<u16>)> {
    let is_said = |error: &&Value| match error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    let error = ["/error", "/choices/0/error"]
        .iter()
        .find_map(|place| answer.pointer(place).filter(is_said))?;
    let code = ["code", "status"].iter().find_map(|name| match error.get(name)? {
        Value::Number(code) => u16::try_from(code.as_u64()?).ok(),
        Value::String(code) => code.parse().ok(),
        _ => None,
    });
    Some((serde_json::json!({ "error": error }), code))
}

/// The last JSON object in an answer that is a `T`; the error is that of the last object, or says that there is none.
pub(super) fn read_object<T: DeserializeOwned>(answer: &str) -> Result<T, String> {
    let mut found = Err("there is none in it".to_owned());
    let mut from = 0;
    for _ in 0..MAX_PLACES {
        let rest = answer.get(from..).unwrap_or_default();
        let Some(place) = rest.find('{') else { break };
        from += place;
        let rest = answer.get(from..).unwrap_or_default();
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                from += values.byte_offset();
                match serde_json::from_value(value) {
                    Ok(fits) => found = Ok(fits),
                    Err(error) if found.is_err() => found = Err(error.to_string()),
                    Err(_) => {}
                }
            }
            _ => from += 1,
        }
    }
    found
}

/// The mark with which a text begins to think aloud, if it never ends that: what follows is no answer.
pub(super) fn endless_thinking(text: &str) -> Option<&'static str> {
    let name = THINKING.into_iter().find(|name| begins_with(text, name))?;
    (!text.contains(&format!("</{name}>"))).then_some(name)
}

/// A text without the thinking that it begins with.
pub(super) fn without_thinking(text: &str) -> &str {
    for name in THINKING {
        let end = format!("</{name}>");
        // Some servers leave the first mark out.
        if (begins_with(text, name) || !text.contains(&format!("<{name}>")))
            && let Some((_, rest)) = text.split_once(&end)
        {
            return rest;
        }
    }
    text
}

fn begins_with(text: &str, mark: &str) -> bool {
    let rest = text.trim_start().strip_prefix('<');
    let rest = rest.and_then(|rest| rest.strip_prefix(mark));
    rest.is_some_and(|rest| rest.starts_with('>'))
}
