//! The command line of learning-svc, which is also the schema of its configuration file (see
//! [`emend_base::config`]).

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Parser;
use emend_base::{
    config::{
        Program,
        units::{bytes, count, span},
    },
    http_client::model::{Endpoint, Parameters, bearer, bearer_from_file},
};
use emend_proto::learning::v1::ingest_service_server::SERVICE_NAME;
use emend_serve::{
    service::{Service, ServiceArgs, Start},
    service_settings,
};
use emend_store::{
    DatabaseUrl, PostgresUrl,
    sqlite::DataDir,
    storage::{self, StorageArgs, StorageError},
};
use http::{HeaderValue, Uri};
use jiff::SignedDuration;

use crate::{config::Config, service::Handle, stream::Settings};

/// Decides what to learn from corrections and streams it to search nodes.
#[derive(Debug, Parser)]
#[command(
    name = "learning-svc",
    version,
    after_help = "SIGTERM or ctrl-c shuts it down gracefully, within two seconds more than --shutdown-grace and with exit code \
                  0; a second one ends it at once, with exit code 130.",
    mut_args(service_settings!("LEARNING", "127.0.0.1:7402", "emend-data/learning"))
)]
pub struct Arguments {
    /// How the update stream behaves.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// What all services have.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Where the service stores its data.
    #[command(flatten)]
    pub storage: StorageArgs,
    /// What it does with its database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// What it takes from files about evidence.
    #[command(flatten)]
    pub evidence: EvidenceArgs,
    /// What generates texts.
    #[command(flatten)]
    pub generator: GeneratorArgs,
}

/// What learning-svc takes from files about evidence.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Evidence")]
pub struct EvidenceArgs {
    /// A trust file, in TOML if its name ends in .toml, otherwise in YAML; it is applied to the namespaces that it names, and again
    /// whenever it has changed and its version is greater. One that can't be used changes nothing, is logged and shown by
    /// readiness; all replicas may have it
    #[arg(long, value_name = "FILE", env = "EMEND_LEARNING_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,
}

/// What generates prompts and suggestions for profiles.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorArgs {
    /// The address of an OpenAI-compatible endpoint, below which /chat/completions is; what
    /// people rated and recorded is sent there. Without it prompts and suggestions are made without a model
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_LEARNING_GENERATOR_URL",
        value_parser = endpoint,
        requires = "generator_model"
    )]
    pub generator_url: Option<Uri>,
    /// The model's name there
    #[arg(
        long,
        value_name = "NAME",
        env = "EMEND_LEARNING_GENERATOR_MODEL",
        requires = "generator_url"
    )]
    pub generator_model: Option<String>,
    /// The key for the model, sent as a bearer token
    #[arg(
        long,
        value_name = "KEY",
        env = "EMEND_LEARNING_GENERATOR_KEY",
        hide_env_values = true,
        requires = "generator_url",
        conflicts_with = "generator_key_file"
    )]
    pub generator_key: Option<Secret>,
    /// A file that holds that key, instead of --generator-key
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_LEARNING_GENERATOR_KEY_FILE",
        requires = "generator_url"
    )]
    pub generator_key_file: Option<PathBuf>,
    /// How long the model may take for one answer, 1s to 10m
    #[arg(long, value_name = "SPAN", default_value = "1m", requires = "generator_url",
          value_parser = span(Duration::from_secs(1)..=Duration::from_mins(10)))]
    pub generator_timeout: Duration,
    /// How often a question is asked at most, where the answer is 429 or 5xx or none, 1 to 10
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "generator_url",
          value_parser = clap::value_parser!(u32).range(1..=10))]
    pub generator_attempts: u32,
    /// Further parameters of a request to the model, as a JSON object, for example
    /// {"temperature": 0.2, "seed": 7}; null leaves one out that is sent otherwise, as
    /// temperature is
    #[arg(
        long,
        value_name = "JSON",
        env = "EMEND_LEARNING_GENERATOR_PARAMETERS",
        value_parser = Parameters::from_str,
        requires = "generator_url"
    )]
    pub generator_parameters: Option<Parameters>,
}

/// A secret, which is never shown.
#[derive(Clone)]
pub struct Secret(HeaderValue);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        bearer(text).map(Self).map_err(|invalid| invalid.0)
    }
}

/// Parses the address of an endpoint.
fn endpoint(text: &str) -> Result<Uri, String> {
    let parsed: Result<Uri, _> = text.parse();
    let url = parsed
        .ok()
        .filter(|url| matches!(url.scheme_str(), Some("http" | "https")) && url.authority().is_some())
        .ok_or("expected http:// or https://, a host and a path")?;
    if url.authority().is_some_and(|host| host.as_str().contains('@')) {
        return Err("it must have no user and password; --generator-key-file is for the key".into());
    }
    if url.query().is_some() {
        return Err("it must have no query".into());
    }
    let path = url.path().trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        return Err("it must end before /chat/completions, which is added to it".into());
    }
    Ok(url)
}

