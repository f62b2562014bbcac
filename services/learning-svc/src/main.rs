//! The command line of learning-svc.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use emend_runtime::{
    Entropy, Lifecycle, SystemClock,
    database::{DatabaseUrl, PostgresUrl},
    lifecycle::run_until_signal,
    listen::ListenArgs,
    sqlite::DataDir,
    telemetry::{self, LogArgs, TelemetryArgs},
};
use learning_svc::{Config, Environment, start};

/// Keeps idle connections a little smaller than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long what is under way may take when the service ends. Two seconds more until it is cut off, and one for the last
/// spans.
const GRACE: Duration = Duration::from_secs(19);

/// Decides what may be learned of corrections and streams it to search nodes.
#[derive(Debug, Parser)]
#[command(
    name = "learning-svc",
    version,
    after_help = "SIGTERM or ctrl-c ends it in good order, within 22 seconds and with exit code 0; a second one ends it at \
                  once, with exit code 130."
)]
struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
    /// Where everything is kept: postgres://USER:PASSWORD@HOST:PORT/DATABASE, or sqlite:PATH [default: a SQLite file in the
    /// data directory]
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_LEARNING_DATABASE_URL",
        hide_env_values = true
    )]
    database_url: Option<DatabaseUrl>,
    /// A direct connection to the same PostgreSQL database, to be notified by, where --database-url leads through a
    /// pooler
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_LEARNING_LISTEN_DATABASE_URL",
        hide_env_values = true,
        requires = "database_url"
    )]
    listen_database_url: Option<PostgresUrl>,
    /// The directory of the SQLite file, which this process alone uses; not used with --database-url
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data/learning",
        env = "EMEND_DATA_DIR"
    )]
    data_dir: PathBuf,
    /// How many connections to PostgreSQL this replica may have
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    database_connections: u32,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let telemetry = telemetry::init(&arguments.log, "info")?.export_traces("learning-svc")?;
    // Held until the process ends.
    let (database, _lock) = match arguments.database_url {
        Some(DatabaseUrl::Sqlite(path)) => {
            let lock = DataDir::lock_parent(&path)?;
            (DatabaseUrl::Sqlite(path), Some(lock))
        }
        Some(postgres) => (postgres, None),
        None => {
            let directory = DataDir::lock(&arguments.data_dir)?;
            (
                DatabaseUrl::sqlite(directory.join("learning.db")),
                Some(directory),
            )
        }
    };
    let listener = arguments.listen.bind("127.0.0.1:7402").await?;
    let admin = arguments.telemetry.bind().await?;
    let lifecycle = Lifecycle::new();
    let mut config = Config::new(database);
    config.listen_database = arguments.listen_database_url;
    if matches!(config.database, DatabaseUrl::Postgres(_)) {
        config.connections = arguments.database_connections;
    }
    let metrics = config.metrics.clone();
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: SystemClock::shared(),
        entropy: Entropy::system(),
    };
    let handle = start(config, listener, environment)
        .await
        .context("learning-svc can't start")?;
    telemetry.serve(admin, &metrics, vec![handle.readiness().clone()], &lifecycle);
    let code = run_until_signal(&lifecycle, GRACE).await;
    handle.shutdown(Duration::ZERO).await;
    telemetry.finish().await;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
