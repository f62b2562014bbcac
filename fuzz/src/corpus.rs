//! The corpus of a target: real messages as seeds, and every input that once exposed a bug.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One input of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The file's name.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The directory of a target's corpus.
pub fn directory(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// A target's corpus, sorted by file name.
pub fn read(target: &str) -> io::Result<Vec<Kept>> {
    let mut kept = fs::read_dir(directory(target))?
        .map(|entry| {
            let entry = entry?;
            Ok(Kept {
                name: entry.file_name().to_string_lossy().into_owned(),
                bytes: fs::read(entry.path())?,
            })
        })
        .collect::<io::Result<Vec<_>>>()?;
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kept)
}