impl GeneratorArgs {
    /// The endpoint to ask; none: texts are made without a model. An error names the file of the key that can't be read.
    pub fn endpoint(&self) -> anyhow::Result<Option<Endpoint>> {
        let (Some(url), Some(model)) = (&self.generator_url, &self.generator_model) else {
            return Ok(None);
        };
        let key = match (&self.generator_key, &self.generator_key_file) {
            (Some(Secret(key)), _) => Some(key.clone()),
            (None, Some(path)) => Some(bearer_from_file("the generator", path)?),
            (None, None) => None,
        };
        Ok(Some(Endpoint {
            url: url.clone(),
            model: model.clone(),
            key,
            timeout: self.generator_timeout,
            attempts: self.generator_attempts,
            parameters: self.generator_parameters.clone().unwrap_or_default(),
        }))
    }
}

/// What learning-svc does with its database.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseArgs {
    /// A direct connection to the same PostgreSQL database for notifications, needed where the database URL leads
    /// through a pooler (which must be in session mode) that does not pass notifications on
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_LEARNING_LISTEN_DATABASE_URL",
        hide_env_values = true,
        requires = "database",
        conflicts_with = "listen_database_url_file"
    )]
    pub listen_database_url: Option<PostgresUrl>,
    /// A file that holds that URL, instead of --listen-database-url
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_LEARNING_LISTEN_DATABASE_URL_FILE",
        requires = "database"
    )]
    pub listen_database_url_file: Option<PathBuf>,
    /// Begin a new installation if the PostgreSQL database is empty; give it once, at the very first start: a service whose
    /// database is empty otherwise does not start, because it is the wrong one or has lost what was learned
    #[arg(long, env = "EMEND_LEARNING_INIT")]
    pub init: bool,
    /// How many groups of events are applied concurrently, 1 to 64; always 1 on SQLite, which has one writer
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = count(1..=64))]
    pub ingest_workers: usize,
    /// How many bytes the rows of one import may take in memory, 1MiB to 16GiB; two imports run at once. A larger one that is
    /// all or nothing has to be split; others are written in parts, and three quarters of it are for what is kept of each key
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = bytes(1 << 20..=16 << 30))]
    pub import_buffer_size: usize,
    /// How long what users did is kept for suggestions, from when it was recorded, 1h to 3650d; what was suggested from it stays
    #[arg(long, value_name = "SPAN", default_value = "90d", value_parser = long_span)]
    pub activity_retention: SignedDuration,
    /// A directory with vectors in Model2Vec's format (`config.json`, `model.safetensors`, `tokenizer.json`) or a sentence encoder
    /// (`model.onnx`, `tokenizer.json`): `Resolve` gives near answers by them, too, where a policy names just these
    #[arg(long, value_name = "DIR", env = "EMEND_LEARNING_NEAR_VECTORS")]
    pub near_vectors: Option<PathBuf>,
}

/// How the update stream behaves.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Update stream")]
pub struct StreamArgs {
    /// How many streams this replica holds, 1 to 1000000, and no more than `max-connections`; further streams are
    /// refused, and another replica may have room
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = count(1..=1_000_000))]
    pub max_streams: usize,
    /// The average lifetime of a stream, 1m to 30d, varied by up to a fifth either way; its node then reconnects, which
    /// spreads nodes over the replicas
    #[arg(long, value_name = "SPAN", default_value = "1h",
          value_parser = span(Duration::from_mins(1)..=Duration::from_hours(30 * 24)))]
    pub max_stream_age: Duration,
    /// The longest delay a node is asked to wait before it reconnects, 0s to 5m, drawn at random for each
    #[arg(long, value_name = "SPAN", default_value = "5s",
          value_parser = span(Duration::ZERO..=Duration::from_mins(5)))]
    pub max_reconnect_delay: Duration,
    /// How many snapshots and long updates are sent at once, 1 to 1024; with 4 or more, one client gets at most three
    /// quarters of them, and the last quarter is handed out in small shares
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = count(1..=1_024))]
    pub max_transfers: usize,
    /// How many bytes of encoded messages all streams together may hold, 1MiB to 16GiB; beyond that, none are kept for
    /// sharing and messages are cut to 64KiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes(1 << 20..=16 << 30))]
    pub stream_buffer_size: usize,
    /// How long deletions are remembered, 1h to 3650d; a node that was away for longer takes a snapshot
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = long_span)]
    pub tombstone_age: SignedDuration,
    /// How many deletions are remembered, 1000 to 100000000
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(i64).range(1_000..=100_000_000))]
    pub max_tombstones: i64,
    /// How long a node may go without being heard of before it is forgotten, 1h to 3650d
    #[arg(long, value_name = "SPAN", default_value = "30d", value_parser = long_span)]
    pub node_forgotten_after: SignedDuration,
}

