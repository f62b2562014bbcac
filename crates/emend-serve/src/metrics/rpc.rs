//! Rate, errors and duration of calls, by method.
//!
//! A call counts as handled when it has ended: with its trailers, with a headers-only answer, or because its caller
//! went away. The names are those of go-grpc-middleware, for which dashboards exist. All methods that no served service
//! has share one label, so that strangers can't create labels.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use emend_base::telemetry::metrics::{Description, Kind, Metrics};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};
use tokio::time::Instant;
use tonic::Code;

use crate::methods::Methods;

/// The services that every server adds to its own.
const ALWAYS: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
/// The histogram's upper bounds, in seconds.
const SECONDS: [f64; 15] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

const STARTED: Description = Description {
    name: "grpc_server_started_total",
    kind: Kind::Counter,
    unit: "calls",
    labels: &["grpc_type", "grpc_service", "grpc_method"],
    help: "Calls started",
};
const HANDLED: Description = Description {
    name: "grpc_server_handled_total",
    kind: Kind::Counter,
    unit: "calls",
    labels: &["grpc_type", "grpc_service", "grpc_method", "grpc_code"],
    help: "Calls ended, by the code in their trailers; a call whose caller disconnected counts as Canceled, or as \
           DeadlineExceeded if its time was up, and a stream counts when it ends. OK, ResourceExhausted and the codes of faults \
           are exported from the start, the others once they first occur",
};
const SECONDS_OF: Description = Description {
    name: "grpc_server_handling_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    labels: &["grpc_type", "grpc_service", "grpc_method"],
    help: "Duration of calls until their end; long-lived streams are included, so select by grpc_type",
};
const IN_FLIGHT: Description = Description {
    name: "grpc_server_in_flight",
    kind: Kind::Gauge,
    unit: "calls",
    labels: &["grpc_type", "grpc_service", "grpc_method"],
    help: "Calls in progress, open streams included",
};

const OPEN: Description = Description {
    name: "emend_connections",
    kind: Kind::Gauge,
    unit: "connections",
    labels: &[],
    help: "Open connections of clients",
};
const REFUSED: Description = Description {
    name: "emend_connections_refused_total",
    kind: Kind::Counter,
    unit: "connections",
    labels: &[],
    help: "Connections closed at once because there were too many, in total or from one address",
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(clippy::struct_field_names, reason = "labels are named as fields are")]
struct MethodLabels {
    grpc_type: &'static str,
    grpc_service: Arc<str>,
    grpc_method: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(clippy::struct_field_names, reason = "labels are named as fields are")]
struct HandledLabels {
    grpc_type: &'static str,
    grpc_service: Arc<str>,
    grpc_method: Arc<str>,
    grpc_code: &'static str,
}

/// What all servers of a process count. Clones share it.
#[derive(Debug, Clone)]
pub struct RpcMetrics {
    started: Family<MethodLabels, Counter>,
    handled: Family<HandledLabels, Counter>,
    seconds: Family<MethodLabels, Histogram, fn() -> Histogram>,
    in_flight: Family<MethodLabels, Gauge>,
    connections: Connections,
}

impl Default for RpcMetrics {
    fn default() -> Self {
        Self {
            started: Family::default(),
            handled: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Family::default(),
            connections: Connections::default(),
        }
    }
}

/// Connections of clients. Clones share the metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections {
    open: Gauge,
    refused: Counter,
}

impl Connections {
    /// Counts a connection as open until the result is dropped.
    pub(crate) fn open(&self) -> OpenConnection {
        self.open.inc();
        OpenConnection(self.open.clone())
    }

    /// Counts a connection that was closed at once.
    pub(crate) fn refused(&self) {
        self.refused.inc();
    }
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl RpcMetrics {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.register(STARTED, self.started.clone());
        metrics.register(HANDLED, self.handled.clone());
        metrics.register(SECONDS_OF, self.seconds.clone());
        metrics.register(IN_FLIGHT, self.in_flight.clone());
        metrics.register(OPEN, self.connections.open.clone());
        metrics.register(REFUSED, self.connections.refused.clone());
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// For a server of these of the described services, given by their full proto names. Their methods are shown from now on, at zero.
    pub(crate) fn calls(&self, described: &Methods, services: &[&str]) -> Calls {
        let mut methods = HashMap::new();
        for (path, streams) in described.iter() {
            let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
                continue;
            };
            if services.contains(&service) || ALWAYS.contains(&service) {
                methods.insert(path.into(), self.method(streams.kind(), service, method));
            }
        }
        Calls(Arc::new(Known {
            methods,
            unknown: self.method("unknown", "unknown", "unknown"),
        }))
    }

    fn method(&self, kind: &'static str, service: &str, method: &str) -> Arc<Method> {
        let labels = MethodLabels {
            grpc_type: kind,
            grpc_service: service.into(),
            grpc_method: method.into(),
        };
        let method = Method {
            started: self.started.get_or_create_owned(&labels),
            seconds: self.seconds.get_or_create_owned(&labels),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            by_code: Default::default(),
            handled: self.handled.clone(),
            labels,
        };
        // From the start, so that the first increase is visible: a series that begins at 300 has not increased.
        for code in [
            Code::Ok,
            Code::Unknown,
            Code::DeadlineExceeded,
            Code::ResourceExhausted,
            Code::Internal,
            Code::Unavailable,
            Code::DataLoss,
        ] {
            method.handled(code);
        }
        Arc::new(method)
    }
}

