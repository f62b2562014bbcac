//! Chooses a process's database from its command line: a URL, a file that holds the URL, or a data directory. It must
//! know nothing of schemas.

use std::{fs, path::Path};

use crate::{
    database::{DatabaseUrl, DatabaseUrlError, PostgresUrl},
    sqlite::{DataDir, DataDirError},
};

/// Why there is no usable database.
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
    /// The file holds no valid URL.
    #[error("{flag} {path}: {source}")]
    Url {
        /// Which flag names the file.
        flag: &'static str,
        /// The file.
        path: String,
        /// Why not; without the file's content.
        source: DatabaseUrlError,
    },
    /// The directory of a SQLite file is in use or unusable.
    #[error(transparent)]
    Directory(#[from] DataDirError),
}

/// The URL in a file, trimmed. A PostgreSQL URL is read again when connections with it fail. `flag` is for the error.
pub fn read_url(flag: &'static str, path: &Path) -> Result<DatabaseUrl, StorageError> {
    let (url, text) = parse_file(flag, path)?;
    Ok(match url {
        DatabaseUrl::Postgres(url) => DatabaseUrl::Postgres(url.of_file(path, &text)),
        sqlite @ DatabaseUrl::Sqlite(_) => sqlite,
    })
}

/// The same, for PostgreSQL only.
pub fn read_postgres_url(flag: &'static str, path: &Path) -> Result<PostgresUrl, StorageError> {
    let (url, text): (PostgresUrl, _) = parse_file(flag, path)?;
    Ok(url.of_file(path, &text))
}

/// The file's content, parsed and as text.
fn parse_file<T>(flag: &'static str, path: &Path) -> Result<(T, String), StorageError>
where
    T: std::str::FromStr<Err = DatabaseUrlError>,
{
    let shown = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| StorageError::Read {
        flag,
        path: shown(),
        source,
    })?;
    let parsed = text.trim().parse().map_err(|source| StorageError::Url {
        flag,
        path: shown(),
        source,
    })?;
    Ok((parsed, text.trim().to_owned()))
}

/// The database to use and, for a SQLite file, the lock of its directory, to be held until the process ends. Without a
/// URL, it is `file` in `data_dir`.
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
