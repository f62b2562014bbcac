//! The edge of every RPC: its request id, its W3C trace context and the span around it; when it ends, one log line and
//! its metrics.
//!
//! The span names method, request id, caller, address and trace, never a body. A handler's panic ends its own RPC with
//! INTERNAL and nothing else.

use std::{
    convert::Infallible,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use emend_base::{
    entropy::Entropy,
    error::Error,
    lifecycle::panic_message,
    request_id::{self, RequestId},
    span,
    status::{Explained, code_name},
    telemetry::sparse::Sparse,
    traceparent::Traceparent,
};
use futures::FutureExt as _;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Code, Status, body::Body, transport::server::TcpConnectInfo};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span, field::Empty, info_span};

use crate::{
    caller::Caller,
    metrics::{Call, Calls},
    server::deadline,
};

const REQUEST_ID: &str = "x-request-id";
const TRACEPARENT: &str = "traceparent";
/// Calls of callers that are not known, or may not do what they ask for, and what is no gRPC call: ten lines a second at
/// most.
static REFUSED: Sparse = Sparse::new(10, Duration::from_secs(1));
/// Calls that found the service unavailable: a line a second at most.
static UNAVAILABLE: Sparse = Sparse::new(1, Duration::from_secs(1));
/// The prefix of the paths that every server answers: health checks and reflection.
const ALWAYS: &str = "/grpc.";

/// The trace context that `request` arrived with, if it was valid.
pub fn traceparent_of<T>(request: &tonic::Request<T>) -> Option<Traceparent> {
    request.extensions().get::<Traceparent>().cloned()
}

/// The id of `request`, as in the log and in its answer; `None` outside a served request.
pub fn request_id_of<T>(request: &tonic::Request<T>) -> Option<RequestId> {
    request.extensions().get::<RequestId>().cloned()
}

/// Puts the span, the request id and the trace context around every RPC.
#[derive(Debug, Clone)]
pub struct TraceLayer {
    entropy: Entropy,
    calls: Calls,
}

impl TraceLayer {
    /// Draws request ids from `entropy` for clients that send none, and counts every RPC in `calls`.
    pub fn new(entropy: Entropy, calls: Calls) -> Self {
        Self { entropy, calls }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Traced {
            inner,
            edge: self.clone(),
        }
    }
}

/// See [`TraceLayer`].
#[derive(Debug, Clone)]
pub struct Traced<S> {
    inner: S,
    edge: TraceLayer,
}

impl<S> Service<Request<Body>> for Traced<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let id = header(REQUEST_ID)
            .and_then(RequestId::parse)
            .unwrap_or_else(|| RequestId::generate(&self.edge.entropy));
        let traceparent = header(TRACEPARENT).and_then(Traceparent::parse);
        let call = self.edge.calls.begin(request.uri().path());
        let allowed = deadline::allowed(request.headers()).ok().flatten();
        // Traces leave out health checks and reflection.
        let exported = if request.uri().path().starts_with(ALWAYS) {
            Span::none()
        } else {
            exported_span(call.names(), traceparent.as_ref())
        };
        // Work for this call runs under the call's own span.
        let traceparent = span::traceparent_of(&exported).or(traceparent);
        let peer = request
            .extensions()
            .get::<TcpConnectInfo>()
            .and_then(TcpConnectInfo::remote_addr);

        let span = info_span!(
            "rpc",
            method = request.uri().path(),
            request_id = id.as_str(),
            caller = request.extensions().get::<Caller>().map(Caller::as_str),
            peer = peer.map(tracing::field::display),
            trace_id = traceparent.as_ref().map(Traceparent::trace_id),
            span_id = traceparent.as_ref().map(Traceparent::parent_id),
        );
        let ending = RpcCompletion {
            span: span.clone(),
            exported,
            call,
            id: id.clone(),
            code: None,
            unanswered: allowed,
            refusal: None,
        };
        request.extensions_mut().insert(id.clone());
        if let Some(traceparent) = traceparent {
            request.extensions_mut().insert(traceparent);
        }

        let handled = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        let answered = async move {
            let response = match handled.await {
                Ok(response) => response?,
                Err(panic) => {
                    let message = format!("a handler panicked: {}", panic_message(&*panic));
                    Status::from(Error::internal(message)).into_http()
                }
            };
            Ok(seal(response, ending))
        };
        Box::pin(request_id::CURRENT.scope(id, answered).instrument(span))
    }
}

