//! The log, on standard error, for people or for machines.
//!
//! Standard output belongs to the programs' results. The level can be changed while the process runs.

use std::{
    fmt,
    io::{self, IsTerminal as _},
    str::FromStr as _,
};

use clap::ValueEnum;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt as _, LevelFilter, Targets, filter_fn},
    layer::SubscriberExt as _,
    reload,
    util::SubscriberInitExt as _,
};

use super::traces::{Traces, TracesError};
use crate::span;

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

/// Why logging, or exporting traces, can't be set up.
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
    /// Traces can't be exported.
    #[error(transparent)]
    Traces(#[from] TracesError),
}

/// Changes what is logged. Clones share it.
#[derive(Clone)]
pub struct LogLevel(reload::Handle<Targets, Registry>);

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

/// Runs `start`, which comes before the log, with a log of its own.
pub(super) fn while_starting<T>(
    args: &LogArgs,
    default_level: &str,
    start: impl FnOnce() -> T,
) -> Result<T, TelemetryError> {
    let (lines, _) = lines(args, default_level)?;
    let log = tracing_subscriber::registry().with(lines);
    Ok(tracing::subscriber::with_default(log, start))
}

/// Starts the log, once per process, and lets `traces` see the spans that it exports.
pub(super) fn init(
    args: &LogArgs,
    default_level: &str,
    traces: Option<&Traces>,
) -> Result<LogLevel, TelemetryError> {
    let (lines, level) = lines(args, default_level)?;
    let log = tracing_subscriber::registry().with(lines);
    match traces {
        Some(traces) => log.with(traces.layer()).try_init(),
        // Not even an empty layer: then call sites that nobody asks for need not ask again.
        None => log.try_init(),
    }
    .map_err(|error| TelemetryError::Twice(error.to_string()))?;
    Ok(level)
}

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// The layer that writes log lines, and how to change what it writes. Spans to be exported are not its concern, whatever
/// the level, nor does the level decide what is exported.
pub(super) fn lines(args: &LogArgs, default_level: &str) -> Result<(Lines, LogLevel), TelemetryError> {
    let asked = args.log_level.as_deref().filter(|level| !level.is_empty());
    let (filter, level) = reload::Layer::new(filter(asked.unwrap_or(default_level))?);
    // Whoever names the library wants to read it.
    let shows_rust = asked.is_some_and(|directives| directives.contains(LIBRARY));
    let filter =
        filter_fn(move |metadata| metadata.target() != span::TARGET && (shows_rust || !is_in_rust(metadata)))
            .with_max_level_hint(LevelFilter::TRACE)
            .and(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match args.log_format {
        LogFormat::Pretty => lines
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .with_filter(filter)
            .boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .with_filter(filter)
            .boxed(),
    };
    Ok((lines, LogLevel(level)))
}

/// Where the library of assistants' protocol logs each refusal and each client as Rust writes them, with what was said.
const IN_RUST: &str = "rmcp::service";
/// Its name.
const LIBRARY: &str = "rmcp";

/// Whether it is nothing for operators: what refuses says it in words.
fn is_in_rust(metadata: &Metadata<'_>) -> bool {
    metadata.target() == IN_RUST && matches!(*metadata.level(), Level::WARN | Level::INFO)
}

fn filter(level: &str) -> Result<Targets, TelemetryError> {
    // A comma too many says nothing; `Targets` would take it for the level of errors.
    let directives: Vec<&str> = level
        .split(',')
        .filter(|directive| !directive.is_empty())
        .collect();
    Targets::from_str(&directives.join(",")).map_err(|error| TelemetryError::Level {
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
    fn a_comma_too_many_changes_nothing() {
        let level = filter("info,sqlx=warn,").unwrap().to_string();
        assert_eq!(level, "sqlx=warn,info");
    }

    #[test]
    fn logging_is_set_up_once_per_process() {
        let args = LogArgs {
            log_format: LogFormat::Json,
            log_level: None,
        };
        init(&args, "warn", None).unwrap();
        assert!(matches!(init(&args, "warn", None), Err(TelemetryError::Twice(_))));
    }
}
