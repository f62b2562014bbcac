//! Traces, exported over OTLP/gRPC only if the standard variables name an endpoint.
//!
//! Endpoint, headers, timeouts, sampler, resource and queue bounds come from the OTEL_ variables (docs/telemetry.md
//! lists them). The queue is bounded: if the receiver is away or slow, spans are dropped and nothing waits. Only
//! [our own spans](crate::span) are exported: no span of a library, and no log line as an event of a span.

use std::{env, time::Duration};

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::time::timeout;
use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, filter_fn},
    registry::LookupSpan,
};

use crate::span;

/// The instrumentation scope of our spans.
const SCOPE: &str = "emend";
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
    tracing::info!(endpoint, "traces are exported over OTLP");
    Ok(Some(Traces(provider)))
}

/// A variable's value; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Where the variables send traces; `None`: nowhere.
fn endpoint(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_set_to =
        |name: &str, expected: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case(expected));
    if is_set_to("OTEL_SDK_DISABLED", "true") || is_set_to("OTEL_TRACES_EXPORTER", "none") {
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
    /// The layer that exports.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let exported = filter_fn(|metadata| metadata.is_span() && metadata.target() == span::TARGET)
            .with_max_level_hint(LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer(SCOPE))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(exported)
    }

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
    use std::sync::{Arc, Mutex, PoisonError};

    use opentelemetry_sdk::{
        error::OTelSdkResult,
        trace::{SpanData, SpanExporter as Exporter},
    };
    use tracing::{Level, Span, info_span};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::{
        super::log::{self, LogArgs, LogFormat},
        *,
    };
    use crate::{span::Pending, traceparent::Traceparent};

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

    #[derive(Debug, Clone, Default)]
    struct Exported(Arc<Mutex<Vec<SpanData>>>);

    impl Exporter for Exported {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            let mut exported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            exported.extend(batch);
            Ok(())
        }
    }

    fn log_lines(level: &str) -> impl Layer<tracing_subscriber::Registry> + use<> {
        let args = LogArgs {
            log_format: LogFormat::Json,
            log_level: None,
        };
        log::lines(&args, level).unwrap().0
    }

    /// Whether anybody is interested in a call site is kept for the whole process: one subscriber at a time.
    static SUBSCRIBER: Mutex<()> = Mutex::new(());

    fn subscribed(subscriber: impl Subscriber + Send + Sync, run: impl FnOnce()) {
        let _alone = SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner);
        tracing::subscriber::with_default(subscriber, run);
    }

    /// What `run` exports, where log lines have that level.
    fn exported(level: &str, run: impl FnOnce()) -> Vec<SpanData> {
        let exported = Exported::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone());
        let traces = Traces(provider.build());
        let log = tracing_subscriber::registry().with(log_lines(level));
        subscribed(log.with(traces.layer()), run);
        exported.0.lock().unwrap().clone()
    }

    fn in_trace(number: u8) -> Traceparent {
        let text = format!("00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-01");
        Traceparent::parse(&text).unwrap()
    }

    fn own_span() -> Span {
        info_span!(target: span::TARGET, parent: None, "own", otel.kind = "server")
    }

    #[test]
    fn only_our_spans_are_exported_without_log_lines_at_any_log_level() {
        for level in ["off", "trace"] {
            let spans = exported(level, || {
                tracing::error_span!(target: "h2::client", "a library's").in_scope(|| {
                    let own = own_span();
                    span::set_parent(&own, &in_trace(1));
                    own.in_scope(|| {
                        info_span!("of log lines").in_scope(|| tracing::error!(reason = 7, "a line"));
                        tracing::error!(target: span::TARGET, "another line");
                    });
                });
            });
            let [only] = &*spans else { panic!("{spans:?}") };
            assert_eq!((&*only.name, only.events.len()), ("own", 0), "{level}");
            assert_eq!(only.parent_span_id.to_string(), in_trace(1).parent_id());
            assert_eq!(only.span_context.trace_id().to_string(), in_trace(1).trace_id());
            assert_eq!(only.attributes, [], "{level}");
            assert_eq!(only.status, opentelemetry::trace::Status::Unset);
        }
    }

    #[test]
    fn without_an_export_nobody_asks_for_our_spans() {
        let log = tracing_subscriber::registry().with(log_lines("trace"));
        subscribed(log, || {
            assert!(tracing::enabled!(Level::TRACE));
            assert!(!span::is_recorded());
            let own = own_span();
            assert!(own.is_disabled());
            assert_eq!(span::traceparent_of(&own), None);
        });
    }

    #[test]
    fn all_spans_of_a_batch_but_the_first_link_to_the_first() {
        let spans = exported("info", || {
            let untraced = Span::none();
            let traced = [1, 2, 3].map(|number| {
                let own = own_span();
                span::set_parent(&own, &in_trace(number));
                own
            });
            span::link_batch([&untraced].into_iter().chain(&traced));
            assert_eq!(span::traceparent_of(&untraced), None);
            let context = span::traceparent_of(&traced[1]).unwrap();
            assert_eq!(context.trace_id(), in_trace(2).trace_id());
        });
        let links: Vec<Vec<_>> = spans
            .iter()
            .map(|span| span.links.iter().map(|link| &link.span_context).collect())
            .collect();
        let first = &spans[0].span_context;
        assert_eq!(links, [vec![], vec![first], vec![first]]);
    }

    #[test]
    fn a_pending_span_is_exported_only_if_it_happens() {
        let spans = exported("info", || {
            drop(Pending::new(own_span(), in_trace(1)));
            let confirmed = Pending::new(own_span(), in_trace(2)).confirm();
            confirmed.record("otel.kind", "server");
        });
        let [only] = &*spans else { panic!("{spans:?}") };
        assert_eq!(only.span_context.trace_id().to_string(), in_trace(2).trace_id());
    }
}
