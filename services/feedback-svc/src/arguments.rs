//! The command line of feedback-svc, which is also the schema of its configuration file (see
//! [`emend_runtime::config`]).

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use emend_runtime::{
    auth,
    bearer::TokenFile,
    config::{
        ConfigArgs, Program,
        units::{bytes, count, span},
    },
    database::DatabaseUrl,
    listen::ListenArgs,
    serve_args::ServeArgs,
    sqlite::DataDir,
    storage::{self, StorageError},
    telemetry::{self, LogArgs, TelemetryArgs},
    tls::{ClientTls, TlsArgs, TlsError},
};

use crate::{CommitConfig, Config, LearningAddress, RelayConfig};

/// Stores corrections durably and delivers each to learning-svc.
#[derive(Debug, Parser)]
#[command(
    name = "feedback-svc",
    version,
    after_help = "SIGTERM or ctrl-c ends it in good order, within two seconds more than --shutdown-grace and with exit code \
                  0; a second one ends it at once, with exit code 130.",
    mut_arg("listen", |arg| arg.default_value("127.0.0.1:7401").env("EMEND_FEEDBACK_LISTEN")),
    mut_arg("auth_config", |arg| arg.env("EMEND_FEEDBACK_AUTH_CONFIG")),
    mut_arg("config", |arg| arg.env("EMEND_FEEDBACK_CONFIG")),
)]
pub struct Arguments {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// The address of learning-svc, https://HOST:PORT for TLS; it need not be reachable yet
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:7402",
        env = "EMEND_LEARNING_ADDR"
    )]
    pub learning_addr: LearningAddress,
    /// A file that holds the token by which learning-svc recognises this service as an ingester; read again for each
    /// connection
    #[arg(long, value_name = "FILE", env = "EMEND_LEARNING_TOKEN_FILE")]
    pub learning_token_file: Option<PathBuf>,
    /// How connections to learning-svc are secured.
    #[command(flatten)]
    pub learning_tls: LearningTlsArgs,
    /// How connections are secured.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Where feedback is stored.
    #[command(flatten)]
    pub storage: StorageArgs,
    /// How submissions are stored.
    #[command(flatten)]
    pub commit: CommitArgs,
    /// How events are delivered.
    #[command(flatten)]
    pub relay: RelayArgs,
    /// How much is served at once.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// What the log looks like.
    #[command(flatten, next_help_heading = "Log")]
    pub log: LogArgs,
    /// What operators see.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
    /// The configuration file, and commands that check or print the settings.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// How connections to learning-svc are secured.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct LearningTlsArgs {
    /// The CAs (PEM) that verify learning-svc's certificate, instead of the system's; read again for each connection
    #[arg(long, value_name = "FILE", env = "EMEND_LEARNING_CA")]
    pub learning_ca: Option<PathBuf>,
    /// The client certificate (PEM) presented to learning-svc; read again for each connection
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_LEARNING_CLIENT_CERT",
        requires = "learning_client_key"
    )]
    pub learning_client_cert: Option<PathBuf>,
    /// The client certificate's private key (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_LEARNING_CLIENT_KEY",
        requires = "learning_client_cert"
    )]
    pub learning_client_key: Option<PathBuf>,
}

impl LearningTlsArgs {
    fn files(&self) -> Option<ClientTls> {
        ClientTls::from_files(
            self.learning_ca.as_deref(),
            self.learning_client_cert.as_deref(),
            self.learning_client_key.as_deref(),
        )
    }
}

/// Where feedback is stored.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct StorageArgs {
    /// Where feedback is stored: postgres://USER:PASSWORD@HOST:PORT/DATABASE, or sqlite:PATH; if unset, a SQLite file
    /// in the data directory
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_FEEDBACK_DATABASE_URL",
        hide_env_values = true,
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<DatabaseUrl>,
    /// A file that holds the database URL, instead of --database-url
    #[arg(long, value_name = "FILE", env = "EMEND_FEEDBACK_DATABASE_URL_FILE")]
    pub database_url_file: Option<PathBuf>,
    /// The directory of the SQLite file, used by this process alone; ignored with a database URL
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data/feedback",
        env = "EMEND_DATA_DIR"
    )]
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

