//! The last-known-good copy on disk, from which a node starts while learning-svc is unreachable.
//!
//! A copy is written to a second file, synced, and renamed over the first, so there is always a complete one; its
//! checksum shows whether it is intact. It may hold users' own preferences, so only its owner may read it.

pub(crate) mod format;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use emend_core::InstallationId;
use emend_proto::learning::v1::Cursor;
use jiff::Timestamp;

use crate::replica::{SavedResource, holdings::Holdings};

/// Why a copy cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not a copy at all.
    #[error("it is not a copy of learned resources")]
    NotACopy,
    /// The file has another format version.
    #[error("it has format version {0}, which this version does not know")]
    UnknownVersion(u32),
    /// The copy belongs to another subscription: other namespaces, kinds or scopes.
    #[error("it belongs to another subscription")]
    ForeignSubscription,
    /// The file is truncated or was altered.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// The header of a copy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    /// The subscription it belongs to.
    pub(crate) subscription: u64,
    /// The installation that it was received from, if that was known.
    pub(crate) installation: Option<InstallationId>,
    /// The state of the log that it holds.
    pub(crate) cursor: Cursor,
    /// When it was written, by this computer's clock.
    pub(crate) written_at: Timestamp,
    /// When this was last known to equal the server's state.
    pub(crate) current_at: Option<Timestamp>,
}

/// A copy as read.
#[derive(Debug, PartialEq)]
pub(crate) struct SavedCopy {
    pub(crate) header: Header,
    pub(crate) held: Vec<SavedResource>,
}

/// Reads the copy; `None` if there is no file. Blocks.
pub(crate) fn load(path: &Path, subscription: u64) -> Result<Option<SavedCopy>, CopyError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let length = file.metadata()?.len();
    let copy = format::read(BufReader::with_capacity(1 << 18, file), length)?;
    if copy.header.subscription != subscription {
        return Err(CopyError::ForeignSubscription);
    }
    Ok(Some(copy))
}

/// Writes the copy, replacing the previous one. Blocks.
pub(crate) fn save(path: &Path, header: &Header, held: &Holdings) -> Result<(), CopyError> {
    let temporary = temporary_path(path);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    let mut file = BufWriter::with_capacity(1 << 18, file);
    format::write(&mut file, header, held)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    fs::rename(&temporary, path)?;
    // The rename is durable only once the directory is synced.
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// The temporary name a copy is written to. Always the same, so that a crash's leftover is overwritten.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emend_base::Entropy;

    use super::*;
    use crate::{
        keyed_hash::KeyedHash,
        replica::{holdings::Envelope, key::KeyParts},
    };

    fn header() -> Header {
        Header {
            subscription: 7,
            installation: InstallationId::parse("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10").ok(),
            cursor: Cursor {
                epoch: "e".into(),
                revision: 9,
                filter_hash: 3,
            },
            written_at: Timestamp::constant(1_700_000_000, 0),
            current_at: None,
        }
    }

    fn held(count: i64) -> Holdings {
        let mut held = Holdings::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))));
        for revision in 1..=count {
            let key = format!("phrase {revision}");
            let key = KeyParts {
                namespace: "n",
                kind: 1,
                key: &key,
                qualifier: "",
                user_id: "",
            };
            held.put(Envelope::new(key, b"value", revision, 5, true));
        }
        held
    }

    #[test]
    fn a_saved_copy_is_loaded_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("learned");
        assert!(load(&path, 7).unwrap().is_none());
        save(&path, &header(), &held(3)).unwrap();
        save(&path, &header(), &held(100)).unwrap();
        let copy = load(&path, 7).unwrap().unwrap();
        assert_eq!(copy.header, header());
        assert_eq!(copy.held.len(), 100);
        assert!(!temporary_path(&path).exists());
    }

    #[test]
    fn a_copy_of_another_subscription_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("learned");
        save(&path, &header(), &held(3)).unwrap();
        assert!(matches!(load(&path, 8), Err(CopyError::ForeignSubscription)));
    }

    #[test]
    fn a_failed_save_keeps_the_previous_copy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("learned");
        save(&path, &header(), &held(3)).unwrap();
        // A directory where the temporary file should go.
        fs::create_dir(temporary_path(&path)).unwrap();
        assert!(matches!(save(&path, &header(), &held(5)), Err(CopyError::Io(_))));
        assert_eq!(load(&path, 7).unwrap().unwrap().held.len(), 3);
    }

    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("learned");
        save(&path, &header(), &held(1)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
