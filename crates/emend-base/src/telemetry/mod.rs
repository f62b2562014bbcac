//! What is visible of a process from outside: its log ([`log`]), its metrics ([`metrics`]), and its traces, which
//! consist of [`span`](crate::span)s.
//!
//! None of it ever holds what people wrote: no request bodies, reporters, free text or learned values, only methods,
//! codes, ids, counts and times.

pub mod log;
pub mod metrics;
pub mod sampler;
pub mod sparse;
mod traces;

use std::time::Duration;

use self::traces::Traces;
pub use self::{
    log::{LogArgs, LogFormat, LogLevel, TelemetryError, check},
    metrics::Metrics,
    traces::TracesError,
};
use crate::lifecycle::Lifecycle;

/// How long closing what shows it may take.
const CLOSING: Duration = Duration::from_millis(100);
/// How long sending the last spans may take.
const LAST_SPANS: Duration = Duration::from_millis(900);

/// The telemetry of this process; by default nothing is set up. Clones share it.
#[derive(Debug, Clone)]
pub struct Telemetry {
    level: Option<LogLevel>,
    traces: Option<Traces>,
    /// A scope of its own: operators can look until the very end.
    lifecycle: Lifecycle,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            level: None,
            traces: None,
            lifecycle: Lifecycle::new(),
        }
    }
}

/// Starts the log, once per process. `default_level` applies if the arguments name none. With `exported_as`, traces are
/// exported as that service if the OTEL_ variables name an endpoint; this must then be called within a runtime.
///
/// # Errors
/// If the level or the variables are invalid, or there is a log already.
pub fn init(
    args: &LogArgs,
    default_level: &str,
    exported_as: Option<&'static str>,
) -> Result<Telemetry, TelemetryError> {
    let traces = match exported_as {
        Some(service) => log::while_starting(args, default_level, || traces::export(service))??,
        None => None,
    };
    Ok(Telemetry {
        level: Some(log::init(args, default_level, traces.as_ref())?),
        traces,
        ..Telemetry::default()
    })
}

impl Telemetry {
    /// How to change what is logged, once the log is set up.
    pub fn level(&self) -> Option<&LogLevel> {
        self.level.as_ref()
    }

    /// The scope of what shows this process to operators. It ends with [`Telemetry::finish`].
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Shuts telemetry down, last of all and within a second.
    pub async fn finish(&self) {
        if let Some(traces) = &self.traces {
            traces.finish(LAST_SPANS).await;
        }
        self.lifecycle.shutdown(CLOSING).await;
    }
}