/// How submissions are stored.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Submissions")]
pub struct CommitArgs {
    /// How many bytes of submissions may wait to be committed, 1MiB to 16GiB, each counted as 4KiB at least; further
    /// ones are refused at once, and the last quarter is reserved for clients that hold few bytes
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = bytes(1 << 20..=16 << 30))]
    pub commit_queue_size: usize,
    /// How long a submission may wait for its commit to begin, 10ms to 1m; after that it is refused
    #[arg(long, value_name = "SPAN", default_value = "2s",
          value_parser = span(Duration::from_millis(10)..=Duration::from_mins(1)))]
    pub commit_queue_time: Duration,
    /// How long a submission can be repeated safely under its request id, 7d to 3650d
    #[arg(long, value_name = "SPAN", default_value = "8d",
          value_parser = span(Duration::from_hours(7 * 24)..=Duration::from_hours(3_650 * 24)))]
    pub request_id_retention: Duration,
}

/// How events are delivered.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Delivery")]
pub struct RelayArgs {
    /// How many batches of events may be in flight to learning-svc at once, 1 to 64
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = count(1..=64))]
    pub relay_workers: usize,
    /// How long an event is leased to the replica that took it, 15s to 150s; if that replica dies, the event waits up
    /// to this long
    #[arg(long, value_name = "SPAN", default_value = "30s",
          value_parser = span(Duration::from_secs(15)..=Duration::from_secs(150)))]
    pub relay_lease: Duration,
    /// How often the outbox is polled for events that other replicas left behind or that are due for a retry, 100ms to
    /// 1m
    #[arg(long, value_name = "SPAN", default_value = "1s",
          value_parser = span(Duration::from_millis(100)..=Duration::from_mins(1)))]
    pub relay_poll: Duration,
    /// The longest wait between two delivery attempts of an event that learning-svc refuses for now, 1s to 150s
    #[arg(long, value_name = "SPAN", default_value = "1m",
          value_parser = span(Duration::from_secs(1)..=Duration::from_secs(150)))]
    pub relay_retry_max: Duration,
    /// How many events may be queued in memory, 256 to 1000000; further events wait in the outbox
    #[arg(long, value_name = "COUNT", default_value_t = 4_096, value_parser = count(256..=1_000_000))]
    pub relay_queue_events: usize,
}

impl Arguments {
    /// The database to use and, for a SQLite file, the lock on its directory, to be held until the process ends.
    pub fn database(&self) -> Result<(DatabaseUrl, Option<DataDir>), StorageError> {
        storage::lock(self.url()?, &self.storage.data_dir, "feedback.db")
    }

    /// The service's configuration, on that database. Reads the TLS files.
    pub fn configuration(&self, database: DatabaseUrl) -> Result<Config, TlsError> {
        let defaults = Config::new(database, self.learning()?);
        let retry = emend_runtime::BackoffConfig {
            max: self.relay.relay_retry_max,
            ..defaults.relay.retry
        };
        Ok(Config {
            learning_token: self.learning_token_file.as_ref().map(TokenFile::new),
            postgres_connections: self.storage.database_connections,
            database_patience: self.storage.database_patience,
            commit: CommitConfig {
                queue_bytes: self.commit.commit_queue_size,
                queue_time: self.commit.commit_queue_time,
                ..defaults.commit
            },
            relay: RelayConfig {
                workers: self.relay.relay_workers,
                lease: self.relay.relay_lease,
                poll: self.relay.relay_poll,
                queue_events: self.relay.relay_queue_events,
                retry,
                ..defaults.relay
            },
            request_id_retention: self.commit.request_id_retention,
            bounds: self.serve.bounds(),
            tls: self.tls.load()?,
            reflection: !self.listen.exposure.no_reflection,
            ..defaults
        })
    }

    fn learning(&self) -> Result<LearningAddress, TlsError> {
        let address = self.learning_addr.clone();
        match self.learning_tls.files() {
            Some(files) => {
                files.check()?;
                address.tls(files)
            }
            None => Ok(address),
        }
    }

    fn url(&self) -> Result<Option<DatabaseUrl>, StorageError> {
        match (&self.storage.database_url, &self.storage.database_url_file) {
            (None, Some(path)) => storage::read_url("--database-url-file", path).map(Some),
            (url, _) => Ok(url.clone()),
        }
    }
}

