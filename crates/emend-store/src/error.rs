//! Database errors, classified by what to do about them: retry at once, retry later, or call a person.
//!
//! sqlx's errors end here; above the stores only [`StoreError`] is seen.

use std::{
    fmt,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use emend_base::{
    Error,
    backoff::{BackoffConfig, delay_for_attempt},
    entropy::Entropy,
    telemetry::sparse::Sparse,
};
use sqlx::{Pool, error::DatabaseError, postgres::PgDatabaseError, sqlite::SqliteError};

/// How many times a use case is attempted before its conflict is reported.
const ATTEMPTS: u32 = 12;
/// The pauses in between: together about two seconds.
const PAUSE: BackoffConfig = BackoffConfig {
    initial: Duration::from_millis(4),
    max: Duration::from_millis(400),
    multiplier: 2.0,
};

/// What calls that a database away or full has failed say in the log: many say the same.
static LOGGED: Sparse = Sparse::new(1, Duration::from_secs(1));

/// Why a store operation failed. What sqlx says is in the message, and not said again as its source.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another transaction won (serialization failure, deadlock, busy): the whole use case may be retried.
    #[error("conflict with another transaction: {0}")]
    Conflict(sqlx::Error),
    /// The database can't be reached or is not serving now.
    #[error("the database is unavailable: {}", in_words(.0))]
    Unavailable(sqlx::Error),
    /// The database has no space left.
    #[error("the database is full: {0}")]
    Full(sqlx::Error),
    /// A scan took too long, or too many scans are running, at the expense of others.
    #[error("the query would scan too many rows: {0}")]
    TooMuch(sqlx::Error),
    /// A stored row is invalid.
    #[error(transparent)]
    Corrupt(CorruptRow),
    /// Any other error, which is a defect, or damage.
    #[error("{}", unexpected(.0))]
    Sqlx(sqlx::Error),
}

/// An invalid stored row: rows are parsed, not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CorruptRow {
    /// The table.
    pub table: &'static str,
    /// The invalid column.
    pub column: &'static str,
    /// The row, by its primary key.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}

impl CorruptRow {
    /// Names the row and its fault.
    pub fn new(
        table: &'static str,
        column: &'static str,
        id: impl fmt::Display,
        reason: impl fmt::Display,
    ) -> Self {
        Self {
            table,
            column,
            id: id.to_string(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for CorruptRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            table,
            column,
            id,
            reason,
        } = self;
        write!(f, "corrupt row {id} in {table}, column {column}: {reason}")
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error_class(&error) {
            ErrorClass::Conflict => {
                Reason::Conflict.count();
                Self::Conflict(error)
            }
            ErrorClass::Unavailable => {
                Reason::Unavailable.count();
                Self::Unavailable(error)
            }
            ErrorClass::Full => {
                Reason::Full.count();
                Self::Full(error)
            }
            // Not a fault of the database.
            ErrorClass::TooMuch => Self::TooMuch(error),
            ErrorClass::Defect => {
                // Races are often left to a unique index to settle; losing one is not a database error.
                if is_damaged(&error) {
                    Reason::Corrupt.count();
                } else if !is_unique_violation(&error) {
                    Reason::Unexpected.count();
                }
                Self::Sqlx(error)
            }
        }
    }
}

impl From<CorruptRow> for StoreError {
    fn from(row: CorruptRow) -> Self {
        Reason::Corrupt.count();
        Self::Corrupt(row)
    }
}

/// Why a statement or a row failed, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// [`StoreError::Conflict`]: retried.
    Conflict,
    /// A use case that [`retry_conflicts`] abandoned because its conflicts did not end. Each of those is counted too.
    Contention,
    /// [`StoreError::Unavailable`].
    Unavailable,
    /// [`StoreError::Full`].
    Full,
    /// [`StoreError::Corrupt`], or a damaged file.
    Corrupt,
    /// [`StoreError::Sqlx`], unless a unique index refused a row.
    Unexpected,
}

