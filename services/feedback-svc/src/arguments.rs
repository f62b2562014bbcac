//! The command line of feedback-svc, which is also the schema of its configuration file (see
//! [`emend_base::config`]).

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use emend_base::{
    bearer::TokenFile,
    config::{
        Program,
        units::{bytes, count, span},
    },
    tls::{ClientTls, TlsError},
};
use emend_proto::feedback::v1::feedback_service_server::SERVICE_NAME;
use emend_serve::{
    listen::Exposure,
    network::Network,
    origin::Origin,
    plain_http::Bounds,
    service::{Service, ServiceArgs, Start},
    service_settings,
};
use emend_store::{DatabaseUrl, sqlite::DataDir, storage::StorageArgs};

use crate::{
    Config, Handle, LearningAddress,
    corrections::config::CommitConfig,
    outbox::{
        config::RelayConfig,
        credentials::{self, Tried},
    },
    ratings::http::{Binding, KeyFile, RatingHttp},
};

/// Stores corrections durably and delivers each to learning-svc.
#[derive(Debug, Parser)]
#[command(
    name = "feedback-svc",
    version,
    after_help = "SIGTERM or ctrl-c shuts it down gracefully, within two seconds more than --shutdown-grace and with exit code \
                  0; a second one ends it at once, with exit code 130.",
    mut_args(service_settings!("FEEDBACK", "127.0.0.1:7401", "emend-data/feedback"))
)]
pub struct Arguments {
    /// The address of learning-svc, https://HOST:PORT for TLS, or those of several replicas, separated by commas; it need not be
    /// reachable yet
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
    /// Begin on a PostgreSQL database that is empty; give it once, at the very first start: a service whose database is empty
    /// otherwise does not start, because it is the wrong one or has lost the corrections
    #[arg(long, env = "EMEND_FEEDBACK_INIT")]
    pub init: bool,
    /// How connections to learning-svc are secured.
    #[command(flatten)]
    pub learning_tls: LearningTlsArgs,
    /// How submissions are stored.
    #[command(flatten)]
    pub commit: CommitArgs,
    /// How events are delivered.
    #[command(flatten)]
    pub relay: RelayArgs,
    /// Log with each rating of a search answer the title of the best result and, if it was rated down, the titles of all;
    /// titles are texts of your documents, and nothing else of what people or documents say is logged
    #[arg(long, env = "EMEND_FEEDBACK_LOG_RESULT_TITLES")]
    pub log_result_titles: bool,
    /// Where raters in browsers are served.
    #[command(flatten)]
    pub rating_http: RatingHttpArgs,
    /// What all services have.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Where the service stores its data.
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// Where raters in browsers are served.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Ratings over HTTP")]
pub struct RatingHttpArgs {
    /// Take ratings over HTTP at this address, for this namespace and as this caller; may be given several times
    #[arg(
        long,
        value_name = "HOST:PORT=NAMESPACE/CALLER",
        value_delimiter = ',',
        env = "EMEND_RATING_HTTP"
    )]
    pub rating_http: Vec<Binding>,
    /// The origins of pages that may send ratings there, such as `https://search.example`; * for all
    #[arg(
        long,
        value_name = "ORIGIN",
        value_delimiter = ',',
        env = "EMEND_RATING_ORIGINS",
        value_parser = allowed_origin
    )]
    pub rating_origins: Vec<String>,
    /// The proxies before these addresses, such as 10.0.0.0/8: what their X-Forwarded-For says is believed
    #[arg(
        long,
        value_name = "NETWORK",
        value_delimiter = ',',
        env = "EMEND_RATING_TRUSTED_PROXIES"
    )]
    pub rating_trusted_proxies: Vec<Network>,
    /// File with the key, at least 16 bytes, by which end users' addresses are hashed; the same for all replicas [default:
    /// drawn once and kept in the database, for all replicas]
    #[arg(long, value_name = "FILE", env = "EMEND_RATING_KEY_FILE")]
    pub rating_key_file: Option<PathBuf>,
    /// How many connections are open there at once, at each address, 8 to 100000; in the last quarter one address has at most
    /// four
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = count(8..=100_000))]
    pub rating_max_connections: usize,
    /// How long a request there may take to arrive, and how long a silent connection is kept, 100ms to 5m
    #[arg(long, value_name = "SPAN", default_value = "10s",
          value_parser = span(Duration::from_millis(100)..=Duration::from_mins(5)))]
    pub rating_patience: Duration,
    /// The longest rating that is read there, 1KiB to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = bytes(1 << 10..=1 << 20))]
    pub rating_max_size: usize,
}

