//! Chooses a process's database from its command line: a URL, a file that holds the URL, or a data directory. It must
//! know nothing of schemas.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use emend_base::config::units::span;

use crate::{
    DatabaseUrl, DatabaseUrlError, PostgresUrl,
    sqlite::{DataDir, DataDirError},
};

/// Where a service stores its data.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct StorageArgs {
    /// Where data is stored: postgres://USER:PASSWORD@HOST:PORT/DATABASE, or sqlite:PATH; if unset, a SQLite file in the
    /// data directory
    #[arg(long, value_name = "URL", hide_env_values = true, group = "database")]
    pub database_url: Option<DatabaseUrl>,
    /// A file that holds the database URL, instead of --database-url
    #[arg(long, value_name = "FILE", group = "database")]
    pub database_url_file: Option<PathBuf>,
    /// The directory of the SQLite file, used by this process alone; ignored with a database URL
    #[arg(long, value_name = "DIR", env = "EMEND_DATA_DIR")]
    pub data_dir: PathBuf,
    /// How many connections to PostgreSQL this replica may have, 2 to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub database_connections: u32,
    /// How long startup waits, without serving, for a PostgreSQL that is unavailable, 0s to 1h; after that it exits
    /// with code 1
    #[arg(long, value_name = "SPAN", default_value = "1m",
          value_parser = span(Duration::ZERO..=Duration::from_hours(1)))]
    pub database_patience: Duration,
}

impl StorageArgs {
    /// The database to use and, for a SQLite file, the lock on its directory, to be held until the process ends. Without
    /// a URL it is `file` in the data directory.
    pub fn open(&self, file: &str) -> Result<(DatabaseUrl, Option<DataDir>), StorageError> {
        lock(self.url()?, &self.data_dir, file)
    }

    /// The configured URL, if there is one.
    fn url(&self) -> Result<Option<DatabaseUrl>, StorageError> {
        match (&self.database_url, &self.database_url_file) {
            (None, Some(path)) => read_url("--database-url-file", path).map(Some),
            (url, _) => Ok(url.clone()),
        }
    }

    /// What is wrong with these arguments, as far as can be told without opening anything.
    pub fn check(&self) -> Option<String> {
        self.url().err().map(|error| error.to_string())
    }
}

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
    fn a_url_is_read_from_a_file_and_never_shown() {
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
    fn without_a_url_the_database_is_a_file_in_the_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (database, held) = lock(None, directory.path(), "x.db").unwrap();
        assert!(database.to_string().ends_with("/x.db"), "{database}");
        assert!(lock(None, directory.path(), "x.db").is_err(), "it is locked");
        drop(held);
        let url = DatabaseUrl::sqlite(directory.path().join("y.db"));
        assert!(lock(Some(url), Path::new("/nowhere"), "x.db").is_ok());
    }
}