impl Program for Arguments {
    fn check(&self) -> Vec<String> {
        let url = self.url().err().map(|error| error.to_string());
        let auth = auth::args::check(self.listen.exposure.auth_config.as_ref());
        let log = telemetry::check(&self.log).err().map(|error| error.to_string());
        let token = self.learning_token_file.as_ref().map(TokenFile::new);
        let token = token.and_then(|file| file.authorization().err().map(|error| error.to_string()));
        let learning = self
            .learning()
            .err()
            .map(|error| format!("--learning-addr, --learning-ca, --learning-client-cert: {error}"));
        url.into_iter()
            .chain(token)
            .chain(log)
            .chain(self.listen.check())
            .chain(learning)
            .chain(self.tls.check())
            .chain(auth)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn without_arguments_all_is_as_the_library_has_it() {
        let arguments = Arguments::parse_from(["feedback-svc"]);
        let database = DatabaseUrl::sqlite("x.db");
        let learning = "127.0.0.1:7402".parse().unwrap();
        assert_eq!(
            format!("{:?}", arguments.configuration(database.clone()).unwrap()),
            format!("{:?}", Config::new(database, learning))
        );
    }

    #[test]
    fn what_is_wrong_with_files_for_tls_is_told_before_the_start_and_keeps_it_from_starting() {
        for (arguments, told) in [
            (
                ["--tls-cert=/nowhere/a.pem", "--tls-key=/nowhere/a.key"],
                "/nowhere/a.pem",
            ),
            (
                [
                    "--learning-addr=https://learning:7402",
                    "--learning-ca=/nowhere/ca.pem",
                ],
                "/nowhere/ca.pem",
            ),
        ] {
            let arguments = Arguments::parse_from(["feedback-svc"].iter().chain(&arguments));
            let complaints = arguments.check();
            assert!(
                complaints.len() == 1 && complaints[0].contains(told),
                "{complaints:?}"
            );
            assert!(arguments.configuration(DatabaseUrl::sqlite("x.db")).is_err());
        }
        for half in [
            "--tls-cert=a.pem",
            "--tls-client-ca=a.pem",
            "--learning-client-key=a.key",
        ] {
            assert!(
                Arguments::try_parse_from(["feedback-svc", half]).is_err(),
                "{half}"
            );
        }
    }

    #[test]
    fn each_bound_reaches_the_service() {
        let arguments = Arguments::parse_from([
            "feedback-svc",
            "--database-connections=9",
            "--database-patience=8s",
            "--commit-queue-size=2MiB",
            "--commit-queue-time=5s",
            "--request-id-retention=30d",
            "--relay-workers=3",
            "--relay-lease=20s",
            "--relay-poll=2s",
            "--relay-retry-max=10s",
            "--relay-queue-events=512",
            "--max-calls=11",
            "--max-connections=13",
            "--call-buffer-size=9MiB",
            "--keep-alive-interval=7s",
            "--keep-alive-timeout=6s",
            "--request-patience=5s",
            "--response-patience=4s",
        ]);
        let config = arguments.configuration(DatabaseUrl::sqlite("x.db")).unwrap();
        assert_eq!((config.postgres_connections, config.bounds.calls), (9, 11));
        assert_eq!((config.bounds.connections, config.bounds.bytes), (13, 9 << 20));
        assert_eq!(
            (config.commit.queue_bytes, config.commit.queue_time.as_secs()),
            (2 << 20, 5)
        );
        assert_eq!(config.database_patience.as_secs(), 8);
        assert_eq!(config.request_id_retention, Duration::from_hours(30 * 24));
        assert_eq!((config.relay.workers, config.relay.queue_events), (3, 512));
        let spans = [config.relay.lease, config.relay.poll, config.relay.retry.max];
        assert_eq!(spans.map(|span| span.as_secs()), [20, 2, 10]);
        let (keep_alive, patience) = (config.bounds.keep_alive, config.bounds.patience);
        let spans = [
            keep_alive.interval,
            keep_alive.timeout,
            patience.request,
            patience.response,
        ];
        assert_eq!(spans.map(|span| span.as_secs()), [7, 6, 5, 4]);
    }
}
