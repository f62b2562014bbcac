//! A model behind an OpenAI-compatible server: `POST {base}/embeddings`.
//!
//! <https://platform.openai.com/docs/api-reference/embeddings>: of the request `model` and `input`, of the answer
//! `data[].index` and `data[].embedding`. Ollama, Text Embeddings Inference, vLLM and llama.cpp serve the same.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use emend_base::http_client::{Client, Timer, model::Endpoint};
use emend_client::Entropy;
use http::uri::Scheme;
use serde::Deserialize;
use serde_json::json;

use super::{Embedder, Vector};

/// The most bytes of an answer: vectors of 8,192 numbers for a whole batch, as digits.
const MAX_ANSWER: usize = 8 << 20;
/// The most characters of a model's name and of what its vectors are called.
const NAME_CHARS: usize = 64;

/// Checks the address, and the names of the model and of its vectors.
pub fn check(endpoint: &Endpoint, version: &str) -> Result<()> {
    let scheme = endpoint.url.scheme();
    let is_http = scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS);
    ensure!(
        is_http && endpoint.url.authority().is_some(),
        "the embedding server's address must be http://HOST:PORT/PATH or https://…, is {}",
        endpoint.url
    );
    for (what, name) in [
        ("the embedding model's name", &*endpoint.model),
        ("the embedding version", version),
    ] {
        let count = name.chars().count();
        ensure!(
            (1..=NAME_CHARS).contains(&count) && !name.chars().any(char::is_control),
            "{what} must be 1 to {NAME_CHARS} characters, none of them control characters; has {count}"
        );
    }
    Ok(())
}

/// Asks a model.
#[derive(Debug)]
pub struct Model {
    name: String,
    version: String,
    client: Client<'static>,
}

impl Model {
    /// Asks the model of an endpoint, whose vectors are called `version`.
    pub fn new(
        endpoint: &Endpoint,
        version: &str,
        waiting: Arc<dyn Timer>,
        entropy: Entropy,
    ) -> Result<Self> {
        check(endpoint, version)?;
        Ok(Self {
            name: endpoint.model.clone(),
            version: version.to_owned(),
            client: endpoint.client(
                "the embedding server",
                MAX_ANSWER,
                waiting,
                entropy,
                concat!("emend-search-node/", env!("CARGO_PKG_VERSION")),
            ),
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
        && let Some(other) = rest
            .iter()
            .find(|vector| vector.dimensions() != first.dimensions())
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
