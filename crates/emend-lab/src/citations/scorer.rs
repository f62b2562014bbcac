//! How similar texts are to one: by a service, or by their words.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;

use emend_base::http_client::{Client, ErrorKind, ServiceError};

/// Says how similar texts are to one.
pub trait Scorer: Sync {
    /// A number from 0 to 1 for each text, in order.
    fn scores(
        &self,
        query: &str,
        texts: &[String],
    ) -> impl Future<Output = Result<Vec<f64>, ServiceError>> + Send;
}

/// A service that is sent `{"query": …, "texts": […]}` and answers `{"scores": […]}`.
#[derive(Debug)]
pub struct Service<'a>(pub Client<'a>);

#[derive(Debug, Deserialize)]
struct Scores {
    scores: Vec<f64>,
}

impl Scorer for Service<'_> {
    async fn scores(&self, query: &str, texts: &[String]) -> Result<Vec<f64>, ServiceError> {
        let Scores { scores } = self.0.post("", &json!({"query": query, "texts": texts})).await?;
        if scores.len() != texts.len() {
            let what = format!("gave {} scores for {} texts", scores.len(), texts.len());
            return Err(self.0.error(ErrorKind::Never, what));
        }
        match scores.iter().find(|score| !(0.0..=1.0).contains(*score)) {
            Some(score) => {
                let what = format!("gave a score of {score}, which is not from 0 to 1");
                Err(self.0.error(ErrorKind::Never, what))
            }
            None => Ok(scores),
        }
    }
}

/// By the words that texts share.
#[derive(Debug)]
pub struct Lexical;

impl Scorer for Lexical {
    async fn scores(&self, query: &str, texts: &[String]) -> Result<Vec<f64>, ServiceError> {
        let query = frequencies(query);
        Ok(texts
            .iter()
            .map(|text| cosine(&query, &frequencies(text)))
            .collect())
    }
}

/// The words of a text, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn frequencies(text: &str) -> HashMap<String, u32> {
    let mut frequencies = HashMap::new();
    for word in words(text) {
        *frequencies.entry(word).or_insert(0) += 1;
    }
    frequencies
}

/// The cosine of the angle between two vectors of term frequencies (Salton and McGill, Introduction to Modern Information
/// Retrieval, 1983, 6.1): from 0 without a word in common to 1. 0 if one has no words.
fn cosine(one: &HashMap<String, u32>, other: &HashMap<String, u32>) -> f64 {
    // Sums of whole numbers do not depend on their order.
    let product = |pairs: &mut dyn Iterator<Item = (u32, u32)>| -> u64 {
        pairs.map(|(one, other)| u64::from(one) * u64::from(other)).sum()
    };
    let square = |words: &HashMap<String, u32>| product(&mut words.values().map(|count| (*count, *count)));
    let shared = one
        .iter()
        .filter_map(|(word, count)| Some((*count, *other.get(word)?)));
    let shared = product(&mut { shared });
    if shared == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio, shown to a few digits")]
    let cosine = shared as f64 / ((square(one) as f64).sqrt() * (square(other) as f64).sqrt());
    cosine.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f64 {
        cosine(&frequencies(one), &frequencies(other))
    }

    #[test]
    fn texts_are_similar_by_the_words_that_they_share() {
        assert!((similarity("A new Theory", "a NEW theory!") - 1.0).abs() < 1e-12);
        assert!((similarity("a b", "b c") - 0.5).abs() < 1e-12);
        assert!((similarity("a a b", "a") - 2.0 / 5_f64.sqrt()).abs() < 1e-12);
        assert!((similarity("die Größe", "DIE GRÖSSE") - 0.5).abs() < 1e-12);
        for other in ["", "…", "c d"] {
            assert!(similarity("a b", other).abs() < f64::EPSILON, "{other}");
        }
        let (one, other) = ("x y z y", "y q x r");
        assert!((similarity(one, other) - similarity(other, one)).abs() < f64::EPSILON);
        assert!(similarity(&"w ".repeat(100_000), "w") <= 1.0);
    }
}
