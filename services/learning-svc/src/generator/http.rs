//! A language model behind an OpenAI-compatible endpoint: `POST {base}/chat/completions`.
//!
//! <https://platform.openai.com/docs/api-reference/chat>: of the request `model`, `messages` and `temperature`, of the answer
//! `choices[0].message.content`.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use emend_base::{
    Entropy,
    http_client::{Client, ErrorKind, ServiceError, Timer, model::Endpoint},
};
use emend_core::{
    Invalid, ProfileEntry,
    outputs::{
        Improved, Material, Question, Suggested, SuggestionMaterial, SuggestionType, improvement_question,
        json_object, suggestion_question,
    },
    violation::bounded_prose,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use super::{Generator, GeneratorError};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;
/// The most characters of what a model makes of an input.
const MAX_RUN_CHARS: usize = 32_768;
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 2_000;
/// The most suggestions of one answer.
const MAX_SUGGESTIONS: usize = 50;

/// Asks a model.
#[derive(Debug)]
pub struct Model {
    name: String,
    client: Client<'static>,
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
        }
    }

    async fn ask(&self, system: &str, user: &str) -> Result<String, GeneratorError> {
        let message = json!({
            "model": self.name,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
        });
        let answer: Completion = self
            .client
            .post("/chat/completions", &message)
            .await
            .map_err(|failure| unanswered(&failure))?;
        let content = answer
            .choices
            .into_iter()
            .next()
            .and_then(|choice| choice.message.content);
        content.ok_or_else(|| GeneratorError::BadAnswer("it has no choice with a text".into()))
    }

    async fn ask_for<T: DeserializeOwned>(&self, question: &Question) -> Result<T, GeneratorError> {
        let answer = self.ask(&question.instructions, &question.material).await?;
        serde_json::from_str(json_object(&answer)).map_err(|error| {
            GeneratorError::BadAnswer(format!("it is not the JSON object asked for: {error}"))
        })
    }
}

fn unanswered(failure: &ServiceError) -> GeneratorError {
    match failure.kind {
        ErrorKind::Later => GeneratorError::Unavailable(failure.to_string()),
        ErrorKind::NotFound | ErrorKind::Never => GeneratorError::BadAnswer(failure.to_string()),
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
    content: Option<String>,
}

#[derive(Deserialize)]
struct ImprovementAnswer {
    prompt: String,
    reason: String,
}

#[derive(Deserialize)]
struct SuggestionsAnswer {
    suggestions: Vec<SuggestionAnswer>,
}

#[derive(Deserialize)]
struct SuggestionAnswer {
    #[serde(rename = "type")]
    suggestion: String,
    value: serde_json::Value,
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
            (SuggestionType::UpdateExperience, serde_json::Value::Number(years)) => {
                let years = years.as_u64().and_then(|years| u32::try_from(years).ok());
                ProfileEntry::years(years.unwrap_or(u32::MAX))?
            }
            (SuggestionType::UpdateExperience, _) => return Err(Invalid::new("has no number of years")),
            (_, serde_json::Value::String(text)) => ProfileEntry::text(text)?,
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

#[async_trait]
impl Generator for Model {
    fn name(&self) -> &str {
        &self.name
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        let answer: ImprovementAnswer = self.ask_for(&improvement_question(material)).await?;
        let checked = bounded_prose(&answer.reason, 1, MAX_REASON_CHARS);
        let reason =
            checked.map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("its reason {why}")))?;
        Ok(Improved {
            text: answer.prompt,
            reason,
        })
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError> {
        let answer: SuggestionsAnswer = self.ask_for(&suggestion_question(material)).await?;
        if answer.suggestions.len() > MAX_SUGGESTIONS {
            let why = format!(
                "it has {} suggestions, at most {MAX_SUGGESTIONS}",
                answer.suggestions.len()
            );
            return Err(GeneratorError::BadAnswer(why));
        }
        let known: BTreeSet<(&str, &str)> = material
            .activities
            .iter()
            .map(|activity| (activity.source_type.as_str(), activity.source_id.as_str()))
            .collect();
        let suggestions = (0..)
            .zip(answer.suggestions)
            .map(|(index, suggestion): (usize, _)| {
                suggestion
                    .parse(&known, material.include_experience)
                    .map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("suggestions[{index}] {why}")))
            });
        suggestions.collect()
    }

    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>> {
        let answer = self.ask(prompt, input).await;
        Some(answer.and_then(|text| {
            bounded_prose(&text, 1, MAX_RUN_CHARS)
                .map_err(|Invalid(why)| GeneratorError::BadAnswer(format!("its text {why}")))
        }))
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