/// The span of a call, in the trace that it arrived with. Without one it starts a trace.
fn exported_span((service, method): (&str, &str), traceparent: Option<&Traceparent>) -> Span {
    let span = info_span!(
        target: span::TARGET,
        parent: None,
        "call",
        otel.name = %format_args!("{service}/{method}"),
        otel.kind = "server",
        rpc.system = "grpc",
        rpc.service = service,
        rpc.method = method,
        rpc.grpc.status_code = Empty,
        otel.status_description = Empty,
    );
    if let Some(traceparent) = traceparent {
        span::set_parent(&span, traceparent);
    }
    span
}

/// Adds the request id to the answer and watches its body for the end.
fn seal(mut response: Response<Body>, mut ending: RpcCompletion) -> Response<Body> {
    if let Ok(mut id) = HeaderValue::from_str(ending.id.as_str()) {
        // It never comes again: HTTP/2 need not remember it.
        id.set_sensitive(true);
        response.headers_mut().insert(REQUEST_ID, id);
    }
    ending.unanswered = None;
    // A headers-only answer carries its status in the headers.
    ending.note(response.headers());
    if response.status() != StatusCode::OK {
        ending.refusal = Some(format!("HTTP {}", response.status().as_u16()));
    }
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|inner| Body::new(WatchedBody { inner, ending }))
}

/// Logs and counts an RPC when dropped: at the end of the answer, or when the caller went away.
struct RpcCompletion {
    /// That of log lines.
    span: Span,
    /// That of the call's trace, if it is exported.
    exported: Span,
    call: Call,
    id: RequestId,
    code: Option<Code>,
    /// How long the caller waits for an answer to begin, if it said so; `None` once it has begun.
    unanswered: Option<Duration>,
    /// The reason that a caller was told who is not known, or may not do this, or sent no gRPC call.
    refusal: Option<String>,
}

impl RpcCompletion {
    /// What becomes of a call that was abandoned. A caller whose time is up resets the call, mostly just before it is up
    /// here, because its clock began earlier: so nine tenths of the time count as all of it.
    fn abandoned(&self) -> Code {
        let waited = self.call.began.elapsed();
        match self.unanswered {
            Some(allowed) if waited >= allowed.mul_f64(0.9) => Code::DeadlineExceeded,
            _ => Code::Cancelled,
        }
    }

    fn note(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get("grpc-status") {
            let code = Code::from_bytes(code.as_bytes());
            self.code = Some(code);
            if matches!(code, Code::Unauthenticated | Code::PermissionDenied) {
                let status = Status::from_header_map(headers);
                self.refusal = status.and_then(|status| Explained::from(status).reason);
            }
        }
    }
}

