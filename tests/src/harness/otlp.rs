//! A receiver of traces that stands in for a collector: OpenTelemetry's `TraceService` over gRPC.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span, status::StatusCode},
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status, transport::Server};

/// Receives until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    received: Received,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, Default)]
struct Received(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

/// A span and the service that made it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The name of the service that made it.
    pub service: String,
    /// As it was sent.
    pub span: Span,
}

impl Receiver {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let received = Received::default();
        let server = Server::builder()
            .add_service(TraceServiceServer::new(received.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let serving =
            tokio::spawn(async move { server.await.expect("the receiver serves until it is dropped") });
        Self {
            address,
            received,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Its address, in the form of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans of a trace so far, by its id in hexadecimal.
    pub fn trace(&self, id: &str) -> Vec<Seen> {
        let mut spans = self.spans();
        spans.retain(|seen| seen.trace() == id);
        spans
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Seen> {
        let mut spans = Vec::new();
        for request in &*self.received.0.lock().unwrap_or_else(PoisonError::into_inner) {
            for of_resource in &request.resource_spans {
                let attributes = of_resource
                    .resource
                    .as_ref()
                    .map(|resource| &*resource.attributes);
                let service = text(attributes.unwrap_or_default(), "service.name").unwrap_or_default();
                let own = of_resource.scope_spans.iter().flat_map(|scope| &scope.spans);
                spans.extend(own.map(|span| Seen {
                    service: service.clone(),
                    span: span.clone(),
                }));
            }
        }
        spans
    }

    /// Everything received, as text, to search for what must not be in it.
    pub fn everything(&self) -> String {
        let received = self.received.0.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{received:?}")
    }
}

impl Seen {
    /// An attribute, as text.
    pub fn attribute(&self, name: &str) -> Option<String> {
        text(&self.span.attributes, name)
    }

    /// The trace's id, in hexadecimal.
    pub fn trace(&self) -> String {
        hex(&self.span.trace_id)
    }

    /// Its id, in hexadecimal.
    pub fn id(&self) -> String {
        hex(&self.span.span_id)
    }

    /// The parent span's id, in hexadecimal.
    pub fn parent(&self) -> String {
        hex(&self.span.parent_span_id)
    }

    /// The ids of the traces it links to, in hexadecimal.
    pub fn links(&self) -> Vec<String> {
        self.span.links.iter().map(|link| hex(&link.trace_id)).collect()
    }

    /// Whether its status is an error.
    pub fn failed(&self) -> bool {
        let status = self.span.status.as_ref();
        status.is_some_and(|status| status.code() == StatusCode::Error)
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        received.push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    match &found.value {
        Some(AnyValue {
            value: Some(Value::StringValue(text)),
        }) => Some(text.clone()),
        Some(AnyValue {
            value: Some(Value::IntValue(number)),
        }) => Some(number.to_string()),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
