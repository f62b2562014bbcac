//! The edge of every RPC: its request id, the W3C trace context it came with, a span around it, one log line when it ends.
//!
//! The span names method, request id, caller, address and trace; never a body. A handler's panic ends its own RPC with
//! INTERNAL and nothing else. It must know nothing of what the methods do.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::FutureExt as _;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;
use tonic::{Code, Status, body::Body, transport::server::TcpConnectInfo};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};

use crate::{
    caller::Caller,
    entropy::Entropy,
    error::Error,
    lifecycle::panic_message,
    request_id::{self, RequestId},
    status::code_name,
};

const REQUEST_ID: &str = "x-request-id";
const TRACEPARENT: &str = "traceparent";

/// A valid W3C `traceparent` of version 00: `00-<trace id>-<parent id>-<flags>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traceparent(Arc<str>);

impl Traceparent {
    /// Takes a header's value or a stored one. `None` if it is not valid; later versions are not understood.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let present = |part: &str| part.bytes().any(|byte| byte != b'0');
        let valid = parts.next().is_none()
            && version == "00"
            && hex(trace, 32)
            && present(trace)
            && hex(parent, 16)
            && present(parent)
            && hex(flags, 2);
        valid.then(|| Self(text.into()))
    }

    /// As it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the whole trace: 32 lower-case hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.0.get(3..35).unwrap_or_default()
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The trace context that `request` came with, if it was valid.
pub fn traceparent_of<T>(request: &tonic::Request<T>) -> Option<Traceparent> {
    request.extensions().get::<Traceparent>().cloned()
}

/// The id of `request`, which the log and its answer carry; `None` outside of a served request.
pub fn request_id_of<T>(request: &tonic::Request<T>) -> Option<RequestId> {
    request.extensions().get::<RequestId>().cloned()
}

/// Puts the span, the request id and the trace context around every RPC.
#[derive(Debug, Clone)]
pub struct TraceLayer {
    entropy: Entropy,
}

impl TraceLayer {
    /// Request ids that clients do not bring are drawn from `entropy`.
    pub fn new(entropy: Entropy) -> Self {
        Self { entropy }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Traced {
            inner,
            entropy: self.entropy.clone(),
        }
    }
}

/// See [`TraceLayer`].
#[derive(Debug, Clone)]
pub struct Traced<S> {
    inner: S,
    entropy: Entropy,
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
            .unwrap_or_else(|| RequestId::generate(&self.entropy));
        let traceparent = header(TRACEPARENT).and_then(Traceparent::parse);
        let peer = request
            .extensions()
            .get::<TcpConnectInfo>()
            .and_then(TcpConnectInfo::remote_addr);

        let span = tracing::info_span!(
            "rpc",
            method = request.uri().path(),
            request_id = id.as_str(),
            caller = request.extensions().get::<Caller>().map(Caller::as_str),
            peer = peer.map(tracing::field::display),
            trace_id = traceparent.as_ref().map(Traceparent::trace_id),
        );
        let ending = Ending {
            span: span.clone(),
            started: Instant::now(),
            id: id.clone(),
            code: None,
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

/// Adds the request id to the answer and watches its body for the end.
fn seal(mut response: Response<Body>, mut ending: Ending) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(ending.id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    // An answer that is only headers says in them how it ended.
    ending.note(response.headers());
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|inner| Body::new(WatchedBody { inner, ending }))
}

/// Writes the one line about an RPC when it is dropped: at the end of the answer, or when the caller went away.
struct Ending {
    span: Span,
    started: Instant,
    id: RequestId,
    code: Option<Code>,
}

impl Ending {
    fn note(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get("grpc-status") {
            self.code = Some(Code::from_bytes(code.as_bytes()));
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let code = self.code.unwrap_or(Code::Cancelled);
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.span.in_scope(|| match code {
            Code::Internal | Code::Unknown | Code::DataLoss | Code::Unavailable => {
                tracing::warn!(grpc_code = code_name(code), duration_ms = ms, "answered");
            }
            _ => tracing::debug!(grpc_code = code_name(code), duration_ms = ms, "answered"),
        });
    }
}

/// An answer's body, watched for the trailers in which gRPC says how it ended.
struct WatchedBody {
    inner: Body,
    ending: Ending,
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
    use crate::status::Explained;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_well_formed_trace_contexts_are_taken() {
        let parsed = Traceparent::parse(VALID).unwrap();
        assert_eq!(
            (parsed.as_str(), parsed.trace_id()),
            (VALID, "4bf92f3577b34da6a3ce929d0e0e4736")
        );
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-011",
        ] {
            assert_eq!(Traceparent::parse(bad), None, "{bad}");
        }
    }

    async fn answer(
        request: Request<Body>,
        handler: impl Fn(tonic::Request<Body>) -> Status + Clone + Send + 'static,
    ) -> Response<Body> {
        let service = TraceLayer::new(Entropy::seeded(1)).layer(service_fn(move |request: Request<Body>| {
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
