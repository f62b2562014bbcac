//! A model behind an OpenAI-compatible server: where it is, and with which key it is asked.

use std::{fmt, fs, path::Path, str::FromStr, sync::Arc, time::Duration};

use emend_core::Invalid;
use http::{HeaderValue, Uri, header::AUTHORIZATION};
use serde_json::Value;

use super::{Client, Key, Limits, Timer};
use crate::Entropy;

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub struct Endpoint {
    /// The address below which the paths of the API are, for example `https://api.openai.com/v1`.
    pub url: Uri,
    /// The model's name.
    pub model: String,
    /// The key, sent as a bearer token; none: no key is sent.
    pub key: Option<HeaderValue>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often a question is asked at most, where the answer is 429 or 5xx or none.
    pub attempts: u32,
    /// Further parameters of a request.
    pub parameters: Parameters,
}

/// Further parameters of a request to a model, such as `temperature` or `max_tokens`: a JSON object, of which `null` leaves a
/// parameter out that is sent otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(serde_json::Map<String, Value>);

/// What a request says itself, and no parameter may.
const OWN: [&str; 5] = ["model", "messages", "stream", "n", "response_format"];

impl FromStr for Parameters {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parameters: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            Invalid::new(format!(
                "must be a JSON object, such as {{\"temperature\": 0.2}}: {error}"
            ))
        })?;
        match OWN.iter().find(|own| parameters.contains_key(**own)) {
            Some(own) => Err(Invalid::new(format!(
                "must not have {own:?}, which the request says itself"
            ))),
            None => Ok(Self(parameters)),
        }
    }
}

impl Parameters {
    /// The value of one, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Adds them to a request, in the place of what it says by itself.
    pub fn add_to(&self, request: &mut serde_json::Map<String, Value>) {
        for (name, value) in &self.0 {
            if value.is_null() {
                request.remove(name);
            } else {
                request.insert(name.clone(), value.clone());
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("model", &self.model)
            .field("has_key", &self.key.is_some())
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .field("parameters", &self.parameters)
            .finish()
    }
}

impl Endpoint {
    /// How long a question may take, with all its attempts and the waits between them, as far as the server does not ask for longer
    /// ones; half an hour at most.
    pub fn patience(&self) -> Duration {
        let asked = self.timeout.saturating_mul(self.attempts);
        let waits = super::BACKOFF.max.saturating_mul(self.attempts.saturating_sub(1));
        asked.saturating_add(waits).min(Duration::from_mins(30))
    }

    /// A client of the server, which errors call `service`; `agent` is how the client calls itself, and `max_answer` the most bytes
    /// of an answer, whole MiB. The log tells of each further attempt.
    pub fn client(
        &self,
        service: &'static str,
        max_answer: usize,
        waiting: Arc<dyn Timer>,
        entropy: Entropy,
        agent: &'static str,
    ) -> Client<'static> {
        let key = self.key.clone();
        let key = key.map_or(Key::None, |key| Key::Header(AUTHORIZATION, key));
        let limits = Limits {
            timeout: self.timeout,
            attempts: self.attempts,
            interval: Duration::ZERO,
            max_answer,
        };
        Client::new(service, self.url.clone(), key, limits, waiting, entropy, agent).on_retry(Box::new(
            |reason, wait| {
                tracing::warn!(reason, ?wait, "asking the model again");
            },
        ))
    }
}

/// The bearer token for a key, which never appears in logs.
pub fn bearer(key: &str) -> Result<HeaderValue, Invalid> {
    let key = key.trim();
    if key.is_empty() {
        return Err(Invalid::new("must not be empty"));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {key}"))
        .map_err(|_| Invalid::new("must have only visible ASCII characters"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The bearer token for the key of a service in a file; an error says whose it is and names the file.
pub fn bearer_from_file(service: &str, path: &Path) -> Result<HeaderValue, Invalid> {
    let key = fs::read_to_string(path).map_err(|error| {
        Invalid::new(format!(
            "can't read the key of {service} from {}: {error}",
            path.display()
        ))
    })?;
    bearer(&key)
        .map_err(|Invalid(why)| Invalid::new(format!("the key of {service} in {} {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_added_replace_and_leave_out_but_say_nothing_that_the_request_says() {
        let parameters: Parameters =
            r#"{"temperature": null, "max_tokens": 400, "seed": 7}"#.parse().unwrap();
        let mut request = json!({"model": "small-1", "temperature": 0, "seed": 1});
        parameters.add_to(request.as_object_mut().unwrap());
        assert_eq!(request, json!({"model": "small-1", "max_tokens": 400, "seed": 7}));
        for (text, why) in [
            (
                "temperature=1",
                "must be a JSON object, such as {\"temperature\": 0.2}",
            ),
            ("[1]", "must be a JSON object"),
            (
                r#"{"model": "large-1"}"#,
                "must not have \"model\", which the request says itself",
            ),
        ] {
            let refused = text.parse::<Parameters>().unwrap_err().to_string();
            assert!(refused.starts_with(why), "{refused}");
        }
    }

    #[test]
    fn patience_is_for_all_attempts_and_the_waits_between_them() {
        let endpoint = |timeout, attempts| Endpoint {
            url: Uri::from_static("https://api.example/v1"),
            model: "small-1".into(),
            key: None,
            timeout,
            attempts,
            parameters: Parameters::default(),
        };
        let (minute, second) = (Duration::from_mins(1), Duration::from_secs(1));
        assert_eq!(endpoint(minute, 3).patience(), 4 * minute);
        assert_eq!(endpoint(second, 1).patience(), second);
        assert_eq!(endpoint(10 * minute, 10).patience(), 30 * minute);
    }

    #[test]
    fn a_key_is_one_line_of_visible_characters_and_never_shown() {
        assert!(bearer(" \n").is_err());
        assert!(bearer("a\nb").is_err());
        let endpoint = Endpoint {
            url: Uri::from_static("https://api.example/v1"),
            model: "small-1".into(),
            key: Some(bearer(" secret-key\n").unwrap()),
            timeout: Duration::from_secs(1),
            attempts: 1,
            parameters: Parameters::default(),
        };
        assert!(!format!("{endpoint:?}").contains("secret"), "{endpoint:?}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let missing = bearer_from_file("the model", &path).unwrap_err().to_string();
        assert!(
            missing.starts_with("can't read the key of the model from ") && missing.contains("key: "),
            "{missing}"
        );
        fs::write(&path, "\n").unwrap();
        let empty = bearer_from_file("the model", &path).unwrap_err().to_string();
        assert!(
            empty.starts_with("the key of the model in ") && empty.ends_with("key must not be empty"),
            "{empty}"
        );
    }
}
