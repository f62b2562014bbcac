//! Which database: SQLite or PostgreSQL, chosen by `--database-url`, whose password is never shown.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use tokio::time::timeout;

/// How long reading a URL again may take: the file may be on a file system that hangs.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Where a service stores its data. `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// One file: `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A server: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    Postgres(PostgresUrl),
}

/// A PostgreSQL server and database, password included. `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub struct PostgresUrl {
    options: Box<PgConnectOptions>,
    /// The file it was read from, which may be read again.
    file: Option<UrlFile>,
}

/// A file that holds a URL, and the text it held.
#[derive(Clone)]
struct UrlFile {
    path: Arc<Path>,
    text: Arc<str>,
}

/// Why a URL names no database. Never shows the input, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither scheme.
    #[error("expected sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Scheme,
    /// An in-memory database, of which every connection would have its own.
    #[error(
        "sqlite::memory: is not supported, every connection would see a database of its own; use a temporary file"
    )]
    Memory,
    /// No path.
    #[error("sqlite: needs the path of a file, for example sqlite:emend.db")]
    Path,
    /// Not a PostgreSQL URL.
    #[error("not a PostgreSQL URL, expected postgres://USER:PASSWORD@HOST:PORT/DATABASE: {0}")]
    Postgres(String),
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        match text.split_once(':') {
            Some(("sqlite", path)) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                match path {
                    "" => Err(DatabaseUrlError::Path),
                    ":memory:" => Err(DatabaseUrlError::Memory),
                    path => Ok(Self::Sqlite(PathBuf::from(path))),
                }
            }
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.parse()?)),
            _ => Err(DatabaseUrlError::Scheme),
        }
    }
}

impl DatabaseUrl {
    /// How long to wait for it at start-up: `for_a_server` for a server, not at all for a file.
    pub fn patience(&self, for_a_server: Duration) -> Duration {
        match self {
            Self::Sqlite(_) => Duration::ZERO,
            Self::Postgres(_) => for_a_server,
        }
    }

    /// The SQLite file at `path`.
    pub fn sqlite(path: impl AsRef<Path>) -> Self {
        Self::Sqlite(path.as_ref().to_path_buf())
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PostgresUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(DatabaseUrlError::Scheme);
        }
        let options = PgConnectOptions::from_str(text)
            .map_err(|error| DatabaseUrlError::Postgres(error.to_string()))?;
        Ok(Self::with_options(options))
    }
}

impl PostgresUrl {
    /// In sqlx's form.
    pub(crate) fn options(&self) -> PgConnectOptions {
        (*self.options).clone()
    }

    /// That the file of the CA, if the URL names one, can be read: sqlx's own error does not say which file is meant.
    pub(crate) fn root_is_readable(&self) -> Result<(), sqlx::Error> {
        let url = self.options.to_url_lossy();
        let mut named = url.query_pairs().filter(|(name, _)| name == "sslrootcert");
        let file = named.find_map(|(_, value)| value.strip_prefix("file: ").map(str::to_owned));
        match file.map(|file| (fs::read(&file), file)) {
            Some((Err(error), file)) => Err(sqlx::Error::Tls(
                format!("sslrootcert: can't read {file}: {error}").into(),
            )),
            None | Some((Ok(_), _)) => Ok(()),
        }
    }

    /// The same URL, marked as read from `path`, so that it can be read again when it stops working.
    #[must_use]
    pub(crate) fn of_file(self, path: &Path, text: &str) -> Self {
        let file = UrlFile {
            path: path.into(),
            text: text.into(),
        };
        Self {
            file: Some(file),
            ..self
        }
    }

    /// The file's current URL; none if it is still the same, or if there is no file. Fails within [`READ_TIMEOUT`] if the
    /// file can't be read or holds no PostgreSQL URL, with what to tell operators.
    pub(crate) async fn reread(&self) -> Result<Option<Self>, String> {
        let Some(UrlFile { path, text }) = &self.file else {
            return Ok(None);
        };
        let unusable = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let read = timeout(READ_TIMEOUT, tokio::fs::read_to_string(path)).await;
        let read = read.map_err(|_| unusable(&"it can't be read in time"))?;
        let read = read.map_err(|error| unusable(&error))?;
        let found = read.trim();
        if found == &**text {
            return Ok(None);
        }
        let url: Self = found.parse().map_err(|error| unusable(&error))?;
        Ok(Some(url.of_file(path, found)))
    }

    fn with_options(options: PgConnectOptions) -> Self {
        Self {
            options: Box::new(options),
            file: None,
        }
    }

    /// The same database, as another user.
    #[cfg(test)]
    pub(crate) fn with_user(&self, name: &str, password: &str) -> Self {
        Self::with_options(self.options().username(name).password(password))
    }

    /// The same server, another database.
    #[must_use]
    pub fn with_database(&self, name: &str) -> Self {
        Self::with_options(self.options().database(name))
    }

    /// The same database, reached at another address.
    #[cfg(test)]
    pub(crate) fn at(&self, address: std::net::SocketAddr) -> Self {
        let host = address.ip().to_string();
        Self::with_options(self.options().host(&host).port(address.port()))
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        write!(
            f,
            "postgres://{}@{}:{}",
            options.get_username(),
            options.get_host(),
            options.get_port()
        )?;
        options
            .get_database()
            .map_or(Ok(()), |database| write!(f, "/{database}"))
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DatabaseUrl, DatabaseUrlError> {
        text.parse()
    }

    #[test]
    fn sqlite_paths_may_be_written_as_urls_too() {
        for (text, path) in [
            ("sqlite:feedback.db", "feedback.db"),
            ("sqlite://data/feedback.db", "data/feedback.db"),
            ("sqlite:/var/lib/emend/feedback.db", "/var/lib/emend/feedback.db"),
            (
                "sqlite:///var/lib/emend/feedback.db",
                "/var/lib/emend/feedback.db",
            ),
        ] {
            match parse(text) {
                Ok(DatabaseUrl::Sqlite(parsed)) => assert_eq!(parsed, Path::new(path)),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_file_of_a_ca_that_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("the ca.crt");
        let url = format!(
            "postgres://emend:s3cret@db.example/emend?sslrootcert={}",
            file.display()
        );
        let url = url.replace(' ', "%20").parse::<PostgresUrl>().unwrap();
        let message = url.root_is_readable().unwrap_err().to_string();
        assert!(
            message.contains(&format!("can't read {}: No such file", file.display())),
            "{message}"
        );
        fs::write(file, "").unwrap();
        assert!(url.root_is_readable().is_ok());
        let plain = "postgres://emend@db.example/emend"
            .parse::<PostgresUrl>()
            .unwrap();
        assert!(plain.root_is_readable().is_ok());
    }

    #[test]
    fn the_password_is_never_shown() {
        let url = parse("postgres://emend:s3cret@db.example:5433/emend?sslmode=disable").unwrap();
        assert_eq!(url.to_string(), "postgres://emend@db.example:5433/emend");
        assert!(!format!("{url:?}").contains("s3cret"));
        let refused = parse("postgres://emend:s3cret@db.example:notaport/emend").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("s3cret"));
    }

    #[test]
    fn an_invalid_database_url_is_refused_with_the_reason() {
        assert_eq!(parse("sqlite::memory:").unwrap_err(), DatabaseUrlError::Memory);
        assert_eq!(parse("sqlite:").unwrap_err(), DatabaseUrlError::Path);
        for none in ["", "mysql://x/y", "feedback.db", "/var/lib/feedback.db"] {
            assert_eq!(parse(none).unwrap_err(), DatabaseUrlError::Scheme, "{none}");
        }
    }
}
