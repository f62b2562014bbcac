//! Sentence encoders in ONNX: neural networks that were trained to give phrases of like meaning like vectors.

mod graph;
mod kept;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use emend_core::generalise::Vectors;
use tokenizers::Tokenizer;

use self::{
    graph::{Graph, Tokens},
    kept::{Kept, Rounded},
};
use crate::{MAX_DIMENSIONS, ONNX as MODEL, ReadError, TOKENIZER, files};

/// Tokens of a phrase that count, at most. The longest phrase that can be learned, of 512 characters, has seldom more.
const MAX_TOKENS: usize = 256;
/// Vectors of learned phrases that are kept, at least: of all that a node makes models of, and of the names of their choices.
const MOST_LEARNED: usize = 24_576;
/// Those of phrases that are looked up. A preview looks up a thousand, twice.
const MOST_ASKED: usize = 4_096;

/// To what part of 1 numbers are rounded.
const STEPS: f32 = 1_024.0;

/// The encoder of a directory.
pub(crate) struct Encoder {
    hash: String,
    tokenizer: Tokenizer,
    graph: Graph,
    dimensions: usize,
    learned: Kept,
    asked: Kept,
}

impl Encoder {
    pub(crate) fn read(directory: &Path) -> Result<Self, ReadError> {
        let read = |name: &str| files::read(&directory.join(name));
        let (model, tokenizer) = (read(MODEL)?, read(TOKENIZER)?);
        let hash = files::hash(&[&model, &tokenizer]);
        let refused = |reason| ReadError::Encoder {
            directory: directory.to_owned(),
            reason,
        };
        let (tokenizer, most_tokens) =
            bounded(&tokenizer).map_err(|error| refused(format!("{TOKENIZER}: {error}")))?;
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
        // What reads and runs networks panics over some that are wrong.
        let tried = panic::catch_unwind(AssertUnwindSafe(|| {
            let graph = Graph::read(&model)?;
            let dimensions = try_out(&graph, highest.into(), most_tokens)?;
            Ok((graph, dimensions))
        }));
        let (graph, dimensions) = tried
            .unwrap_or_else(|_| Err("it can't be run".to_owned()))
            .map_err(|reason| refused(format!("{MODEL}: {reason}")))?;
        Ok(Self {
            hash,
            tokenizer,
            graph,
            dimensions,
            learned: Kept::new(MOST_LEARNED),
            asked: Kept::new(MOST_ASKED),
        })
    }

    fn encode(&self, phrase: &str) -> Option<Rounded> {
        let encoding = self.tokenizer.encode_fast(phrase, true).ok()?;
        // All special: nothing of the phrase itself is known.
        if encoding
            .get_special_tokens_mask()
            .iter()
            .all(|&is_special| is_special == 1)
        {
            return None;
        }
        let numbers = |of: &[u32]| of.iter().map(|&number| number.into()).collect();
        let tokens = Tokens {
            ids: numbers(encoding.get_ids()),
            types: numbers(encoding.get_type_ids()),
        };
        rounded(&self.graph.run(&tokens).ok()?)
    }
}

impl Vectors for Encoder {
    fn hash(&self) -> &str {
        &self.hash
    }

    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        let vector = self.asked.get_or_make(phrase, || self.encode(phrase));
        vector.map(|vector| widened(&vector))
    }

    fn of_learned(&self, phrase: &str) -> Option<Vec<f32>> {
        let vector = self.learned.get_or_make(phrase, || self.encode(phrase));
        vector.map(|vector| widened(&vector))
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("hash", &self.hash)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

/// A tokenizer that cuts what is long and pads nothing, and how many tokens it leaves.
fn bounded(json: &[u8]) -> tokenizers::Result<(Tokenizer, usize)> {
    let mut tokenizer = Tokenizer::from_bytes(json)?;
    let mut truncation = tokenizer.get_truncation().cloned().unwrap_or_default();
    truncation.max_length = truncation.max_length.clamp(1, MAX_TOKENS);
    let most_tokens = truncation.max_length;
    tokenizer.with_padding(None).with_truncation(Some(truncation))?;
    Ok((tokenizer, most_tokens))
}

/// How many numbers a network's vectors have, once it has been run with the fewest and the most tokens, each the highest.
fn try_out(graph: &Graph, highest: i64, most_tokens: usize) -> Result<usize, String> {
    let mut dimensions = 0;
    for count in [1, most_tokens] {
        let tokens = Tokens {
            ids: vec![highest; count],
            types: vec![0; count],
        };
        let vector = graph.run(&tokens);
        let vector = vector.map_err(|error| format!("{count} tokens, the highest {highest}: {error:#}"))?;
        dimensions = vector.len();
        if dimensions > MAX_DIMENSIONS {
            return Err(format!(
                "vectors have {dimensions} numbers, may have {MAX_DIMENSIONS}"
            ));
        }
        if rounded(&vector).is_none() {
            return Err(format!(
                "the vector of {count} tokens, the highest {highest}, has no length"
            ));
        }
    }
    Ok(dimensions)
}

/// A vector brought to length 1, each number rounded to a 1,024th: the sums of processors of different kinds differ by far less. None
/// of one without a length.
fn rounded(vector: &[f32]) -> Option<Rounded> {
    let squares: f32 = vector.iter().map(|value| value * value).sum();
    let factor = STEPS / squares.sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "from -1,024 to 1,024")]
    let round = |value: &f32| (value * factor).round() as i16;
    (squares.is_normal() && factor.is_finite()).then(|| vector.iter().map(round).collect())
}

fn widened(vector: &[i16]) -> Vec<f32> {
    vector.iter().map(|&value| f32::from(value) / STEPS).collect()
}
