//! The log, on standard error, for people or for machines.
//!
//! Standard output belongs to the programs' results. The level can be changed while the process runs.

use std::{
    fmt,
    io::{self, IsTerminal as _},
};

use clap::ValueEnum;
use tracing_subscriber::{
    EnvFilter, Registry, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

/// The log's format and level. Flattened into the arguments of every binary.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct LogArgs {
    /// Format of log lines on standard error
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

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}

/// Why logging can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is invalid.
    #[error(
        "--log-level {level:?}: expected error, warn, info, debug, trace, or directives such as info,sqlx=warn: {reason}"
    )]
    Level {
        /// As given.
        level: String,
        /// Why not.
        reason: String,
    },
    /// Logging is already set up by something else.
    #[error("logging is set up already: {0}")]
    Twice(String),
}

/// Changes what is logged. Clones share it.
#[derive(Clone)]
pub struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLevel").field(&self.current()).finish()
    }
}

impl LogLevel {
    /// The current level.
    pub fn current(&self) -> String {
        // It is gone only when logging is.
        self.0
            .with_current(ToString::to_string)
            .unwrap_or_else(|_| "off".to_owned())
    }

    /// Sets the level, or directives.
    pub fn set(&self, level: &str) -> Result<(), TelemetryError> {
        if level.is_empty() {
            // An empty filter would log only errors, which is never what an empty text means.
            return Err(TelemetryError::Level {
                level: String::new(),
                reason: "it is empty".to_owned(),
            });
        }
        let filter = filter(level)?;
        let before = self.current();
        self.0
            .reload(filter)
            .map_err(|gone| TelemetryError::Twice(gone.to_string()))?;
        tracing::warn!(before, now = level, "the log level was changed");
        Ok(())
    }

    /// A level that affects nothing that is logged.
    #[cfg(feature = "testing")]
    pub fn for_test(level: &str) -> Self {
        let (layer, handle) = reload::Layer::new(filter(level).expect("a level"));
        // Kept for as long as the test's process runs.
        std::mem::forget(layer);
        Self(handle)
    }
}

/// Checks the arguments without applying them.
pub fn check(args: &LogArgs) -> Result<(), TelemetryError> {
    args.log_level
        .as_deref()
        .filter(|level| !level.is_empty())
        .map_or(Ok(()), |level| filter(level).map(drop))
}

/// Starts the log, once per process. `default_level` applies if the arguments name none.
pub(super) fn init(args: &LogArgs, default_level: &str) -> Result<LogLevel, TelemetryError> {
    let asked = args.log_level.as_deref().filter(|level| !level.is_empty());
    let filter = filter(asked.unwrap_or(default_level))?;
    let (filter, level) = reload::Layer::new(filter);
    let log = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match args.log_format {
        LogFormat::Pretty => log
            .with(lines.with_ansi(io::stderr().is_terminal()).with_target(false))
            .try_init(),
        LogFormat::Json => log
            .with(
                lines
                    .json()
                    .flatten_event(true)
                    .with_current_span(true)
                    .with_span_list(false),
            )
            .try_init(),
    }
    .map_err(|error| TelemetryError::Twice(error.to_string()))?;
    Ok(LogLevel(level))
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
    fn levels_and_directives_are_parsed_and_an_invalid_one_is_named() {
        for fine in ["info", "warn,emend_base=debug", "off"] {
            assert!(filter(fine).is_ok(), "{fine}");
        }
        let refusal = filter("learning=loud").unwrap_err().to_string();
        assert!(
            refusal.contains("--log-level") && refusal.contains("learning=loud"),
            "{refusal}"
        );
    }

    #[test]
    fn logging_is_set_up_once_per_process() {
        let args = LogArgs {
            log_format: LogFormat::Json,
            log_level: None,
        };
        init(&args, "warn").unwrap();
        assert!(matches!(init(&args, "warn"), Err(TelemetryError::Twice(_))));
    }
}