impl Drop for RpcCompletion {
    fn drop(&mut self) {
        let code = self.code.unwrap_or_else(|| self.abandoned());
        let ms = u64::try_from(self.call.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.call.ended(code);
        self.exported
            .record("rpc.grpc.status_code", i64::from(code as i32));
        if is_fault(code) {
            self.exported.record("otel.status_description", code_name(code));
        }
        // What many calls would say alike is said seldom: while a database is away, or somebody tries out tokens.
        let is_refused =
            self.refusal.is_some() || matches!(code, Code::Unauthenticated | Code::PermissionDenied);
        let often = match code {
            _ if is_refused => REFUSED.due(),
            Code::Unavailable => UNAVAILABLE.due(),
            _ => None,
        };
        let name = code_name(code);
        self.span.in_scope(|| match (code, often) {
            (_, Some(left_out)) if is_refused => {
                tracing::info!(grpc_code = name, reason = self.refusal, left_out, "refused");
            }
            (Code::Unavailable, Some(left_out)) => {
                tracing::warn!(grpc_code = name, duration_ms = ms, left_out, "answered");
            }
            (Code::Internal | Code::Unknown | Code::DataLoss, _) => {
                tracing::warn!(grpc_code = name, duration_ms = ms, "answered");
            }
            _ => tracing::debug!(grpc_code = name, duration_ms = ms, "answered"),
        });
    }
}

/// Whether the code means a server fault, by OpenTelemetry's conventions for gRPC.
fn is_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// An answer's body, watched for the trailers that carry the gRPC status.
struct WatchedBody {
    inner: Body,
    ending: RpcCompletion,
}

impl HttpBody for WatchedBody {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let Self { inner, ending } = &mut *self;
        // The span is not entered here: that would cost every update on a stream, for code that hardly ever logs.
        let polled = request_id::CURRENT.sync_scope(ending.id.clone(), || Pin::new(inner).poll_frame(cx));
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    ending.note(trailers);
                }
            }
            Poll::Ready(Some(Err(status))) => ending.code = Some(status.code()),
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt as _, service_fn};

    use super::*;
    use crate::{
        library::{LIST, SERVICE, descriptors},
        methods::Methods,
        metrics::{RpcMetrics, ServerMetrics},
    };
    use emend_base::telemetry::Metrics;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    async fn answer(
        request: Request<Body>,
        handler: impl Fn(tonic::Request<Body>) -> Status + Clone + Send + 'static,
    ) -> Response<Body> {
        let calls = RpcMetrics::default().calls(&Methods::of(descriptors()), &[]);
        let service =
            TraceLayer::new(Entropy::seeded(1), calls).layer(service_fn(move |request: Request<Body>| {
                let handler = handler.clone();
                async move { Ok::<_, Infallible>(handler(tonic::Request::from_http(request)).into_http()) }
            }));
        service.oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn the_handler_sees_the_trace_and_the_request_id_and_the_answer_carries_the_id() {
        let request = Request::builder()
            .header(TRACEPARENT, VALID)
            .header(REQUEST_ID, "mine-1")
            .body(Body::empty())
            .unwrap();
        let response = answer(request, |request| {
            assert_eq!(
                traceparent_of(&request).map(|t| t.to_string()).as_deref(),
                Some(VALID)
            );
            assert_eq!(request_id_of(&request), RequestId::current());
            Status::ok("")
        })
        .await;
        assert_eq!(response.headers()[REQUEST_ID], "mine-1");
    }

    #[tokio::test]
    async fn a_bad_request_id_or_trace_is_replaced_or_dropped() {
        let request = Request::builder()
            .header(TRACEPARENT, "nonsense")
            .header(REQUEST_ID, "two words")
            .body(Body::empty())
            .unwrap();
        let response = answer(request, |request| {
            assert_eq!(traceparent_of(&request), None);
            Status::ok("")
        })
        .await;
        assert_eq!(response.headers()[REQUEST_ID].len(), 32);
    }

    #[tokio::test]
    async fn a_call_that_its_caller_abandons_counts_by_whether_its_time_was_up() {
        tokio::time::pause();
        for (timeout, waited, counted) in [
            (Some("1S"), 950, "DeadlineExceeded"),
            (Some("1S"), 500, "Canceled"),
            (None, 5_000, "Canceled"),
        ] {
            let metrics = Metrics::new();
            let calls = ServerMetrics::of(&metrics)
                .rpc()
                .calls(&Methods::of(descriptors()), &[SERVICE]);
            let hanging =
                service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
            let mut request = Request::builder().uri(LIST);
            if let Some(timeout) = timeout {
                request = request.header(deadline::HEADER, timeout);
            }
            let mut call = TraceLayer::new(Entropy::seeded(1), calls)
                .layer(hanging)
                .oneshot(request.body(Body::empty()).unwrap());
            assert!((&mut call).now_or_never().is_none());
            tokio::time::advance(Duration::from_millis(waited)).await;
            drop(call);
            let line = format!("grpc_code=\"{counted}\"}} 1");
            let rendered = metrics.render();
            assert!(rendered.contains(&line), "{timeout:?}, {waited} ms: {rendered}");
        }
    }

    #[tokio::test]
    async fn a_handler_that_panics_answers_internal_with_the_request_id() {
        let response = answer(Request::new(Body::empty()), |_| panic!("secret detail")).await;
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Internal, "internal error")
        );
        let id = response.headers()[REQUEST_ID].to_str().unwrap();
        assert_eq!(Explained::from(&status).request_id.as_deref(), Some(id));
    }
}