/// An origin as browsers send it, or `*`.
fn allowed_origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let origin: Result<Origin, _> = text.parse();
    origin
        .map(|origin| origin.to_string())
        .map_err(|why| format!("{why}, or *"))
}

impl RatingHttpArgs {
    /// The configuration that they say.
    pub fn configuration(&self, exposure: &Exposure) -> RatingHttp {
        RatingHttp {
            bindings: self.rating_http.clone(),
            exposure: exposure.clone(),
            origins: self.rating_origins.clone(),
            trusted_proxies: self.rating_trusted_proxies.clone(),
            key: KeyFile(self.rating_key_file.clone()),
            bounds: Bounds {
                connections: self.rating_max_connections,
                patience: self.rating_patience,
                ..Bounds::default()
            },
            max_body: self.rating_max_size,
        }
    }
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
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = count(1..=64))]
    pub relay_workers: usize,
    /// How long an event is leased to the replica that took it, 15s to 150s; if that replica's host dies,
    /// the event waits up to this long at most, and only seconds if its process ends
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
    /// The service's configuration, on that database. Reads the TLS files.
    pub fn configuration(&self, database: DatabaseUrl) -> Result<Config, TlsError> {
        let defaults = Config::new(database, self.learning()?);
        let retry = emend_base::BackoffConfig {
            max: self.relay.relay_retry_max,
            ..defaults.relay.retry
        };
        Ok(Config {
            learning_token: self.learning_token_file.as_ref().map(TokenFile::new),
            init: self.init,
            accept_installation: None,
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
            bounds: self.service.serve.bounds(),
            tls: self.service.tls.load()?,
            reflection: !self.service.listen.exposure.no_reflection,
            rating_http: self.rating_http.configuration(&self.service.listen.exposure),
            log_result_titles: self.log_result_titles,
            ..defaults
        })
    }

    /// Why learning-svc refuses this service, if it answers now and does. Without credentials there is nothing to try.
    fn refused_by_learning(&self) -> Option<String> {
        let token = self.learning_token_file.as_ref().map(TokenFile::new);
        if token.is_none() && self.learning_tls.learning_client_cert.is_none() {
            return None;
        }
        let remote = self.learning().ok()?.remote();
        let trying = async move { credentials::tried(&remote, token.as_ref()).await };
        // Settings are checked within a runtime, in which nothing may block on another one.
        let tried = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            Some(runtime.ok()?.block_on(trying))
        });
        match tried.join().ok()?? {
            Tried::Refused(reason) => Some(format!(
                "--learning-token-file, --learning-client-cert: learning-svc at {} refuses this service: {reason}",
                self.learning_addr
            )),
            Tried::Untrusted(reason) => Some(format!(
                "--learning-addr, --learning-ca: no secure connection to learning-svc at {}: {reason}",
                self.learning_addr
            )),
            Tried::Accepted | Tried::Unknown => None,
        }
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
}

impl Program for Arguments {
    fn check(&self) -> Vec<String> {
        let token = self.learning_token_file.as_ref().map(TokenFile::new);
        let token = token.and_then(|file| file.authorization().err());
        let token = token.map(|error| format!("--learning-token-file: {error}"));
        let learning = self
            .learning()
            .err()
            .map(|error| format!("--learning-addr, --learning-ca, --learning-client-cert: {error}"));
        let rating_http = self.rating_http.configuration(&self.service.listen.exposure);
        let refused = match (&token, &learning) {
            (None, None) => self.refused_by_learning(),
            _ => None,
        };
        let own = token.into_iter().chain(learning).chain(refused);
        let own = own.chain(rating_http.check());
        own.chain(self.storage.check())
            .chain(self.service.check())
            .collect()
    }
}