/// Parses a span from one hour to ten years.
fn long_span(text: &str) -> Result<SignedDuration, String> {
    let parse = span(Duration::from_hours(1)..=Duration::from_hours(3_650 * 24));
    SignedDuration::try_from(parse(text)?).map_err(|error| error.to_string())
}

impl Arguments {
    /// The service's configuration, on that database.
    pub fn configuration(&self, database: DatabaseUrl) -> anyhow::Result<Config> {
        let mut config = Config::new(database);
        config.listen_database = self.listen_url()?;
        config.init = self.database.init;
        if matches!(config.database, DatabaseUrl::Postgres(_)) {
            config.connections = self.storage.database_connections;
            config.ingest_workers = self.database.ingest_workers;
        }
        config.database_patience = self.storage.database_patience;
        config.import_bytes = self.database.import_buffer_size;
        config.activity_retention = self.database.activity_retention;
        config.near_vectors = self
            .database
            .near_vectors
            .as_deref()
            .map(emend_vectors::read)
            .transpose()?;
        config.trust_file.clone_from(&self.evidence.trust_file);
        config.generator = self.generator.endpoint()?;
        config.stream = Settings {
            max_streams: self.stream.max_streams,
            max_stream_age: self.stream.max_stream_age,
            max_reconnect_delay: self.stream.max_reconnect_delay,
            transfers: self.stream.max_transfers,
            encoded_bytes: self.stream.stream_buffer_size,
            tombstone_age: self.stream.tombstone_age,
            max_tombstones: self.stream.max_tombstones,
            node_forgotten_after: self.stream.node_forgotten_after,
            ..config.stream
        };
        config.bounds = self.service.serve.bounds();
        config.tls = self.service.tls.load()?;
        config.reflection = !self.service.listen.exposure.no_reflection;
        Ok(config)
    }

    fn listen_url(&self) -> Result<Option<PostgresUrl>, StorageError> {
        match (
            &self.database.listen_database_url,
            &self.database.listen_database_url_file,
        ) {
            (None, Some(path)) => storage::read_postgres_url("--listen-database-url-file", path).map(Some),
            (url, _) => Ok(url.clone()),
        }
    }
}

impl Program for Arguments {
    fn check(&self) -> Vec<String> {
        let listen_url = self.listen_url().err().map(|error| error.to_string());
        let (streams, connections) = (self.stream.max_streams, self.service.serve.max_connections);
        let room = (streams > connections).then(|| {
            format!("--max-streams {streams}: expected at most as many as --max-connections, {connections}")
        });
        let own = listen_url.into_iter().chain(room);
        own.chain(self.storage.check())
            .chain(self.service.check())
            .collect()
    }
}

impl Service for Arguments {
    const NAME: &'static str = "learning-svc";
    const HEALTH: &'static str = SERVICE_NAME;

    type Held = (DatabaseUrl, Option<DataDir>);
    type Handle = Handle;

    fn shared(&self) -> &ServiceArgs {
        &self.service
    }

