//! What can be seen of a process from outside: its log ([`log`]), its metrics ([`metrics`]), the port at which operators look
//! at them ([`admin`]), and its traces, which are made of [`span`](crate::span)s.
//!
//! None of it ever holds what people wrote: no request bodies, no reporters, no free text, no learned values. Methods, codes,
//! ids, counts and times are what there is. It must know nothing of what the services do.

pub mod admin;
pub mod log;
pub mod metrics;
pub mod sampler;
mod traces;

use std::time::Duration;

use self::traces::Traces;
pub use self::{
    admin::{Admin, AdminListener},
    log::{LogArgs, LogFormat, LogLevel, TelemetryError, check},
    metrics::Metrics,
    traces::TracesError,
};
use crate::{health::Readiness, lifecycle::Lifecycle};

/// How long closing the admin port may take.
const CLOSING: Duration = Duration::from_millis(100);
/// How long the last spans may take on their way.
const LAST_SPANS: Duration = Duration::from_millis(900);

/// What operators can see. Flattened into the arguments of whatever serves.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryArgs {
    /// Where metrics, liveness and readiness are served over HTTP; port 0 takes a free one, which the log tells; empty for
    /// nowhere
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:0",
        env = "EMEND_METRICS_ADDR"
    )]
    pub metrics_addr: String,
}

impl TelemetryArgs {
    /// Takes the port, if there is to be one: before anything else is started, so that one in use is told at once.
    pub async fn bind(&self) -> Result<Option<AdminListener>, admin::BindError> {
        match &*self.metrics_addr {
            "" => Ok(None),
            address => AdminListener::bind(address).await.map(Some),
        }
    }
}

/// The telemetry of this process; by default none is set up. Clones are the same.
#[derive(Debug, Clone)]
pub struct Telemetry {
    level: Option<LogLevel>,
    traces: Option<Traces>,
    /// Its own: operators look until the very end.
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

/// Starts the log, once per process. `default_level` counts where the arguments name none.
pub fn init(args: &LogArgs, default_level: &str) -> Result<Telemetry, TelemetryError> {
    Ok(Telemetry {
        level: Some(log::init(args, default_level)?),
        ..Telemetry::default()
    })
}

impl Telemetry {
    /// Exports traces as `service`, if the OTEL_ variables say where to. To be called within a runtime.
    pub fn export_traces(mut self, service: &'static str) -> Result<Self, TracesError> {
        self.traces = traces::export(service)?;
        Ok(self)
    }

    /// Serves what operators ask for, until [`Telemetry::finish`]. Not ready from the moment when `served` is asked to stop.
    pub fn serve(
        &self,
        listener: Option<AdminListener>,
        metrics: &Metrics,
        services: Vec<Readiness>,
        served: &Lifecycle,
    ) {
        if let Some(listener) = listener {
            let admin = Admin::new(
                metrics.clone(),
                services,
                self.level.clone(),
                served.soft().clone(),
            );
            listener.serve(admin, &self.lifecycle);
        }
    }

    /// Ends it, last of all and within a second.
    pub async fn finish(&self) {
        if let Some(traces) = &self.traces {
            traces.finish(LAST_SPANS).await;
        }
        self.lifecycle.shutdown(CLOSING).await;
    }
}