/// Counts for each reason since this process started.
static SEEN: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; Reason::ALL.len()];

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] = [
        Self::Conflict,
        Self::Contention,
        Self::Unavailable,
        Self::Full,
        Self::Corrupt,
        Self::Unexpected,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Contention => "contention",
            Self::Unavailable => "unavailable",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::Unexpected => "unexpected",
        }
    }

    /// How often it was seen in this process since it started, over all of its stores.
    pub fn seen(self) -> u64 {
        SEEN[self as usize].load(Ordering::Relaxed)
    }

    fn count(self) {
        SEEN[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The connections to a database at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    /// In use.
    pub used: usize,
    /// Open and not in use.
    pub idle: usize,
    /// The maximum.
    pub max: usize,
}

impl Connections {
    /// The sum over some pools.
    pub fn of<Db: sqlx::Database>(pools: &[&Pool<Db>]) -> Self {
        let mut sum = Self::default();
        for pool in pools {
            let (open, idle) = (pool.size() as usize, pool.num_idle());
            sum.used += open.saturating_sub(idle);
            sum.idle += idle.min(open);
            sum.max += pool.options().get_max_connections() as usize;
        }
        sum
    }
}

impl StoreError {
    /// Classifies a failure to connect or to begin a transaction. A protocol error here means that the server went away
    /// while the connection was made; anywhere else it is a defect that no retry fixes.
    pub fn connecting(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Protocol(_) => {
                Reason::Unavailable.count();
                Self::Unavailable(error)
            }
            error => error.into(),
        }
    }

    /// Classifies a failure to get a connection where there were some before: rejected credentials count as unavailable
    /// too, because new ones will be accepted.
    pub fn reaching(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(DatabaseError::code);
        if code.is_some_and(|code| is_of_credentials(&code)) {
            Reason::Unavailable.count();
            return Self::Unavailable(error);
        }
        Self::connecting(error)
    }

    /// Classifies a failure to get a connection for a scan.
    pub fn browsing(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::TooMuch(error),
            error => Self::connecting(error),
        }
    }

    /// The error for everything in a group if the database as a whole, and nothing in the group, is at fault.
    pub fn group_error(&self) -> Option<fn() -> Error> {
        match self {
            Self::Unavailable(_) => Some(|| Error::unavailable("DATABASE_UNAVAILABLE", UNAVAILABLE)),
            Self::Full(_) => Some(full),
            Self::Conflict(_) | Self::TooMuch(_) | Self::Corrupt(_) | Self::Sqlx(_) => None,
        }
    }

    /// Whether the database gave up waiting for a lock that another transaction holds.
    pub fn waited_for_a_lock(&self) -> bool {
        matches!(self, Self::Unavailable(error) if waited_for_a_lock(error))
    }

    /// Whether a unique index rejected the row.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Sqlx(error) if is_unique_violation(error))
    }
}

enum ErrorClass {
    Conflict,
    Unavailable,
    Full,
    TooMuch,
    Defect,
}

fn error_class(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(database) => {
            if let Some(postgres) = database.try_downcast_ref::<PgDatabaseError>() {
                postgres_class(postgres.code())
            } else if database.try_downcast_ref::<SqliteError>().is_some() {
                sqlite_class(database.code().and_then(|code| code.parse().ok()).unwrap_or(0))
            } else {
                ErrorClass::Defect
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => ErrorClass::Unavailable,
        sqlx::Error::Migrate(migration) => match &**migration {
            sqlx::migrate::MigrateError::Execute(inner)
            | sqlx::migrate::MigrateError::ExecuteMigration(inner, _) => error_class(inner),
            _ => ErrorClass::Defect,
        },
        _ => ErrorClass::Defect,
    }
}

/// By SQLSTATE (PostgreSQL manual, appendix A).
fn postgres_class(code: &str) -> ErrorClass {
    match code {
        // serialization_failure, deadlock_detected
        "40001" | "40P01" => ErrorClass::Conflict,
        // disk_full
        "53100" => ErrorClass::Full,
        // out_of_memory, too_many_connections; admin_shutdown, crash_shutdown, cannot_connect_now,
        // idle_session_timeout, query_canceled (statement_timeout), lock_not_available (lock_timeout),
        // idle_in_transaction_session_timeout, read_only_sql_transaction (a replica after a failover)
        "53200" | "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "57014" | "55P03" | "25P03" | "25006" => {
            ErrorClass::Unavailable
        }
        // connection exceptions, system errors
        _ if code.starts_with("08") || code.starts_with("58") => ErrorClass::Unavailable,
        _ => ErrorClass::Defect,
    }
}