    fn hold(&self) -> anyhow::Result<Self::Held> {
        Ok(self.storage.open("learning.db")?)
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
    use emend_base::config::units::duration;

    use super::*;

    #[test]
    fn max_streams_above_max_connections_is_refused() {
        let check = |streams: &str| {
            let arguments = ["learning-svc", "--data-dir=x", "--max-connections=13", streams];
            Arguments::parse_from(arguments).check()
        };
        assert_eq!(check("--max-streams=13"), [""; 0]);
        let refused = check("--max-streams=14").concat();
        assert!(
            refused.contains("--max-streams 14") && refused.contains("13"),
            "{refused}"
        );
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn without_arguments_the_library_defaults_apply() {
        let arguments = Arguments::parse_from(["learning-svc"]);
        for database in [
            DatabaseUrl::sqlite("x.db"),
            "postgres://emend@db.example/emend".parse().unwrap(),
        ] {
            assert_eq!(
                format!("{:?}", arguments.configuration(database.clone()).unwrap()),
                format!("{:?}", Config::new(database))
            );
        }
    }

    #[test]
    fn each_option_reaches_the_configuration() {
        let arguments = Arguments::parse_from([
            "learning-svc",
            "--database-url=postgres://emend@pooler.example/emend",
            "--listen-database-url=postgres://emend@db.example/emend",
            "--database-connections=9",
            "--database-patience=8s",
            "--init",
            "--ingest-workers=3",
            "--import-buffer-size=3MiB",
            "--activity-retention=30d",
            "--trust-file=trust.yaml",
            "--generator-url=https://models.example/v1",
            "--generator-model=small-1",
            "--generator-key=secret",
            "--generator-timeout=9s",
            "--generator-attempts=2",
            "--generator-parameters={\"seed\": 7}",
            "--max-streams=12",
            "--max-stream-age=2m",
            "--max-reconnect-delay=1s",
            "--max-transfers=5",
            "--tombstone-age=2d",
            "--max-tombstones=5000",
            "--node-forgotten-after=3d",
            "--max-calls=11",
            "--max-connections=13",
            "--call-buffer-size=9MiB",
            "--keep-alive-interval=7s",
            "--keep-alive-timeout=6s",
            "--request-patience=5s",
            "--response-patience=4s",
            "--stream-buffer-size=2MiB",
        ]);
        let (database, _) = arguments.storage.open("x.db").unwrap();
        let config = arguments.configuration(database).unwrap();
        assert_eq!(
            config.listen_database.unwrap().to_string(),
            "postgres://emend@db.example:5432/emend"
        );
        assert_eq!(
            (config.connections, config.ingest_workers, config.bounds.calls),
            (9, 3, 11)
        );
        assert_eq!((config.bounds.connections, config.bounds.bytes), (13, 9 << 20));
        assert_eq!(config.database_patience, duration("8s").unwrap());
        assert!(config.init);
        assert_eq!(config.trust_file, Some(PathBuf::from("trust.yaml")));
        let generator = config.generator.unwrap();
        assert_eq!(generator.url, "https://models.example/v1");
        assert_eq!((generator.model.as_str(), generator.attempts), ("small-1", 2));
        assert_eq!(generator.timeout, duration("9s").unwrap());
        assert_eq!(generator.parameters, "{\"seed\": 7}".parse().unwrap());
        assert_eq!(generator.key.unwrap(), "Bearer secret");
        assert_eq!((config.stream.max_streams, config.stream.transfers), (12, 5));
        assert_eq!(config.stream.max_stream_age, duration("2m").unwrap());
        assert_eq!(config.stream.max_reconnect_delay, duration("1s").unwrap());
        assert_eq!(config.stream.tombstone_age, SignedDuration::from_hours(48));
        assert_eq!(config.stream.max_tombstones, 5_000);
        assert_eq!(config.activity_retention, SignedDuration::from_hours(30 * 24));
        assert_eq!(config.stream.node_forgotten_after, SignedDuration::from_hours(72));
        assert_eq!(
            (config.stream.encoded_bytes, config.import_bytes),
            (2 << 20, 3 << 20)
        );
        let (keep_alive, patience) = (config.bounds.keep_alive, config.bounds.patience);
        let spans = [
            keep_alive.interval,
            keep_alive.timeout,
            patience.request,
            patience.response,
        ];
        assert_eq!(spans.map(|span| span.as_secs()), [7, 6, 5, 4]);
    }

    #[test]
    fn a_generator_has_an_address_of_http_and_a_model() {
        let parse = |more: &[&str]| {
            let arguments = [&["learning-svc"], more].concat();
            Arguments::try_parse_from(arguments).map_err(|error| error.to_string())
        };
        assert!(
            parse(&["--generator-url=https://models.example/v1"]).is_err(),
            "no model"
        );
        assert!(parse(&["--generator-key=x"]).is_err(), "nothing to send it to");
        for (url, why) in [
            ("models.example", "expected http:// or https://"),
            ("ftp://models.example", "expected http:// or https://"),
            ("https://u:p@models.example", "must have no user and password"),
            ("https://m.example?k=1", "must have no query"),
            (
                "https://m.example/v1/chat/completions/",
                "must end before /chat/completions",
            ),
        ] {
            let refused = parse(&[&format!("--generator-url={url}"), "--generator-model=m"]).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let secret = parse(&[
            "--generator-url=http://localhost:1/v1",
            "--generator-model=m",
            "--generator-key=very-secret",
        ]);
        let shown = format!("{:?}", secret.unwrap());
        assert!(!shown.contains("very-secret"), "{shown}");
    }

    #[test]
    fn a_listen_database_url_requires_a_database_url() {
        let alone = [
            "learning-svc",
            "--listen-database-url=postgres://emend@db.example/emend",
        ];
        assert!(Arguments::try_parse_from(alone).is_err());
        let beside_a_file = [&alone[..], &["--database-url-file=x"]].concat();
        assert!(Arguments::try_parse_from(beside_a_file).is_ok());
    }
}
