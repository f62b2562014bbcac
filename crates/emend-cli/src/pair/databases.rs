//! Where the two services keep their data, and whether the two databases belong to one installation.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use emend_store::{DatabaseUrl, sqlite::DataDir};
use tempfile::TempDir;

use crate::failure::{Failure, Result};

/// feedback-svc's file in a data directory.
pub const FEEDBACK_FILE: &str = "feedback.db";
/// learning-svc's file in a data directory.
pub const LEARNING_FILE: &str = "learning.db";

/// Present from the first start in a data directory until both services are ready. A first start that is interrupted
/// may leave one database behind, and the next one goes on where it ended.
const FIRST_START: &str = "first-start";

/// The databases of the two services, and what keeps them reserved.
#[derive(Debug)]
pub struct Databases {
    /// feedback-svc's.
    pub feedback: DatabaseUrl,
    /// learning-svc's.
    pub learning: DatabaseUrl,
    /// Whether an empty PostgreSQL database may begin a new installation, and feedback-svc accepts the one that
    /// learning-svc then has.
    pub accept_new_installation: bool,
    // Field order matters: the lock is released before its directory is removed.
    lock: Option<DataDir>,
    _ephemeral: Option<TempDir>,
}

impl Databases {
    /// Opens a data directory, which is locked, and created if missing; or uses one PostgreSQL database for both.
    ///
    /// Fails if a data directory holds one of the two files only, unless `accept_new_installation`: a database that
    /// went missing would be replaced by an empty one.
    pub fn open(
        data_dir: &Path,
        database_url: Option<DatabaseUrl>,
        accept_new_installation: bool,
    ) -> Result<Self> {
        match database_url {
            None => {
                let databases = Self::in_directory(data_dir, None, accept_new_installation)?;
                databases.expect_both_or_none()?;
                Ok(databases)
            }
            Some(url @ DatabaseUrl::Postgres(_)) => Ok(Self {
                feedback: url.clone(),
                learning: url,
                accept_new_installation,
                lock: None,
                _ephemeral: None,
            }),
            Some(DatabaseUrl::Sqlite(_)) => Err(Failure::usage(
                "--database-url takes postgres://…; SQLite files live in --data-dir",
            )),
        }
    }

    /// Uses a directory that is removed when this is dropped.
    pub fn ephemeral() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("emend-").tempdir()?;
        let path = directory.path().to_owned();
        Self::in_directory(&path, Some(directory), false)
    }

    fn in_directory(path: &Path, ephemeral: Option<TempDir>, accept_new_installation: bool) -> Result<Self> {
        let lock = DataDir::lock(path).map_err(|error| Failure::Conflict(error.to_string()))?;
        Ok(Self {
            feedback: DatabaseUrl::sqlite(lock.join(FEEDBACK_FILE)),
            learning: DatabaseUrl::sqlite(lock.join(LEARNING_FILE)),
            accept_new_installation,
            lock: Some(lock),
            _ephemeral: ephemeral,
        })
    }

    fn expect_both_or_none(&self) -> Result {
        let Some(directory) = &self.lock else {
            return Ok(());
        };
        let first_start = directory.join(FIRST_START);
        let missing = |file: &str| is_missing(&directory.join(file));
        let (missing, present) = match (missing(FEEDBACK_FILE)?, missing(LEARNING_FILE)?) {
            (false, false) => return Ok(()),
            (true, true) => return Ok(fs::write(first_start, "")?),
            (true, false) => (FEEDBACK_FILE, LEARNING_FILE),
            (false, true) => (LEARNING_FILE, FEEDBACK_FILE),
        };
        if self.accept_new_installation || first_start.exists() {
            return Ok(());
        }
        Err(Failure::Conflict(missing_file_text(
            directory.path(),
            missing,
            present,
        )))
    }

    /// Called once both services are ready.
    pub(super) fn started(&self) -> Result {
        let Some(directory) = &self.lock else {
            return Ok(());
        };
        match fs::remove_file(directory.join(FIRST_START)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// An empty file is what an interrupted start or copy leaves, so it counts as missing.
fn is_missing(file: &PathBuf) -> Result<bool> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Failure::failed(format!("{}: {error}", file.display()))),
    }
}

fn missing_file_text(directory: &Path, missing: &str, present: &str) -> String {
    let lost = if missing == LEARNING_FILE {
        "What was learned is lost then. Search nodes keep what they hold until they accept the new\n  installation."
    } else {
        "The stored corrections are lost then. What was learned stays."
    };
    format!(
        "{} is missing in {}, but {present} is there: the two belong together.\n  \
         Restore {missing} from a backup (see `emend admin new-epoch --help`), or pass another --data-dir.\n  \
         To start with an empty {missing} on purpose, pass --accept-new-installation.\n  {lost}",
        missing,
        directory.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn open(directory: &TempDir, accept: bool) -> Result<Databases> {
        Databases::open(directory.path(), None, accept)
    }

    #[test]
    fn a_data_directory_is_used_by_one_process_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(&directory, false).unwrap();
        let refused = open(&directory, false).unwrap_err();
        assert_eq!(refused.exit(), Exit::Conflict);
        drop(first);
        assert!(open(&directory, false).is_ok());
    }

    #[test]
    fn an_ephemeral_directory_is_removed_at_the_end() {
        let databases = Databases::ephemeral().unwrap();
        let DatabaseUrl::Sqlite(path) = databases.learning.clone() else {
            panic!("not a file")
        };
        let directory = path.parent().unwrap().to_owned();
        assert!(directory.is_dir());
        drop(databases);
        assert!(!directory.exists());
    }

    #[test]
    fn a_sqlite_url_is_refused_in_favour_of_a_data_directory() {
        let url = Some(DatabaseUrl::sqlite("x.db"));
        let refused = Databases::open(Path::new("."), url, false).unwrap_err();
        assert_eq!(refused.exit(), Exit::Usage);
    }

    #[test]
    fn a_single_database_is_refused_unless_a_new_installation_is_accepted() {
        for (present, missing) in [(FEEDBACK_FILE, LEARNING_FILE), (LEARNING_FILE, FEEDBACK_FILE)] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(present), "a database").unwrap();
            let refused = open(&directory, false).unwrap_err();
            assert_eq!(refused.exit(), Exit::Conflict);
            let text = refused.to_string();
            assert!(text.starts_with(&format!("{missing} is missing in ")), "{text}");
            assert!(text.contains("--accept-new-installation"), "{text}");
            fs::write(directory.path().join(missing), "").unwrap();
            assert!(open(&directory, false).is_err(), "an empty file is none");
            assert!(open(&directory, true).is_ok());
        }
    }

    #[test]
    fn an_interrupted_first_start_may_be_repeated() {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&directory, false).unwrap());
        fs::write(directory.path().join(LEARNING_FILE), "a database").unwrap();
        let databases = open(&directory, false).unwrap();
        databases.started().unwrap();
        drop(databases);
        assert!(
            open(&directory, false).is_err(),
            "once it had started, both must be there"
        );
    }
}
