//! A model behind an OpenAI-compatible server: `POST {base}/embeddings`.
//!
//! <https://platform.openai.com/docs/api-reference/embeddings>: of the request `model` and `input`, of the answer
//! `data[].index` and `data[].embedding`. Ollama, Text Embeddings Inference, vLLM and llama.cpp serve the same.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use emend_base::http_client::{Client, Key, Limits, Waiting};
use emend_client::Entropy;
use http::{HeaderValue, Uri, header::AUTHORIZATION, uri::Scheme};
use serde::Deserialize;
use serde_json::json;

use super::{Embedder, Vector};

/// The most bytes of an answer: vectors of 8,192 numbers for a whole batch, as digits.
const MAX_ANSWER: usize = 8 << 20;
/// The most characters of a model's name and of what its vectors are called.
const NAME_CHARS: usize = 64;

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub struct Endpoint {
    /// The address below which `/embeddings` is, for example `http://127.0.0.1:11434/v1`.
    pub url: Uri,
    /// The model's name.
    pub model: String,
    /// What its vectors are called.
    pub version: String,
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
            .field("version", &self.version)
            .field("has_key", &self.key.is_some())
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .finish()
    }
}

impl Endpoint {
    /// Checks the address and the names.
    pub fn check(&self) -> Result<()> {
        let scheme = self.url.scheme();
        let is_http = scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS);
        ensure!(
            is_http && self.url.authority().is_some(),
            "the embedding server's address must be http://HOST:PORT/PATH or https://…, is {}",
            self.url
        );
        for (what, name) in [
            ("the embedding model's name", &self.model),
            ("the embedding version", &self.version),
        ] {
            let count = name.chars().count();
            ensure!(
                (1..=NAME_CHARS).contains(&count) && !name.chars().any(char::is_control),
                "{what} must be 1 to {NAME_CHARS} characters, none of them control characters; has {count}"
            );
        }
        Ok(())
    }
}

/// The bearer token for a key, which never appears in logs.
pub fn bearer(key: &str) -> Result<HeaderValue> {
    let key = key.trim();
    ensure!(!key.is_empty(), "must not be empty");
    let Ok(mut value) = HeaderValue::try_from(format!("Bearer {key}")) else {
        bail!("must have only visible ASCII characters");
    };
    value.set_sensitive(true);
    Ok(value)
}

/// The key in a file.
pub fn key_from_file(path: &Path) -> Result<HeaderValue> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("can't read the embedding server's key from {}", path.display()))?;
    bearer(&text).with_context(|| format!("the embedding server's key in {}", path.display()))
}

/// Asks a model.
#[derive(Debug)]
pub struct Model {
    name: String,
    version: String,
    client: Client<'static>,
}

impl Model {
    /// Asks the model of an endpoint.
    pub fn new(endpoint: &Endpoint, waiting: Arc<dyn Waiting>, entropy: Entropy) -> Result<Self> {
        endpoint.check()?;
        let key = endpoint
            .key
            .clone()
            .map_or(Key::None, |key| Key::Header(AUTHORIZATION, key));
        let limits = Limits {
            timeout: endpoint.timeout,
            attempts: endpoint.attempts,
            interval: Duration::ZERO,
            max_answer: MAX_ANSWER,
        };
        let client = Client::new(
            "the embedding server",
            endpoint.url.clone(),
            key,
            limits,
            waiting,
            entropy,
            concat!("emend-search-node/", env!("CARGO_PKG_VERSION")),
        )
        .on_retry(Box::new(|what, wait| {
            tracing::warn!(what, ?wait, "asking for vectors again");
        }));
        Ok(Self {
            name: endpoint.model.clone(),
            version: endpoint.version.clone(),
            client,
        })
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

#[tonic::async_trait]
impl Embedder for Model {
    fn version(&self) -> &str {
        &self.version
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        let message = json!({"model": self.name, "input": texts});
        let answer: Answer = self.client.post("/embeddings", &message).await?;
        in_order(answer, texts.len()).context("the embedding server's answer can't be used")
    }
}

/// The vectors in the order of the texts that they are of.
fn in_order(answer: Answer, expected: usize) -> Result<Vec<Vector>> {
    let count = answer.data.len();
    ensure!(count == expected, "it has {count} vectors for {expected} texts");
    let mut vectors: Vec<Option<Vector>> = vec![None; expected];
    for Embedding { index, embedding } in answer.data {
        let Some(place) = vectors.get_mut(index) else {
            bail!("data[].index must be 0 to {}, is {index}", expected - 1);
        };
        ensure!(place.is_none(), "data[].index {index} is there twice");
        let vector = Vector::new(embedding).with_context(|| format!("the vector with the index {index}"))?;
        *place = Some(vector);
    }
    let vectors: Vec<Vector> = vectors.into_iter().flatten().collect();
    if let [first, rest @ ..] = &*vectors
        && let Some(other) = rest.iter().find(|of| of.dimensions() != first.dimensions())
    {
        bail!(
            "its vectors have {} and {} numbers",
            first.dimensions(),
            other.dimensions()
        );
    }
    Ok(vectors)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
