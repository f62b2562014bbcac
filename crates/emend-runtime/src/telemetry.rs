//! The log: to standard error, for people or for machines.
//!
//! Standard output belongs to the programs' results. It must know nothing of what is logged.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How the log looks. Flattened into the arguments of every binary.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct LogArgs {
    /// How log lines on standard error are written
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        global = true,
        env = "EMEND_LOG_FORMAT"
    )]
    pub log_format: LogFormat,
    /// What is logged: a level, or directives such as info,sqlx=warn
    #[arg(long, value_name = "LEVEL", global = true, env = "EMEND_LOG")]
    pub log_level: Option<String>,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level can't be understood.
    #[error(
        "--log-level {level:?}: expected error, warn, info, debug, trace, or directives such as info,sqlx=warn: {reason}"
    )]
    Level {
        /// As given.
        level: String,
        /// Why not.
        reason: String,
    },
    /// Somebody else logs already.
    #[error("logging is set up already: {0}")]
    Twice(String),
}

/// Starts the log, once per process. `default_level` counts where the arguments name none.
pub fn init(args: &LogArgs, default_level: &str) -> Result<(), TelemetryError> {
    let filter = filter(args.log_level.as_deref().unwrap_or(default_level))?;
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(filter);
    match args.log_format {
        LogFormat::Pretty => log
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init(),
    }
    .map_err(|error| TelemetryError::Twice(error.to_string()))
}

/// Whether the arguments can be used, without using them.
pub fn check(args: &LogArgs) -> Result<(), TelemetryError> {
    args.log_level
        .as_deref()
        .map_or(Ok(()), |level| filter(level).map(drop))
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(level).map_err(|error| TelemetryError::Level {
        level: level.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_understood_and_nonsense_is_refused_by_name() {
        for fine in ["info", "warn,emend_runtime=debug", "off"] {
            assert!(filter(fine).is_ok(), "{fine}");
        }
        let refusal = filter("learning=loud").unwrap_err().to_string();
        assert!(
            refusal.contains("--log-level") && refusal.contains("learning=loud"),
            "{refusal}"
        );
    }

    #[test]
    fn one_process_logs_once() {
        let args = LogArgs {
            log_format: LogFormat::Json,
            log_level: None,
        };
        init(&args, "warn").unwrap();
        assert!(matches!(init(&args, "warn"), Err(TelemetryError::Twice(_))));
    }
}
