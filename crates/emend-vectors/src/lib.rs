//! Static vectors of phrases, for near look-ups: files in Model2Vec's format, a matrix with a row for each token, and the tokenizer.
//!
//! A phrase's vector is the mean of its tokens' rows, summed in their order: equal files give equal vectors, bit for bit, on every
//! machine. See <https://github.com/MinishLab/model2vec> for the format and how such files are made.
//!
//! Without the feature `model2vec`, which brings what cuts phrases into tokens, every directory is refused.

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
    /// The files are not of this format, or do not belong together.
    #[error("{}: not vectors in Model2Vec's format: {reason}", directory.display())]
    Format {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// This program can't read any.
    #[error(
        "{}: this program is built without what reads vectors: build it with `--features near-vectors`",
        .0.display()
    )]
    NotBuilt(PathBuf),
}

/// Reads a directory with `config.json`, `model.safetensors` and `tokenizer.json`. All of it is held in memory, four bytes a number
/// (one where the matrix has `int8`).
///
/// The vectors' hash is the SHA-256 of the three files, one after the other in this order, in 64 hexadecimal digits: `cat config.json
/// model.safetensors tokenizer.json | sha256sum`.
pub fn read(directory: &Path) -> Result<Arc<dyn Vectors>, ReadError> {
    #[cfg(feature = "model2vec")]
    return Ok(Arc::new(model2vec::StaticVectors::read(directory)?));
    #[cfg(not(feature = "model2vec"))]
    Err(ReadError::NotBuilt(directory.to_owned()))
}
