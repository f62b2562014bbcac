//! Model2Vec's files.

#[cfg(test)]
mod tests;

use std::{fmt, path::Path};

use emend_core::generalise::Vectors;
use model2vec_rs::model::StaticModel;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
// Only its features are of use.
use tokenizers as _;

use crate::{MAX_DIMENSIONS, MODEL2VEC as MODEL, ReadError, TOKENIZER, files};

/// Whether vectors are brought to length 1; other fields do not matter.
const CONFIG: &str = "config.json";

/// The vectors of a directory.
pub(crate) struct StaticVectors {
    hash: String,
    model: StaticModel,
}

impl StaticVectors {
    pub(crate) fn read(directory: &Path) -> Result<Self, ReadError> {
        let read = |name: &str| files::read(&directory.join(name));
        let (config, model, tokenizer) = (read(CONFIG)?, read(MODEL)?, read(TOKENIZER)?);
        let hash = files::hash(&[&config, &model, &tokenizer]);
        let model = checked(&tokenizer, &model, &config).map_err(|reason| ReadError::Format {
            directory: directory.to_owned(),
            reason,
        })?;
        Ok(Self { hash, model })
    }
}

impl Vectors for StaticVectors {
    fn hash(&self) -> &str {
        &self.hash
    }

    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        let vector = self.model.encode_single(phrase);
        let squares: f32 = vector.iter().map(|value| value * value).sum();
        squares.is_normal().then_some(vector)
    }
}

impl fmt::Debug for StaticVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticVectors")
            .field("hash", &self.hash)
            .field("dimensions", &self.model.dim())
            .finish_non_exhaustive()
    }
}

/// The model, of which each token has a row.
fn checked(tokenizer: &[u8], model: &[u8], config: &[u8]) -> Result<StaticModel, String> {
    let highest = highest_token(tokenizer)?;
    let tensors = SafeTensors::deserialize(model).map_err(|error| format!("{MODEL}: {error}"))?;
    let rows = rows(&tensors)?;
    let places = match tensors.tensor("mapping") {
        Ok(mapping) => {
            let places = places(mapping.dtype(), mapping.data());
            if let Some(bad) = places.iter().find(|&&row| row < 0 || row >= rows) {
                return Err(format!("{MODEL}: a token has row {bad}, there are {rows}"));
            }
            i64::try_from(places.len()).unwrap_or(i64::MAX)
        }
        Err(_) => 0,
    };
    if highest >= rows.max(places) {
        return Err(format!(
            "{TOKENIZER} has a token {highest}, {MODEL} has rows for {}",
            rows.max(places)
        ));
    }
    let read = StaticModel::from_bytes(tokenizer, model, config, None);
    let read = read.map_err(|error| format!("{error:#}"))?;
    if read.dim() > MAX_DIMENSIONS {
        return Err(format!(
            "{MODEL}: vectors have {} numbers, may have {MAX_DIMENSIONS}",
            read.dim()
        ));
    }
    Ok(read)
}

/// The rows of the matrix, which has one of three names.
fn rows(tensors: &SafeTensors<'_>) -> Result<i64, String> {
    let names = ["embeddings", "0", "embedding.weight"];
    let matrix = names.iter().find_map(|name| tensors.tensor(name).ok());
    match matrix.as_ref().map(safetensors::tensor::TensorView::shape) {
        Some(&[rows, _]) => Ok(i64::try_from(rows).unwrap_or(i64::MAX)),
        Some(shape) => Err(format!(
            "{MODEL}: the embeddings have {} dimensions, not 2",
            shape.len()
        )),
        None => Err(format!("{MODEL} has no tensor `embeddings`")),
    }
}

/// The row of each token, where tokens share rows.
fn places(dtype: Dtype, data: &[u8]) -> Vec<i64> {
    match dtype {
        Dtype::I64 => data
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| i64::from_le_bytes(bytes))
            .collect(),
        Dtype::I32 => {
            let places = data.as_chunks().0.iter();
            places
                .map(|&bytes| i64::from(i32::from_le_bytes(bytes)))
                .collect()
        }
        // The model is refused when it is read.
        _ => Vec::new(),
    }
}

/// The highest number of a token.
fn highest_token(tokenizer: &[u8]) -> Result<i64, String> {
    let parsed: Value = serde_json::from_slice(tokenizer).map_err(|error| format!("{TOKENIZER}: {error}"))?;
    let known = match &parsed["model"]["vocab"] {
        Value::Object(tokens) => tokens.values().filter_map(Value::as_i64).max(),
        Value::Array(tokens) => i64::try_from(tokens.len()).ok().map(|count| count - 1),
        _ => None,
    };
    let added = parsed["added_tokens"].as_array().into_iter().flatten();
    let added = added.filter_map(|token| token["id"].as_i64()).max();
    known
        .max(added)
        .ok_or_else(|| format!("{TOKENIZER}: has no model.vocab"))
}
