//! Which database: parsed from `--database-url`, never shown with its password.
//!
//! It must know nothing of schemas or queries.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use sqlx::{migrate::Migrator, postgres::PgConnectOptions};

/// The same migrations, to be applied to a database that a newer release may have migrated further. In a rolling upgrade the
/// first new replica migrates while old ones serve, and any of those may be started again before its turn, or after a
/// rollback. Migrations leave the release before them working (see CONTRIBUTING.md), so that it is right to serve.
pub(crate) fn also_of_newer(migrations: &Migrator) -> Migrator {
    Migrator {
        migrations: migrations.migrations.clone(),
        ignore_missing: true,
        locking: migrations.locking,
        no_tx: migrations.no_tx,
        table_name: migrations.table_name.clone(),
        create_schemas: migrations.create_schemas.clone(),
    }
}

/// Where a service keeps what it knows. `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// One file: `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A server: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    Postgres(PostgresUrl),
}

/// A PostgreSQL server and database, password included. `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub struct PostgresUrl(Box<PgConnectOptions>);

/// Why it is no database. Never shows what was given: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither scheme.
    #[error("expected sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Scheme,
    /// A memory that every connection would have to itself.
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
    /// How long to wait for it, where one waits so long for a server: a file is there or is not.
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
        Ok(Self(Box::new(options)))
    }
}

impl PostgresUrl {
    /// As sqlx takes it.
    pub(crate) fn options(&self) -> PgConnectOptions {
        (*self.0).clone()
    }

    /// The same database, as somebody else.
    #[cfg(test)]
    pub(crate) fn with_user(&self, name: &str, password: &str) -> Self {
        Self(Box::new(self.options().username(name).password(password)))
    }

    /// The same server, another database.
    #[must_use]
    pub fn with_database(&self, name: &str) -> Self {
        Self(Box::new(self.options().database(name)))
    }

    /// The same database, reached at another address.
    #[cfg(test)]
    pub(crate) fn at(&self, address: std::net::SocketAddr) -> Self {
        let host = address.ip().to_string();
        Self(Box::new(self.options().host(&host).port(address.port())))
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.0;
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
    fn the_password_is_never_shown() {
        let url = parse("postgres://emend:s3cret@db.example:5433/emend?sslmode=disable").unwrap();
        assert_eq!(url.to_string(), "postgres://emend@db.example:5433/emend");
        assert!(!format!("{url:?}").contains("s3cret"));
        let refused = parse("postgres://emend:s3cret@db.example:notaport/emend").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_no_database_is_refused_with_the_reason() {
        assert_eq!(parse("sqlite::memory:").unwrap_err(), DatabaseUrlError::Memory);
        assert_eq!(parse("sqlite:").unwrap_err(), DatabaseUrlError::Path);
        for none in ["", "mysql://x/y", "feedback.db", "/var/lib/feedback.db"] {
            assert_eq!(parse(none).unwrap_err(), DatabaseUrlError::Scheme, "{none}");
        }
    }
}
