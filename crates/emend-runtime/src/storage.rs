//! Which database a process uses, from what its command line offers: a URL, a file that holds the URL, or a directory of
//! its own. It must know nothing of schemas.

use std::{fs, path::Path};

use crate::{
    database::{DatabaseUrl, DatabaseUrlError, PostgresUrl},
    sqlite::{DataDir, DataDirError},
};

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The file with the URL can't be read.
    #[error("{flag} {path}: {source}")]
    Read {
        /// Which flag names the file.
        flag: &'static str,
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It holds no URL.
    #[error("{flag} {path}: {source}")]
    Url {
        /// Which flag names the file.
        flag: &'static str,
        /// The file.
        path: String,
        /// Why not; without what the file holds.
        source: DatabaseUrlError,
    },
    /// The directory of a SQLite file is in use, or can't be had.
    #[error(transparent)]
    Directory(#[from] DataDirError),
}

/// The URL that a file holds, white space around it left out. `flag` is for the error.
pub fn read_url(flag: &'static str, path: &Path) -> Result<DatabaseUrl, StorageError> {
    parse_file(flag, path)
}

/// The same, of PostgreSQL only.
pub fn read_postgres_url(flag: &'static str, path: &Path) -> Result<PostgresUrl, StorageError> {
    parse_file(flag, path)
}

fn parse_file<T>(flag: &'static str, path: &Path) -> Result<T, StorageError>
where
    T: std::str::FromStr<Err = DatabaseUrlError>,
{
    let shown = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| StorageError::Read {
        flag,
        path: shown(),
        source,
    })?;
    text.trim().parse().map_err(|source| StorageError::Url {
        flag,
        path: shown(),
        source,
    })
}

/// The database to use, and of a SQLite file the lock of its directory, to be held until the process ends. Without a URL,
/// it is `file` in `data_dir`.
pub fn lock(
    url: Option<DatabaseUrl>,
    data_dir: &Path,
    file: &str,
) -> Result<(DatabaseUrl, Option<DataDir>), StorageError> {
    match url {
        Some(DatabaseUrl::Sqlite(path)) => {
            let lock = DataDir::lock_parent(&path)?;
            Ok((DatabaseUrl::Sqlite(path), Some(lock)))
        }
        Some(postgres) => Ok((postgres, None)),
        None => {
            let directory = DataDir::lock(data_dir)?;
            Ok((DatabaseUrl::sqlite(directory.join(file)), Some(directory)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_from_a_file_and_never_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("url");
        fs::write(&path, "postgres://emend:s3cret@db.example/emend\n").unwrap();
        let url = read_url("--database-url-file", &path).unwrap();
        assert_eq!(url.to_string(), "postgres://emend@db.example:5432/emend");

        fs::write(&path, "mysql://emend:s3cret@db.example/emend").unwrap();
        let refused = read_url("--database-url-file", &path).unwrap_err().to_string();
        assert!(
            refused.starts_with("--database-url-file ") && refused.contains("expected sqlite:PATH"),
            "{refused}"
        );
        assert!(!refused.contains("s3cret"), "{refused}");
        assert!(matches!(
            read_postgres_url("--database-url-file", &directory.path().join("none")),
            Err(StorageError::Read { .. })
        ));
    }

    #[test]
    fn without_a_url_it_is_a_file_in_the_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (database, held) = lock(None, directory.path(), "x.db").unwrap();
        assert!(database.to_string().ends_with("/x.db"), "{database}");
        assert!(lock(None, directory.path(), "x.db").is_err(), "it is locked");
        drop(held);
        let url = DatabaseUrl::sqlite(directory.path().join("y.db"));
        assert!(lock(Some(url), Path::new("/nowhere"), "x.db").is_ok());
    }
}