/// What one server counts. Clones share it.
#[derive(Debug, Clone)]
pub struct Calls(Arc<Known>);

#[derive(Debug)]
struct Known {
    methods: HashMap<Box<str>, Arc<Method>>,
    unknown: Arc<Method>,
}

#[derive(Debug)]
struct Method {
    labels: MethodLabels,
    started: Counter,
    seconds: Histogram,
    in_flight: Gauge,
    handled: Family<HandledLabels, Counter>,
    by_code: [OnceLock<Counter>; 17],
}

impl Method {
    /// The counter of calls that ended with `code`.
    fn handled(&self, code: Code) -> &Counter {
        self.by_code[code as usize].get_or_init(|| {
            let MethodLabels {
                grpc_type,
                grpc_service,
                grpc_method,
            } = self.labels.clone();
            self.handled.get_or_create_owned(&HandledLabels {
                grpc_type,
                grpc_service,
                grpc_method,
                grpc_code: label_of(code),
            })
        })
    }
}

impl Calls {
    /// Begins a call of that path.
    pub(crate) fn begin(&self, path: &str) -> Call {
        let Known { methods, unknown } = &*self.0;
        let method = Arc::clone(methods.get(path).unwrap_or(unknown));
        method.started.inc();
        method.in_flight.inc();
        Call {
            method,
            began: Instant::now(),
        }
    }
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Call {
    method: Arc<Method>,
    /// When it began.
    pub(crate) began: Instant,
}

impl Call {
    /// The service and the method, as in labels.
    pub(crate) fn names(&self) -> (&str, &str) {
        let MethodLabels {
            grpc_service,
            grpc_method,
            ..
        } = &self.method.labels;
        (grpc_service, grpc_method)
    }

    /// Ends the call; to be called once.
    pub(crate) fn ended(&self, code: Code) {
        self.method.in_flight.dec();
        self.method.seconds.observe(self.began.elapsed().as_secs_f64());
        self.method.handled(code).inc();
    }
}

/// A code as go-grpc writes it.
const fn label_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        library::{LIST, SERVICE, descriptors},
        metrics::ServerMetrics,
    };

    fn rendered(calls: impl FnOnce(&Calls)) -> String {
        let metrics = Metrics::new();
        calls(
            &ServerMetrics::of(&metrics)
                .rpc()
                .calls(&Methods::of(descriptors()), &[SERVICE]),
        );
        metrics.render()
    }

    #[test]
    fn a_method_has_the_type_that_its_descriptor_says() {
        let rendered = rendered(|_| {});
        for (kind, service, method) in [
            ("server_stream", SERVICE, "Follow"),
            ("unary", SERVICE, "List"),
            ("server_stream", "grpc.health.v1.Health", "Watch"),
            (
                "bidi_stream",
                "grpc.reflection.v1.ServerReflection",
                "ServerReflectionInfo",
            ),
        ] {
            let line = format!(
                "grpc_server_started_total{{grpc_type=\"{kind}\",grpc_service=\"{service}\",grpc_method=\"{method}\"}} 0"
            );
            assert!(rendered.contains(&line), "{line} in\n{rendered}");
        }
        let metrics = Metrics::new();
        ServerMetrics::of(&metrics)
            .rpc()
            .calls(&Methods::of(descriptors()), &[]);
        assert!(!metrics.render().contains(SERVICE), "it is not served there");
    }

    #[test]
    fn a_call_is_in_flight_until_it_ends_and_then_counts_by_its_code() {
        let list = "grpc_type=\"unary\",grpc_service=\"library.v1.LibraryService\",grpc_method=\"List\"";
        let metrics = Metrics::new();
        let calls = ServerMetrics::of(&metrics)
            .rpc()
            .calls(&Methods::of(descriptors()), &[SERVICE]);
        let call = calls.begin(LIST);
        assert!(
            metrics
                .render()
                .contains(&format!("grpc_server_in_flight{{{list}}} 1"))
        );
        call.ended(Code::Unavailable);
        let rendered = metrics.render();
        for line in [
            format!("grpc_server_handled_total{{{list},grpc_code=\"Internal\"}} 0"),
            format!("grpc_server_in_flight{{{list}}} 0"),
            format!("grpc_server_started_total{{{list}}} 1"),
            format!("grpc_server_handled_total{{{list},grpc_code=\"Unavailable\"}} 1"),
            format!("grpc_server_handling_seconds_count{{{list}}} 1"),
        ] {
            assert!(rendered.contains(&line), "{line} in\n{rendered}");
        }
    }

    #[test]
    fn unknown_methods_and_services_create_no_labels() {
        let rendered = rendered(|calls| {
            for path in ["/", "/x/y", "/library.v1.LibraryService/Drop"] {
                calls.begin(path).ended(Code::Unimplemented);
            }
        });
        let line = "grpc_server_handled_total{grpc_type=\"unknown\",grpc_service=\"unknown\",grpc_method=\"unknown\",\
                    grpc_code=\"Unimplemented\"} 3";
        assert!(rendered.contains(line), "{rendered}");
        assert!(!rendered.contains("Drop"));
    }
}
