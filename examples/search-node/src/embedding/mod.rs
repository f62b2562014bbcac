//! The port to a model that makes vectors of texts, so that texts of similar meaning lie close to each other.

pub mod http;
mod worker;

use std::collections::HashMap;

use anyhow::{Error, Result, ensure};
use emend_base::http_client::{ErrorKind, ServiceError};

pub use self::worker::RecordEmbedder;
use crate::{corpus::Record, index::SearchIndex};

/// The most texts that are embedded in one call.
pub const BATCH: usize = 32;
/// After so many batches in succession of which no record could be embedded, the model is not asked for more.
const MAX_REFUSED: usize = 3;
/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 8_192;

/// Makes vectors of texts.
#[tonic::async_trait]
pub trait Embedder: Send + Sync {
    /// What its vectors are called, 1 to 64 characters. They are never compared with vectors of another name.
    fn version(&self) -> &str;

    /// A vector for each of these texts, 1 to [`BATCH`], in their order; all of one length. An error that is [`ServiceError`] and
    /// may be otherwise later says that the model is away; of any other one the texts may be the cause.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>>;
}

/// Whether a model gave no answer at all, so that others wait in vain, too.
pub(crate) fn is_away(failure: &Error) -> bool {
    let failure = failure.downcast_ref::<ServiceError>();
    failure.is_some_and(|failure| failure.kind == ErrorKind::Later)
}

/// A direction: as many finite numbers as its model makes, of which the squares add up to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// The direction of these numbers: 1 to 8,192, finite, and not all 0.
    pub fn new(mut numbers: Vec<f32>) -> Result<Self> {
        let count = numbers.len();
        ensure!(
            (1..=MAX_DIMENSIONS).contains(&count),
            "must have 1 to {MAX_DIMENSIONS} numbers, has {count}"
        );
        ensure!(
            numbers.iter().all(|number| number.is_finite()),
            "must have finite numbers only"
        );
        let length = numbers
            .iter()
            .map(|number| f64::from(*number).powi(2))
            .sum::<f64>()
            .sqrt();
        ensure!(length > 0.0, "must not have zeros only");
        for number in &mut numbers {
            #[expect(clippy::cast_possible_truncation, reason = "−1.0 to 1.0")]
            let share = (f64::from(*number) / length) as f32;
            *number = share;
        }
        Ok(Self(numbers.into()))
    }

    /// How many numbers it has.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// Its numbers.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }
}

/// Vectors for what has changed.
#[derive(Debug)]
pub struct Embedded {
    /// What they are called.
    pub(crate) version: String,
    /// By the record's id.
    pub(crate) vectors: HashMap<String, Vector>,
    /// Why others could not be made: the first reason.
    pub failure: Option<Error>,
}

impl Embedded {
    /// None, of this embedder.
    pub fn none(embedder: &dyn Embedder) -> Self {
        Self {
            version: embedder.version().to_owned(),
            vectors: HashMap::new(),
            failure: None,
        }
    }

    /// Embeds the records of which the index has no vector of their text and this version. What the model refuses is left out;
    /// where it is away, or refuses one batch after the other, that is all, with the vectors made so far.
    pub async fn of_changed(
        index: &SearchIndex,
        records: &[Record],
        embedder: &dyn Embedder,
    ) -> Result<Self> {
        let mut made = Self::none(embedder);
        let changed = index.to_embed(records, embedder.version())?;
        let mut dimensions = index.dimensions(embedder.version());
        let mut refused = 0;
        for batch in changed.chunks(BATCH) {
            let before = made.vectors.len();
            let Err(failure) = made.add(batch, embedder, &mut dimensions).await else {
                refused = 0;
                continue;
            };
            let is_away = if is_away(&failure) {
                made.failure.get_or_insert(failure);
                true
            } else {
                made.add_each(batch, failure, embedder, &mut dimensions).await
            };
            refused = if made.vectors.len() > before {
                0
            } else {
                refused + 1
            };
            if is_away || refused == MAX_REFUSED {
                break;
            }
        }
        Ok(made)
    }

    /// Embeds one by one the records of a batch that failed, of which one may be the cause. Returns whether the model is away.
    async fn add_each(
        &mut self,
        records: &[&Record],
        failure: Error,
        embedder: &dyn Embedder,
        dimensions: &mut Option<usize>,
    ) -> bool {
        // One alone needs not be asked for again.
        let mut failure = (records.len() == 1).then_some(failure);
        for record in records {
            let failed = match failure.take() {
                Some(failure) => Some(failure),
                None => self.add(&[record], embedder, dimensions).await.err(),
            };
            let Some(failed) = failed else { continue };
            let is_away = is_away(&failed);
            self.failure
                .get_or_insert_with(|| failed.context(format!("the record {:?}", record.id)));
            if is_away {
                return true;
            }
        }
        false
    }

    async fn add(
        &mut self,
        records: &[&Record],
        embedder: &dyn Embedder,
        dimensions: &mut Option<usize>,
    ) -> Result<()> {
        let texts: Vec<String> = records.iter().map(|record| embedded_text(record)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = embedder.embed(&texts).await?;
        for (record, vector) in records.iter().zip(vectors) {
            let (is, known) = (
                vector.dimensions(),
                *dimensions.get_or_insert(vector.dimensions()),
            );
            ensure!(
                is == known,
                "the model {:?} makes vectors of {is} numbers, and those in the index have {known}: give the new ones \
                 another name (--embedding-version)",
                self.version
            );
            self.vectors.insert(record.id.clone(), vector);
        }
        Ok(())
    }
}

/// What is embedded of a record.
fn embedded_text(record: &Record) -> String {
    format!("{}\n{}", record.title, record.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_a_direction() {
        let vector = Vector::new(vec![3.0, -4.0]).unwrap();
        assert_eq!((vector.numbers(), vector.dimensions()), (&[0.6, -0.8][..], 2));
        let huge = Vector::new(vec![f32::MAX, f32::MAX]).unwrap();
        assert!((huge.numbers()[0] - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6);
        for (numbers, why) in [
            (vec![], "must have 1 to 8192 numbers, has 0"),
            (vec![1.0; 8_193], "must have 1 to 8192 numbers, has 8193"),
            (vec![1.0, f32::INFINITY], "must have finite numbers only"),
            (vec![0.0, -0.0], "must not have zeros only"),
        ] {
            assert_eq!(Vector::new(numbers).unwrap_err().to_string(), why);
        }
    }
}
