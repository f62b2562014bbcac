//! A language model behind an OpenAI-compatible endpoint: `POST {base}/chat/completions`.
//!
//! <https://platform.openai.com/docs/api-reference/chat>: of the request `model`, `messages`, `temperature`, `response_format` and what
//! the settings add; of the answer `choices[0].message.content`, a text or a list of parts.
//!
//! Models answer with more than the JSON that they are asked for: with their thinking, with prose around it, in fences. What counts is
//! the last JSON object that fits.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use emend_base::{
    Entropy,
    http_client::{
        Client, ErrorKind, ServiceError, Timer,
        model::{Endpoint, Parameters},
    },
};
use emend_core::{
    Invalid, ProfileEntry,
    outputs::{
        Improved, Material, Question, Suggested, SuggestionMaterial, SuggestionType, improvement_question,
        suggestion_question,
    },
    violation::bounded_prose,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Deserializer, Value, json};

use super::{Generator, GeneratorError, Suggestions};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;
/// The most characters of what a model makes of an input.
const MAX_RUN_CHARS: usize = 32_768;
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 2_000;
/// The most suggestions of one answer.
const MAX_SUGGESTIONS: usize = 50;
/// The most places in an answer at which a JSON object is looked for.
const MAX_PLACES: usize = 10_000;
/// The marks between which models think aloud.
const THINKING: [&str; 3] = ["think", "thinking", "reasoning"];

/// Asks a model.
#[derive(Debug)]
pub struct Model {
    name: String,
    client: Client<'static>,
    parameters: Parameters,
    patience: Duration,
    /// Whether the endpoint refused `response_format`; then it is not asked for again.
    is_without_formats: AtomicBool,
}

impl Model {
    /// Asks the model of an endpoint.
    pub fn new(endpoint: &Endpoint, waiting: Arc<dyn Timer>, entropy: Entropy) -> Self {
        let client = endpoint.client(
            "the model's endpoint",
            MAX_ANSWER,
            waiting,
            entropy,
            concat!("emend-learning-svc/", env!("CARGO_PKG_VERSION")),
        );
        Self {
            name: endpoint.model.clone(),
            client,
            parameters: endpoint.parameters.clone(),
            patience: endpoint.patience(),
            is_without_formats: AtomicBool::new(false),
        }
    }

    /// The text of the model's answer. A format that the endpoint does not know is left out.
    async fn ask(&self, system: &str, user: &str, format: Option<Value>) -> Result<String, GeneratorError> {
        let format = format.filter(|_| !self.is_without_formats.load(Ordering::Relaxed));
        let Some(format) = format else {
            return self
                .complete(system, user, None)
                .await
                .map_err(|failure| unanswered(&failure));
        };
        match self.complete(system, user, Some(format)).await {
            Err(refused) if matches!(refused.kind, ErrorKind::Refused(400 | 422)) => {
                let plain = self.complete(system, user, None).await;
                if plain.is_ok() {
                    self.is_without_formats.store(true, Ordering::Relaxed);
                }
                // If it is not the format, what was said first is as good.
                plain.map_err(|failure| unanswered(&failure))
            }
            answered => answered.map_err(|failure| unanswered(&failure)),
        }
    }

    async fn complete(
        &self,
        system: &str,
        user: &str,
        format: Option<Value>,
    ) -> Result<String, ServiceError> {
        let mut request = serde_json::Map::new();
        request.insert("model".into(), json!(self.name));
        request.insert("temperature".into(), json!(0));
        request.insert(
            "messages".into(),
            json!([
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ]),
        );
        if let Some(format) = format {
            request.insert("response_format".into(), format);
        }
        self.parameters.add_to(&mut request);
        let answer: Completion = self
            .client
            .post("/chat/completions", &Value::Object(request))
            .await?;
        let choice = answer.choices.into_iter().next();
        let text = choice
            .and_then(|choice| choice.message.content)
            .map(Content::text);
        text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
            self.client
                .error(ErrorKind::Never, "answered no choice with a text")
        })
    }

    async fn ask_for<T: DeserializeOwned>(
        &self,
        question: &Question,
        (name, schema): (&str, Value),
    ) -> Result<T, GeneratorError> {
        let format = json!({
            "type": "json_schema",
            "json_schema": {"name": name, "strict": true, "schema": schema},
        });
        let answer = self
            .ask(&question.instructions, &question.material, Some(format))
            .await?;
        read_object(&answer)
            .map_err(|why| GeneratorError::BadAnswer(format!("it is not the JSON object asked for: {why}")))
    }
}

