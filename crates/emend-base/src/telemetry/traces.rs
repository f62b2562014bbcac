//! Traces, exported over OTLP/gRPC only if the standard variables name an endpoint.
//!
//! Endpoint, headers, timeouts, sampler, resource and queue bounds come from the OTEL_ variables (docs/telemetry.md
//! lists them). The queue is bounded: if the receiver is away or slow, spans are dropped and nothing waits. It must
//! know nothing of what is traced.

use std::{env, time::Duration};

use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::time::timeout;

use crate::span;

/// The variables that name the endpoint; the first one set counts.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// The variables that name the protocol; the first one set counts.
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];

/// Why traces can't be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// An unsupported protocol.
    #[error("{variable}={protocol}: traces can be exported over grpc only")]
    Protocol {
        /// The variable that names it.
        variable: &'static str,
        /// As given.
        protocol: String,
    },
    /// The variables are invalid.
    #[error("can't export traces to {endpoint}: {reason}")]
    Exporter {
        /// The endpoint.
        endpoint: String,
        /// Why not.
        reason: String,
    },
}

/// The running export, until it is finished.
#[derive(Debug, Clone)]
pub(super) struct Traces(SdkTracerProvider);

/// Starts exporting traces if the environment names an endpoint. Must be called within a runtime, once per process.
pub(super) fn export(service: &'static str) -> Result<Option<Traces>, TracesError> {
    let Some(endpoint) = endpoint(variable) else {
        return Ok(None);
    };
    let stated = PROTOCOLS.iter().find_map(|name| Some((*name, variable(name)?)));
    if let Some((variable, protocol)) = stated.filter(|(_, protocol)| protocol != "grpc") {
        return Err(TracesError::Protocol { variable, protocol });
    }
    let exporter = SpanExporter::builder().with_tonic().build();
    let exporter = exporter.map_err(|error| TracesError::Exporter {
        endpoint: endpoint.clone(),
        reason: error.to_string(),
    })?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource(service))
        .build();
    global::set_tracer_provider(provider.clone());
    span::exported();
    tracing::info!(endpoint, "traces are exported over OTLP");
    Ok(Some(Traces(provider)))
}

/// A variable's value; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Where the variables send traces; `None`: nowhere.
fn endpoint(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let says = |name: &str, what: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case(what));
    if says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none") {
        return None;
    }
    ENDPOINTS.iter().find_map(|name| variable(name))
}

/// The resource of all spans: from the variables, else this service and its version.
fn resource(service: &'static str) -> Resource {
    let named = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| {
            all.split(',')
                .any(|attribute| attribute.trim_start().starts_with("service.name="))
        });
    let versioned = variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| {
        all.split(',')
            .any(|attribute| attribute.trim_start().starts_with("service.version="))
    });
    let mut resource = Resource::builder();
    if !named {
        resource = resource.with_service_name(service);
    }
    if !versioned {
        // All programs have the version of this workspace.
        resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    }
    resource.build()
}

impl Traces {
    /// Sends the queued spans, within that time.
    pub(super) async fn finish(&self, within: Duration) {
        let provider = self.0.clone();
        // It blocks the calling thread.
        let finishing = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(within));
        match timeout(within, finishing).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "some spans were not exported"),
            Ok(Err(_)) | Err(_) => tracing::warn!(?within, "some spans were not exported in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(variables: &[(&str, &str)]) -> Option<String> {
        endpoint(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn traces_are_exported_only_where_the_standard_variables_say() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://tempo:4317");
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[general]).as_deref(), Some("http://collector:4317"));
        assert_eq!(at(&[general, own]).as_deref(), Some("http://tempo:4317"));
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(at(&[general, off]), None);
        }
        assert!(at(&[general, ("OTEL_SDK_DISABLED", "false")]).is_some());
    }
}
