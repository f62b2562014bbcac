//! A language model behind an OpenAI-compatible endpoint: `POST {base}/chat/completions`.
//!
//! <https://platform.openai.com/docs/api-reference/chat>: of the request `model`, `messages`, `temperature`, `response_format` and what
//! the settings add; of the answer `choices[0]`: its `message.content`, a text or a list of parts, `message.refusal`, and
//! `finish_reason`. What goes wrong names the address and, where one is to be changed, the setting.

mod answer;

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
use serde_json::{Value, json};

use self::answer::{Choice, Completion, endless_thinking, error_within, read_object, without_thinking};
use super::{Generator, GeneratorError, Suggestions};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;
/// The most characters of what a model makes of an input.
const MAX_RUN_CHARS: usize = 32_768;
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 2_000;
/// The most suggestions of one answer.
const MAX_SUGGESTIONS: usize = 50;
/// Where questions are sent, below the endpoint's address.
const PATH: &str = "/chat/completions";
/// The parameters that bound the length of an answer, in the words of various endpoints.
const LENGTHS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Asks a model.
#[derive(Debug)]
pub struct Model {
    name: String,
    /// Where questions are sent.
    address: String,
    has_key: bool,
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
            address: format!("{}{PATH}", endpoint.url.to_string().trim_end_matches('/')),
            has_key: endpoint.key.is_some(),
            client,
            parameters: endpoint.parameters.clone(),
            patience: endpoint.patience(),
            is_without_formats: AtomicBool::new(false),
        }
    }

    /// The model's answer. A format that the endpoint does not know is left out.
    async fn ask(&self, system: &str, user: &str, format: Option<Value>) -> Result<Answer, GeneratorError> {
        let format = format.filter(|_| !self.is_without_formats.load(Ordering::Relaxed));
        let has_format = format.is_some();
        let mut chosen = self.complete(system, user, format).await;
        if let Err(refused) = &chosen
            && has_format
            && matches!(refused.kind, ErrorKind::Refused(400 | 422))
        {
            chosen = self.complete(system, user, None).await;
            if chosen.is_ok() {
                self.is_without_formats.store(true, Ordering::Relaxed);
            }
        }
        self.answer_of(chosen.map_err(|failure| self.unanswered(&failure))?)
    }

    async fn complete(
        &self,
        system: &str,
        user: &str,
        format: Option<Value>,
    ) -> Result<Choice, ServiceError> {
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
        let answer: Value = self.client.post(PATH, &Value::Object(request)).await?;
        if let Some((error, code)) = error_within(&answer) {
            let message = self.client.message_of(&error);
            let message = message.unwrap_or_else(|| "it has no message".to_owned());
            let kind = match code {
                Some(404) => ErrorKind::NotFound,
                Some(408 | 425 | 429 | 500..=599) => ErrorKind::Later,
                Some(code @ 400..=499) => ErrorKind::Refused(code),
                _ => ErrorKind::Never,
            };
            let message = format!("answered with an error: {message}");
            return Err(self.client.error(kind, message));
        }
        let said = self.client.message_of(&answer);
        let never = |message: String| self.client.error(ErrorKind::Never, message);
        let completion: Completion = serde_json::from_value(answer)
            .map_err(|error| never(format!("answered something else than expected: {error}")))?;
        completion.choices.into_iter().next().ok_or_else(|| {
            never(said.map_or_else(
                || "answered no choice with a text".to_owned(),
                |said| format!("answered no choice with a text, but: {said}"),
            ))
        })
    }

    /// What the model says, if it says anything that can be used.
    fn answer_of(&self, choice: Choice) -> Result<Answer, GeneratorError> {
        if let Some(words) = choice.refusal() {
            let words = self.client.shown(words).unwrap_or_default();
            return Err(GeneratorError::Refused(format!("the model says: {words}")));
        }
        if choice.is_filtered() {
            let why = "the endpoint's content filter held the answer back".to_owned();
            return Err(GeneratorError::Refused(why));
        }
        let is_cut_off = choice.is_cut_off();
        let text = choice.into_text();
        let why = if text.trim().is_empty() {
            format!("{} answered no choice with a text", self.address)
        } else if let Some(mark) = endless_thinking(&text) {
            format!("it is thinking alone: <{mark}> has no end")
        } else {
            return Ok(Answer { text, is_cut_off });
        };
        Err(if is_cut_off {
            self.cut_off()
        } else {
            GeneratorError::BadAnswer(why)
        })
    }

    /// That an answer ends at the endpoint's limit, and what raises that.
    fn cut_off(&self) -> GeneratorError {
        let set = LENGTHS
            .into_iter()
            .find_map(|name| Some((name, self.parameters.get(name)?)));
        GeneratorError::BadAnswer(match set {
            Some((name, value)) => {
                format!("it is cut off at {name} {value}; raise {name} in --generator-parameters")
            }
            None => format!(
                "it is cut off at the endpoint's limit; set {} in --generator-parameters",
                LENGTHS.join(" or ")
            ),
        })
    }

    /// Why there is no answer, from where, and which setting may mend it.
    fn unanswered(&self, failure: &ServiceError) -> GeneratorError {
        let settings = match failure.kind {
            ErrorKind::Refused(401 | 403) if !self.has_key => {
                " (no key was sent; see --generator-key-file and --generator-url)"
            }
            ErrorKind::Refused(401 | 403) => " (see --generator-key-file and --generator-url)",
            ErrorKind::NotFound => " (see --generator-url and --generator-model)",
            ErrorKind::Refused(405) | ErrorKind::Misplaced => " (see --generator-url)",
            ErrorKind::Refused(_) => " (see --generator-model and --generator-parameters)",
            ErrorKind::Later | ErrorKind::Never => "",
        };
        let message = format!("{}: {}{settings}", self.address, failure.message);
        match failure.kind {
            ErrorKind::Later => GeneratorError::Unavailable(message),
            ErrorKind::NotFound | ErrorKind::Refused(_) | ErrorKind::Misplaced => {
                GeneratorError::Refused(message)
            }
            ErrorKind::Never => GeneratorError::BadAnswer(message),
        }
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
        read_object(&answer.text).map_err(|why| {
            if answer.is_cut_off {
                self.cut_off()
            } else {
                GeneratorError::BadAnswer(format!("it is not the JSON object asked for: {why}"))
            }
        })
    }
}

/// What a model says.
struct Answer {
    text: String,
    /// Whether it ends at a limit of the endpoint.
    is_cut_off: bool,
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
        Some(answer.and_then(|Answer { text, is_cut_off }| {
            if is_cut_off {
                return Err(self.cut_off());
            }
            bounded_prose(without_thinking(&text), 1, MAX_RUN_CHARS)
                .map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("its text {why}")))
        }))
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