/// The last JSON object in an answer that is a `T`; the error is that of the last object, or says that there is none.
fn read_object<T: DeserializeOwned>(answer: &str) -> Result<T, String> {
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

/// A text without the thinking that it begins with.
fn without_thinking(text: &str) -> &str {
    let begins = |name: &&str| {
        let rest = text.trim_start().strip_prefix('<')?;
        rest.strip_prefix(*name)?.starts_with('>').then_some(())
    };
    for name in THINKING {
        let end = format!("</{name}>");
        // Some servers leave the first mark out.
        if (begins(&name).is_some() || !text.contains(&format!("<{name}>")))
            && let Some((_, rest)) = text.split_once(&end)
        {
            return rest;
        }
    }
    text
}

fn unanswered(failure: &ServiceError) -> GeneratorError {
    match failure.kind {
        ErrorKind::Later => GeneratorError::Unavailable(failure.to_string()),
        ErrorKind::NotFound | ErrorKind::Refused(_) => GeneratorError::Refused(failure.to_string()),
        ErrorKind::Never => GeneratorError::BadAnswer(failure.to_string()),
    }
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
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
}

impl Content {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
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

#[derive(Deserialize)]
struct ImprovementAnswer {
    prompt: String,
    reason: String,
}

#[derive(Deserialize)]
struct SuggestionsAnswer {
    /// Each read by itself.
    suggestions: Vec<Value>,
}

#[derive(Deserialize)]
struct SuggestionAnswer {
    #[serde(rename = "type")]
    suggestion: String,
    value: Value,
    reason: String,
    source_type: String,
    source_id: String,
    confidence: f64,
}

impl SuggestionAnswer {
    /// The suggestion, if it can be used: of an activity that was given, with a value that fits its type.
    fn parse(self, known: &BTreeSet<(&str, &str)>, with_experience: bool) -> Result<Suggested, Invalid> {
        let suggestion = match self.suggestion.as_str() {
            "ADD_TECHNOLOGY" => SuggestionType::AddTechnology,
            "ADD_SPECIALTY" => SuggestionType::AddSpecialty,
            "ADD_GOAL" => SuggestionType::AddGoal,
            "UPDATE_EXPERIENCE" if with_experience => SuggestionType::UpdateExperience,
            other => return Err(Invalid::new(format!("has the type {other:?}"))),
        };
        let entry = match (suggestion, &self.value) {
            (SuggestionType::UpdateExperience, Value::Number(years)) => {
                let years = years.as_u64().and_then(|years| u32::try_from(years).ok());
                ProfileEntry::years(years.unwrap_or(u32::MAX))?
            }
            (SuggestionType::UpdateExperience, _) => return Err(Invalid::new("has no number of years")),
            (_, Value::String(text)) => ProfileEntry::text(text)?,
            _ => return Err(Invalid::new("has a value that is no text")),
        };
        if !known.contains(&(self.source_type.as_str(), self.source_id.as_str())) {
            return Err(Invalid::new("names an activity that was not given"));
        }
        if !(0.0..=1.0).contains(&self.confidence) {
            return Err(Invalid::new(format!("has the confidence {}", self.confidence)));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 1,000"
        )]
        let confidence = (self.confidence * 1_000.0).round() as u16;
        Ok(Suggested {
            suggestion,
            entry,
            reason: bounded_prose(&self.reason, 1, MAX_REASON_CHARS)?,
            source_type: self.source_type,
            source_id: self.source_id,
            confidence,
        })
    }
}

/// What an answer with a better prompt is.
fn improvement_schema() -> (&'static str, Value) {
    let schema = json!({
        "type": "object",
        "properties": {"prompt": {"type": "string"}, "reason": {"type": "string"}},
        "required": ["prompt", "reason"],
        "additionalProperties": false,
    });
    ("improvement", schema)
}

/// What an answer with suggestions is.
fn suggestions_schema() -> (&'static str, Value) {
    let suggestion = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "value": {"type": ["string", "number"]},
            "reason": {"type": "string"},
            "source_type": {"type": "string"},
            "source_id": {"type": "string"},
            "confidence": {"type": "number"},
        },
        "required": ["type", "value", "reason", "source_type", "source_id", "confidence"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"suggestions": {"type": "array", "items": suggestion}},
        "required": ["suggestions"],
        "additionalProperties": false,
    });
    ("suggestions", schema)
}

#[async_trait]
impl Generator for Model {
    fn name(&self) -> &str {
        &self.name
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        let answer: ImprovementAnswer = self
            .ask_for(&improvement_question(material), improvement_schema())
            .await?;
        let checked = bounded_prose(&answer.reason, 1, MAX_REASON_CHARS);
        let reason =
            checked.map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("its reason {why}")))?;
        Ok(Improved {
            text: answer.prompt,
            reason,
        })
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Suggestions, GeneratorError> {
        let answer: SuggestionsAnswer = self
            .ask_for(&suggestion_question(material), suggestions_schema())
            .await?;
        let known: BTreeSet<(&str, &str)> = material
            .activities
            .iter()
            .map(|activity| (activity.source_type.as_str(), activity.source_id.as_str()))
            .collect();
        let mut suggestions = Suggestions::default();
        for (index, suggestion) in answer.suggestions.into_iter().enumerate() {
            if suggestions.usable.len() == MAX_SUGGESTIONS {
                let why =
                    format!("suggestions[{index}] and what follows: at most {MAX_SUGGESTIONS} are taken");
                suggestions.unusable.push(why);
                break;
            }
            let read = serde_json::from_value::<SuggestionAnswer>(suggestion)
                .map_err(|error| Invalid::new(error.to_string()))
                .and_then(|suggestion| suggestion.parse(&known, material.include_experience));
            match read {
                Ok(suggested) => suggestions.usable.push(suggested),
                Err(Invalid(why)) => suggestions.unusable.push(format!("suggestions[{index}] {why}")),
            }
        }
        match suggestions.unusable.first() {
            Some(why) if suggestions.usable.is_empty() => Err(GeneratorError::BadAnswer(why.clone())),
            _ => Ok(suggestions),
        }
    }

    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>> {
        let answer = self.ask(prompt, input, None).await;
        Some(answer.and_then(|text| {
            bounded_prose(without_thinking(&text), 1, MAX_RUN_CHARS)
                .map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("its text {why}")))
        }))
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
