//! A model behind an OpenAI-compatible server: where it is, and with which key it is asked.

use std::{fmt, fs, path::Path, sync::Arc, time::Duration};

use emend_core::Invalid;
use http::{HeaderValue, Uri, header::AUTHORIZATION};

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
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("model", &self.model)
            .field("has_key", &self.key.is_some())
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .finish()
    }
}

impl Endpoint {
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
    use super::*;

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
