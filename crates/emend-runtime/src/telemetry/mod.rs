//! What is visible of a process from outside: its log ([`log`]), its metrics ([`metrics`]), the operators' port
//! ([`admin`]), and its traces, which consist of [`span`](crate::span)s.
//!
//! None of it ever holds what people wrote: no request bodies, reporters, free text or learned values, only methods,
//! codes, ids, counts and times. It must know nothing of what the services do.

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

/// How long closing the operators' port may take.
const CLOSING: Duration = Duration::from_millis(100);
/// How long sending the last spans may take.
const LAST_SPANS: Duration = Duration::from_millis(900);

/// What operators can see. Flattened into the arguments of every server.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryArgs {
    /// Where metrics, liveness and readiness are served over HTTP; port 0 picks a free one, which is logged; empty
    /// turns this off
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:0",
        env = "EMEND_METRICS_ADDR"
    )]
    pub metrics_addr: String,
}

impl TelemetryArgs {
    /// Binds the port, if there is one: before anything else starts, so that a port in use is reported at once.
    pub async fn bind(&self) -> Result<Option<AdminListener>, admin::BindError> {
        match &*self.metrics_addr {
            "" => Ok(None),
            address => AdminListener::bind(address).await.map(Some),
        }
    }
}

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

/// Starts the log, once per process. `default_level` applies if the arguments name none.
pub fn init(args: &LogArgs, default_level: &str) -> Result<Telemetry, TelemetryError> {
    Ok(Telemetry {
        level: Some(log::init(args, default_level)?),
        ..Telemetry::default()
    })
}

impl Telemetry {
    /// Exports traces as `service` if the OTEL_ variables name an endpoint. Must be called within a runtime.
    pub fn export_traces(mut self, service: &'static str) -> Result<Self, TracesError> {
        self.traces = traces::export(service)?;
        Ok(self)
    }

    /// Serves the operators' port until [`Telemetry::finish`]. It reports not ready from the moment `served` is asked
    /// to stop.
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

    /// Shuts telemetry down, last of all and within a second.
    pub async fn finish(&self) {
        if let Some(traces) = &self.traces {
            traces.finish(LAST_SPANS).await;
        }
        self.lifecycle.shutdown(CLOSING).await;
    }
}