/// Whether PostgreSQL gave up waiting for a lock: `lock_not_available`.
fn waited_for_a_lock(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    let postgres = database.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    postgres.is_some_and(|error| error.code() == "55P03")
}

/// By result code (sqlite.org/rescode.html); the low byte is the primary one.
fn sqlite_class(code: i32) -> ErrorClass {
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => ErrorClass::Conflict,
        // SQLITE_FULL
        13 => ErrorClass::Full,
        // SQLITE_INTERRUPT
        9 => ErrorClass::TooMuch,
        // SQLITE_NOMEM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN
        7 | 8 | 10 | 14 => ErrorClass::Unavailable,
        _ => ErrorClass::Defect,
    }
}

/// What an error says of a server that can't be reached: sqlx tells the byte with which something answered that speaks another
/// protocol.
fn in_words(error: &sqlx::Error) -> String {
    let answer = match error {
        sqlx::Error::Protocol(said) => said.strip_prefix("unexpected response from SSLRequest: "),
        _ => None,
    };
    match answer {
        // The beginning of PostgreSQL's own errors.
        None | Some("0x45") => error.to_string(),
        // As sqlx also tells that nothing was answered.
        Some("0x00") => {
            "the connection was closed at once, or what listens there is no PostgreSQL".to_owned()
        }
        Some(_) => "what listens there is no PostgreSQL".to_owned(),
    }
}

/// What an error says that is none of the others.
fn unexpected(error: &sqlx::Error) -> String {
    let database = error.as_database_error();
    let refused = database.filter(|error| error.code().is_some_and(|code| is_of_credentials(&code)));
    if is_damaged(error) {
        format!("the database file is damaged; restore the newest sound backup: {error}")
    } else if let Some(refused) = refused {
        format!(
            "the database does not accept the user and password of its URL: {}",
            refused.message()
        )
    } else {
        format!("unexpected database error: {error}")
    }
}

/// Whether PostgreSQL rejected the credentials: `invalid_authorization_specification`, `invalid_password`.
fn is_of_credentials(code: &str) -> bool {
    code == "28000" || code == "28P01"
}

/// Whether a SQLite file can't be read as one.
fn is_damaged(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    let sqlite = database.filter(|error| error.try_downcast_ref::<SqliteError>().is_some());
    let code = sqlite.and_then(DatabaseError::code);
    let code: Option<i32> = code.and_then(|code| code.parse().ok());
    // SQLITE_CORRUPT, SQLITE_NOTADB
    code.is_some_and(|code| matches!(code & 0xff, 11 | 26))
}

/// Whether a unique index rejected the row.
pub fn is_unique_violation(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(DatabaseError::is_unique_violation)
}

/// An error of a use case that may be a conflict.
pub trait MayConflict {
    /// Whether retrying the whole use case at once may help.
    fn is_conflict(&self) -> bool;
}

impl MayConflict for StoreError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }
}

/// Runs a whole use case, from its first read to its commit, and retries it while it fails with a conflict; at most 12
/// times, with jittered pauses. Nothing may leave the process within `use_case`.
pub async fn retry_conflicts<T, E, F>(entropy: &Entropy, mut use_case: impl FnMut() -> F) -> Result<T, E>
where
    E: MayConflict,
    F: Future<Output = Result<T, E>>,
{
    let mut attempt = 0;
    loop {
        match use_case().await {
            Err(error) if error.is_conflict() && attempt + 1 < ATTEMPTS => {
                tokio::time::sleep(delay_for_attempt(attempt, &PAUSE, entropy.fraction())).await;
                attempt += 1;
            }
            Err(error) => {
                if error.is_conflict() {
                    Reason::Contention.count();
                }
                return Err(error);
            }
            Ok(done) => return Ok(done),
        }
    }
}