impl Service for Arguments {
    const NAME: &'static str = "feedback-svc";
    const HEALTH: &'static str = SERVICE_NAME;

    type Held = (DatabaseUrl, Option<DataDir>);
    type Handle = Handle;

    fn shared(&self) -> &ServiceArgs {
        &self.service
    }

    fn hold(&self) -> anyhow::Result<Self::Held> {
        Ok(self.storage.open("feedback.db")?)
    }

    async fn start(&self, (database, _): &Self::Held, start: Start) -> anyhow::Result<Handle> {
        let mut config = self.configuration(database.clone())?;
        config.authenticator = start.authenticator;
        config.metrics = start.metrics;
        crate::start(config, start.listener, start.environment).await
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
    fn without_arguments_the_library_defaults_apply() {
        let arguments = Arguments::parse_from(["feedback-svc"]);
        let database = DatabaseUrl::sqlite("x.db");
        let learning = "127.0.0.1:7402".parse().unwrap();
        assert_eq!(
            format!("{:?}", arguments.configuration(database.clone()).unwrap()),
            format!("{:?}", Config::new(database, learning))
        );
    }

    #[test]
    fn unusable_tls_files_are_reported_and_prevent_the_start() {
        for (arguments, expected) in [
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
                complaints.len() == 1 && complaints[0].contains(expected),
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
    fn raters_are_served_beyond_loopback_only_if_that_is_allowed() {
        let refusals = |more: &[&str]| {
            let arguments = ["feedback-svc", "--rating-http=0.0.0.0:7403=cards/web"];
            Arguments::parse_from(arguments.iter().chain(more)).check()
        };
        let refused = refusals(&[]);
        assert!(
            refused.len() == 1 && refused[0].contains("--rating-http: refusing to listen on 0.0.0.0:7403"),
            "{refused:?}"
        );
        assert_eq!(refusals(&["--allow-unauthenticated"]), [""; 0]);
    }

    #[test]
    fn each_option_for_raters_reaches_the_configuration() {
        let said = [
            "--rating-http=127.0.0.1:7403=cards/web",
            "--rating-origins=https://search.example",
            "--rating-trusted-proxies=10.0.0.0/8",
            "--rating-key-file=key",
            "--rating-max-connections=9",
            "--rating-patience=1s",
            "--rating-max-size=2KiB",
        ];
        let command = Arguments::command();
        let known = command.get_arguments().filter_map(clap::Arg::get_long);
        for option in known.filter(|option| option.starts_with("rating-")) {
            let written = format!("--{option}=");
            assert!(said.iter().any(|said| said.starts_with(&written)), "{option}");
        }
        let arguments = Arguments::parse_from(["feedback-svc"].iter().chain(&said));
        let config = arguments.configuration(DatabaseUrl::sqlite("x.db")).unwrap();
        let ratings = config.rating_http;
        assert_eq!(ratings.bindings, ["127.0.0.1:7403=cards/web".parse().unwrap()]);
        assert_eq!(ratings.origins, ["https://search.example"]);
        assert_eq!(ratings.trusted_proxies, ["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(ratings.key.0, Some("key".into()));
        assert_eq!((ratings.bounds.connections, ratings.max_body), (9, 2 << 10));
        assert_eq!(ratings.bounds.patience.as_secs(), 1);
    }

    #[test]
    fn each_option_reaches_the_configuration() {
        let arguments = Arguments::parse_from([
            "feedback-svc",
            "--database-connections=9",
            "--database-patience=8s",
            "--init",
            "--log-result-titles",
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
        assert!(config.init && config.log_result_titles);
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
