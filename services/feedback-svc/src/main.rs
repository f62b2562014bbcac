//! The command line of feedback-svc.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use emend_runtime::{
    Entropy, Lifecycle, SystemClock,
    database::DatabaseUrl,
    lifecycle::run_until_signal,
    listen::ListenArgs,
    sqlite::DataDir,
    telemetry::{self, LogArgs, TelemetryArgs},
};
use feedback_svc::{Config, Environment, LearningAddress, start};

/// Keeps idle connections a little smaller than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long what is under way may take when the service ends. Two seconds more until it is cut off, and one for the last
/// spans.
const GRACE: Duration = Duration::from_secs(19);

/// Stores corrections durably and brings each to learning-svc.
#[derive(Debug, Parser)]
#[command(
    name = "feedback-svc",
    version,
    after_help = "SIGTERM or ctrl-c ends it in good order, within 22 seconds and with exit code 0; a second one ends it at \
                  once, with exit code 130."
)]
struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
    /// Where feedback is kept: postgres://USER:PASSWORD@HOST:PORT/DATABASE, or sqlite:PATH [default: a SQLite file in the
    /// data directory]
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_FEEDBACK_DATABASE_URL",
        hide_env_values = true
    )]
    database_url: Option<DatabaseUrl>,
    /// The directory of the SQLite file, which this process alone uses; not used with --database-url
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data/feedback",
        env = "EMEND_DATA_DIR"
    )]
    data_dir: PathBuf,
    /// How many connections to PostgreSQL this replica may have
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    database_connections: u32,
    /// Where learning-svc is; it need not be there yet
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:7402",
        env = "EMEND_LEARNING_ADDR"
    )]
    learning_addr: LearningAddress,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let telemetry = telemetry::init(&arguments.log, "info")?.export_traces("feedback-svc")?;
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
                DatabaseUrl::sqlite(directory.join("feedback.db")),
                Some(directory),
            )
        }
    };
    let listener = arguments.listen.bind("127.0.0.1:7401").await?;
    let admin = arguments.telemetry.bind().await?;
    let lifecycle = Lifecycle::new();
    let config = Config {
        postgres_connections: arguments.database_connections,
        ..Config::new(database, arguments.learning_addr)
    };
    let metrics = config.metrics.clone();
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: SystemClock::shared(),
        entropy: Entropy::system(),
    };
    let handle = start(config, listener, environment)
        .await
        .context("feedback-svc can't start")?;
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