const UNAVAILABLE: &str = "the database is unavailable";

fn full() -> Error {
    Error::ResourceExhausted {
        reason: "STORAGE_FULL",
        message: "the database is full".into(),
        retry_after: Some(Duration::from_secs(30)),
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (reason, message, retry_after) = match &error {
            StoreError::Conflict(_) => ("DATABASE_CONTENTION", "too many writers at once", 1),
            StoreError::Unavailable(cause) if waited_for_a_lock(cause) => (
                "DATABASE_CONTENTION",
                "another transaction has held a lock for too long",
                1,
            ),
            StoreError::Unavailable(_) => ("DATABASE_UNAVAILABLE", UNAVAILABLE, 1),
            StoreError::Full(_) => {
                if let Some(left_out) = LOGGED.due() {
                    tracing::error!(%error, left_out, "store");
                }
                return full();
            }
            StoreError::TooMuch(_) => {
                return Self::ResourceExhausted {
                    reason: "LISTS_BUSY",
                    message: "the query would scan too many rows, or too many such queries are running: narrow it, or try again later"
                        .into(),
                    retry_after: Some(Duration::from_secs(5)),
                };
            }
            StoreError::Corrupt(_) | StoreError::Sqlx(_) => return Self::internal(error),
        };
        // The caller learns that it may retry; the cause goes to the log.
        if let Some(left_out) = LOGGED.due() {
            tracing::warn!(%error, left_out, "store");
        }
        Self::Unavailable {
            reason,
            message: message.into(),
            retry_after: Some(Duration::from_secs(retry_after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn conflict() -> StoreError {
        StoreError::Conflict(sqlx::Error::PoolTimedOut)
    }

    #[test]
    fn error_codes_are_classified_by_how_to_handle_them() {
        assert!(matches!(postgres_class("40001"), ErrorClass::Conflict));
        assert!(matches!(postgres_class("40P01"), ErrorClass::Conflict));
        assert!(matches!(postgres_class("57P01"), ErrorClass::Unavailable));
        assert!(matches!(postgres_class("08006"), ErrorClass::Unavailable));
        assert!(matches!(postgres_class("53100"), ErrorClass::Full));
        assert!(matches!(postgres_class("42P01"), ErrorClass::Defect));
        // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_LOCKED_SHAREDCACHE
        assert!(
            [5, 517, 262]
                .into_iter()
                .all(|code| matches!(sqlite_class(code), ErrorClass::Conflict))
        );
        // SQLITE_IOERR_FSYNC
        assert!(matches!(sqlite_class(1034), ErrorClass::Unavailable));
        assert!(matches!(sqlite_class(13), ErrorClass::Full));
        // SQLITE_CONSTRAINT_UNIQUE
        assert!(matches!(sqlite_class(2067), ErrorClass::Defect));
    }

    #[tokio::test]
    async fn a_file_that_is_damaged_is_said_to_be() {
        use sqlx::Connection as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 8192]).unwrap();
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file.path());
        let error = match sqlx::SqliteConnection::connect_with(&options).await {
            Ok(mut connection) => sqlx::query("SELECT * FROM sqlite_master")
                .execute(&mut connection)
                .await
                .unwrap_err(),
            Err(error) => error,
        };
        let message = StoreError::from(error).to_string();
        assert!(message.starts_with("the database file is damaged"), "{message}");
    }

    #[test]
    fn a_connection_that_breaks_while_being_opened_means_unavailable() {
        let broken = sqlx::Error::Protocol("unexpected response from SSLRequest: 0x00".into());
        assert!(matches!(
            StoreError::connecting(broken),
            StoreError::Unavailable(_)
        ));
        for (answer, says) in [
            (
                "0x48",
                "the database is unavailable: what listens there is no PostgreSQL",
            ),
            (
                "0x00",
                "the connection was closed at once, or what listens there is no PostgreSQL",
            ),
            ("0x45", "unexpected response from SSLRequest: 0x45"),
        ] {
            let answered = format!("unexpected response from SSLRequest: {answer}");
            let message = StoreError::connecting(sqlx::Error::Protocol(answered)).to_string();
            assert!(message.ends_with(says), "{message}");
        }
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let refused = StoreError::connecting(sqlx::Error::Io(refused));
        assert!(matches!(refused, StoreError::Unavailable(_)));
    }

    #[tokio::test]
    async fn a_statement_that_sqlx_can_never_send_is_a_defect() {
        use sqlx::Connection as _;

        let mut connection = sqlx::SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let unsent = sqlx::query("SELECT :by_name")
            .execute(&mut connection)
            .await
            .unwrap_err();
        assert!(matches!(unsent, sqlx::Error::Protocol(_)), "{unsent:?}");
        assert!(matches!(StoreError::from(unsent), StoreError::Sqlx(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflicting_use_case_is_retried_until_it_succeeds() {
        let runs = AtomicU32::new(0);
        let result = retry_conflicts(&Entropy::seeded(1), || async {
            if runs.fetch_add(1, Ordering::SeqCst) < 5 {
                Err(conflict())
            } else {
                Ok("done")
            }
        })
        .await;
        assert_eq!((result.unwrap(), runs.into_inner()), ("done", 6));
    }

    #[tokio::test(start_paused = true)]
    async fn endless_conflicts_are_reported_after_a_bounded_number_of_attempts() {
        let runs = AtomicU32::new(0);
        let given_up = Reason::Contention.seen();
        let result: Result<(), _> = retry_conflicts(&Entropy::seeded(1), || async {
            runs.fetch_add(1, Ordering::SeqCst);
            Err(conflict())
        })
        .await;
        assert!(result.unwrap_err().is_conflict());
        assert_eq!(runs.into_inner(), ATTEMPTS);
        // No other test of this process exhausts its attempts.
        assert_eq!(Reason::Contention.seen(), given_up + 1);
    }

    #[tokio::test]
    async fn other_errors_are_not_retried() {
        let runs = AtomicU32::new(0);
        let result: Result<(), _> = retry_conflicts(&Entropy::seeded(1), || async {
            runs.fetch_add(1, Ordering::SeqCst);
            Err(StoreError::from(sqlx::Error::PoolTimedOut))
        })
        .await;
        assert!(matches!(result, Err(StoreError::Unavailable(_))));
        assert_eq!(runs.into_inner(), 1);
    }

    #[test]
    fn errors_are_counted_by_their_reasons() {
        let seen = |reason: Reason| reason.seen();
        let (corrupt, away) = (seen(Reason::Corrupt), seen(Reason::Unavailable));
        let _ = StoreError::from(CorruptRow::new("resource", "kind", 17, "no kind 99"));
        let _ = StoreError::from(sqlx::Error::PoolTimedOut);
        // Other tests in this process may have counted some in the meantime.
        assert!(seen(Reason::Corrupt) > corrupt && seen(Reason::Unavailable) > away);
    }

    #[test]
    fn a_corrupt_row_names_table_column_and_id() {
        let row = CorruptRow::new("resource", "kind", 17, "no kind 99");
        assert_eq!(
            row.to_string(),
            "corrupt row 17 in resource, column kind: no kind 99"
        );
    }

    #[test]
    fn an_unavailable_database_asks_the_caller_to_retry_and_reveals_nothing() {
        let status = tonic::Status::from(emend_base::Error::from(StoreError::from(
            sqlx::Error::PoolTimedOut,
        )));
        assert_eq!(
            (status.code(), status.message()),
            (tonic::Code::Unavailable, "the database is unavailable")
        );
        assert_eq!(
            emend_base::status::Explained::from(&status).retry_after,
            Some(Duration::from_secs(1))
        );
    }
}
