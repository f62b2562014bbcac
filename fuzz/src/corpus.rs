//! The kept inputs of a target: real messages to begin with, and whatever was once found to be read wrongly.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One kept input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The file's name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Where a target's corpus is.
pub fn directory(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// A target's corpus, in the order of its files' names.
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
