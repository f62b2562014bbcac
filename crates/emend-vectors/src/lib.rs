//! Vectors of phrases, for near look-ups, from the files of a directory. There are two kinds:
//!
//! - Static vectors in Model2Vec's format (feature `model2vec`): a matrix with a row for each token, and the tokenizer. A phrase's
//!   vector is the mean of its tokens' rows, summed in their order: equal files give equal vectors, bit for bit, on every machine. See
//!   <https://github.com/MinishLab/model2vec> for the format and how such files are made. A vector takes some 50 µs.
//! - A sentence encoder in ONNX (feature `onnx`), a neural network, and its tokenizer. A vector takes milliseconds, those of the phrases
//!   asked for last are kept. Equal files give equal vectors on processors of one kind. On others sums are added up in another order;
//!   each number is rounded to a 1,024th, so most vectors are equal even so, but not all are.
//!
//! Without a kind's feature its directories are refused.

#[cfg(feature = "onnx")]
mod encoder;
#[cfg(any(feature = "model2vec", feature = "onnx"))]
mod files;
#[cfg(feature = "model2vec")]
mod model2vec;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use emend_core::generalise::Vectors;

/// The most bytes of a file of vectors: 512 MiB.
pub const MAX_BYTES: u64 = 512 << 20;
/// The most numbers of a vector.
pub const MAX_DIMENSIONS: usize = 1_024;

/// The matrix of static vectors.
const MODEL2VEC: &str = "model.safetensors";
/// A sentence encoder.
const ONNX: &str = "model.onnx";
/// What cuts a phrase into tokens, for both.
#[cfg(any(feature = "model2vec", feature = "onnx"))]
const TOKENIZER: &str = "tokenizer.json";

/// Why a directory of vectors can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file can't be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is too large.
    #[error("{}: has {bytes} bytes, may have {MAX_BYTES}", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// How many it has.
        bytes: u64,
    },
    /// The files are not of Model2Vec's format, or do not belong together.
    #[error("{}: not vectors in Model2Vec's format: {reason}", directory.display())]
    Format {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// The files are no sentence encoder that can be run.
    #[error("{}: not a sentence encoder that can be run: {reason}", directory.display())]
    Encoder {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// The directory has the files of neither kind.
    #[error("{}: has neither {MODEL2VEC} (static vectors) nor {ONNX} (a sentence encoder)", .0.display())]
    Neither(PathBuf),
    /// The directory has files of both kinds.
    #[error("{}: has {MODEL2VEC} and {ONNX}: keep static vectors and a sentence encoder apart", .0.display())]
    Both(PathBuf),
    /// This program can't read vectors of this kind.
    #[error(
        "{}: this program is built without what reads {file}: build it with `--features {feature}`",
        directory.display()
    )]
    NotBuilt {
        /// Where they are.
        directory: PathBuf,
        /// The file that shows their kind.
        file: &'static str,
        /// The feature of Emend's programs that reads them.
        feature: &'static str,
    },
}

/// Reads a directory of vectors, of the kind that it has the files of. Their hash is the SHA-256 of these files, one after the other in
/// this order, in 64 hexadecimal digits:
///
/// - Static vectors have `config.json`, `model.safetensors` and `tokenizer.json`: `cat config.json model.safetensors tokenizer.json |
///   sha256sum`. All of it is held in memory, four bytes a number (one where the matrix has `int8`).
/// - A sentence encoder has `model.onnx` and `tokenizer.json`: `cat model.onnx tokenizer.json | sha256sum`. Its weights are held in memory,
///   four bytes each whatever the file has, and the vectors of the phrases asked for last: of the last 24,576 that were learned and the
///   last 4,096 others at least, twice as many at most. It is run before it is accepted, with as many tokens as a phrase may have and with
///   the highest that the tokenizer has, so that none fails at a look-up.
///
/// The model takes `input_ids`, and may take `attention_mask` and `token_type_ids`, each `[1, tokens]` of `int64` or `int32`. It gives
/// `sentence_embedding`, `[1, numbers]`, or else `last_hidden_state` or `token_embeddings`, `[1, tokens, numbers]`, of which the mean over
/// all tokens is taken. Only a phrase's first 256 tokens count, or fewer where the tokenizer says so. A vector has the length 1, but for
/// rounding.
pub fn read(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    let has = |file: &str| directory.join(file).exists();
    match (has(MODEL2VEC), has(ONNX)) {
        (true, false) => read_static(directory),
        (false, true) => read_encoder(directory),
        (false, false) => Err(ReadError::Neither(directory.to_owned())),
        (true, true) => Err(ReadError::Both(directory.to_owned())),
    }
}

#[cfg(feature = "model2vec")]
fn read_static(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    Ok(Arc::new(model2vec::StaticVectors::read(directory)?))
}

#[cfg(not(feature = "model2vec"))]
fn read_static(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    Err(ReadError::NotBuilt {
        directory: directory.to_owned(),
        file: MODEL2VEC,
        feature: "near-vectors",
    })
}

#[cfg(feature = "onnx")]
fn read_encoder(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    Ok(Arc::new(encoder::Encoder::read(directory)?))
}

#[cfg(not(feature = "onnx"))]
fn read_encoder(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    Err(ReadError::NotBuilt {
        directory: directory.to_owned(),
        file: ONNX,
        feature: "near-encoder",
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_of_a_directory_say_of_which_kind_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let read = || read(directory.path()).unwrap_err();
        assert!(matches!(read(), ReadError::Neither(_)));
        for file in [MODEL2VEC, ONNX] {
            fs::write(directory.path().join(file), "").unwrap();
            let refused = read();
            match file {
                MODEL2VEC if cfg!(feature = "model2vec") => {
                    assert!(matches!(refused, ReadError::File { .. }));
                }
                ONNX if cfg!(feature = "onnx") => assert!(matches!(refused, ReadError::File { .. })),
                _ => assert!(refused.to_string().contains("`--features near-"), "{refused}"),
            }
            fs::remove_file(directory.path().join(file)).unwrap();
        }
        for file in [MODEL2VEC, ONNX] {
            fs::write(directory.path().join(file), "").unwrap();
        }
        assert!(matches!(read(), ReadError::Both(_)));
    }
}
