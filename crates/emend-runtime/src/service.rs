//! A service as a program of its own: the arguments that all services have, and the way from the command line to the exit
//! code.
//!
//! A service implements [`Program`] and [`Service`] for its arguments; its `main` is [`run`]. It must know nothing of
//! what any service is for.

use std::{env, future::Future, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::{
    Entropy, Lifecycle, SharedClock, SystemClock,
    auth::{self, Authenticator},
    config::{self, ConfigArgs, Program, units::span},
    database::DatabaseUrl,
    health::Readiness,
    lifecycle::{Shutdown, Signals, run_until_signal},
    listen::ListenArgs,
    probe,
    serve_args::ServeArgs,
    sqlite::DataDir,
    storage::{self, StorageError},
    telemetry::{self, LogArgs, Metrics, TelemetryArgs},
    tls::TlsArgs,
};

/// What a service is given from outside.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Owns the service's tasks, which run in a scope within it.
    pub lifecycle: Lifecycle,
    /// The time that decisions and new ids depend on. Commits, leases and retention go by the database's clock.
    pub clock: SharedClock,
    /// Source of ids, tokens and jitter.
    pub entropy: Entropy,
}

impl Environment {
    /// The system's clock and randomness.
    pub fn system(lifecycle: &Lifecycle) -> Self {
        Self {
            lifecycle: lifecycle.clone(),
            clock: SystemClock::shared(),
            entropy: Entropy::system(),
        }
    }
}

/// The arguments that all services have. A command that flattens them must say
/// `mut_args(`[`service_settings!`](crate::service_settings)`(…))`, which gives them the service's own defaults and
/// variables.
#[derive(Debug, clap::Args)]
pub struct ServiceArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// How connections are secured.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Where the service stores its data.
    #[command(flatten)]
    pub storage: StorageArgs,
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

/// Gives the settings that all services have one service's variables and defaults: its name in variables, the address it
/// listens on, and its data directory.
#[macro_export]
macro_rules! service_settings {
    ($name:literal, $address:literal, $data_dir:literal) => {
        |setting: clap::Arg| match setting.get_id().as_str() {
            // A flag that has no default of its own is required until it gets one.
            "listen" => setting
                .env(concat!("EMEND_", $name, "_LISTEN"))
                .default_value($address)
                .required(false),
            "data_dir" => setting.default_value($data_dir).required(false),
            "auth_config" => setting.env(concat!("EMEND_", $name, "_AUTH_CONFIG")),
            "database_url" => setting.env(concat!("EMEND_", $name, "_DATABASE_URL")),
            "database_url_file" => setting.env(concat!("EMEND_", $name, "_DATABASE_URL_FILE")),
            "config" => setting.env(concat!("EMEND_", $name, "_CONFIG")),
            _ => setting,
        }
    };
}

impl StorageArgs {
    /// The database to use and, for a SQLite file, the lock on its directory, to be held until the process ends. Without
    /// a URL it is `file` in the data directory.
    pub fn open(&self, file: &str) -> Result<(DatabaseUrl, Option<DataDir>), StorageError> {
        storage::lock(self.url()?, &self.data_dir, file)
    }

    fn url(&self) -> Result<Option<DatabaseUrl>, StorageError> {
        match (&self.database_url, &self.database_url_file) {
            (None, Some(path)) => storage::read_url("--database-url-file", path).map(Some),
            (url, _) => Ok(url.clone()),
        }
    }
}

impl ServiceArgs {
    /// What is wrong with these arguments, as far as can be told without starting anything.
    pub fn check(&self) -> Vec<String> {
        let url = self.storage.url().err().map(|error| error.to_string());
        let log = telemetry::check(&self.log).err().map(|error| error.to_string());
        let auth = auth::args::check(self.listen.exposure.auth_config.as_ref());
        url.into_iter()
            .chain(log)
            .chain(self.listen.check())
            .chain(self.tls.check())
            .chain(auth)
            .collect()
    }
}

/// A service that runs as a program of its own.
pub trait Service: Program {
    /// The program's name.
    const NAME: &'static str;
    /// The name by which health checks ask for it.
    const HEALTH: &'static str;
    /// Its SQLite file in the data directory.
    const FILE: &'static str;

    /// The service while it runs.
    type Handle: Running;

    /// The arguments that it shares with all services.
    fn shared(&self) -> &ServiceArgs;

    /// Starts it.
    fn start(&self, start: Start) -> impl Future<Output = anyhow::Result<Self::Handle>>;
}

/// What a service starts with, besides its arguments.
#[derive(Debug)]
pub struct Start {
    /// Where its data is.
    pub database: DatabaseUrl,
    /// Where it listens.
    pub listener: TcpListener,
    /// Identifies callers; without one, everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Where it registers its metrics.
    pub metrics: Metrics,
    /// Its lifecycle, clock and randomness.
    pub environment: Environment,
}

/// A service that runs.
pub trait Running {
    /// Its readiness checks.
    fn readiness(&self) -> &Readiness;

    /// Ends its tasks within `grace` and two seconds, and closes its database.
    fn shutdown(&self, grace: Duration) -> impl Future<Output = Shutdown>;
}

/// Runs a service by its command line until a signal ends it.
///
/// # Errors
/// If it can't start.
pub async fn run<S: Service>() -> anyhow::Result<ExitCode> {
    let (service, notes) = match config::begin::<S>(env::args_os()) {
        Ok(begun) => begun,
        Err(told) => return Ok(told.tell()),
    };
    let arguments = service.shared();
    if arguments.config.probe {
        let way = probe::Way::of(&arguments.tls, &arguments.telemetry);
        return Ok(probe::probe(&[(&*arguments.listen.listen, S::HEALTH)], &way).await);
    }
    let telemetry = telemetry::init(&arguments.log, "info")?.export_traces(S::NAME)?;
    notes.log();
    // Held until the process ends.
    let (database, _lock) = arguments.storage.open(S::FILE)?;
    let listener = arguments.listen.bind().await?;
    let admin = arguments.telemetry.bind().await?;
    let lifecycle = Lifecycle::new();
    let metrics = Metrics::new();
    let start = Start {
        database,
        listener,
        authenticator: auth::args::load(arguments.listen.exposure.auth_config.as_deref(), &lifecycle)?,
        metrics: metrics.clone(),
        environment: Environment::system(&lifecycle),
    };
    let mut signals = Signals::listen()?;
    // Boxed because it is large.
    let started = signals.during(&lifecycle, Box::pin(service.start(start)));
    let Some(started) = started.await else {
        telemetry.finish().await;
        return Ok(ExitCode::SUCCESS);
    };
    let running = started.with_context(|| format!("{} can't start", S::NAME))?;
    telemetry.serve(admin, &metrics, vec![running.readiness().clone()], &lifecycle);
    let code = run_until_signal(&mut signals, &lifecycle, arguments.serve.shutdown_grace).await;
    running.shutdown(Duration::ZERO).await;
    telemetry.finish().await;
    Ok(code)
}
