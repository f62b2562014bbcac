//! HTTP/2 on one connection, from its preface to its end.

use std::{
    convert::Infallible,
    future::{Ready, pending, poll_fn, ready},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use emend_base::{
    clock::{Clock as _, SystemClock},
    entropy::Entropy,
    lifecycle::Lifecycle,
    tls::Validity,
};
use futures::future::Either;
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, Sleep, sleep},
};
use tonic::{body::Body, service::Routes};
use tower::{Service, ServiceExt as _, util::MapResponse};

use super::{
    SEND_BUFFER,
    accept::{HANDSHAKE, Peer},
    admission::{Admission, HEALTH_CHECK},
    bounds::KeepAlive,
    connection::{Part, Parts, Streams},
    deadline::Deadlines,
    request_timeout::TimedBody,
    timed_connection::TimedConnection,
    trace_context::Traced,
};
use crate::{
    auth::{Authenticated, Gate},
    methods::Methods,
    refused::by_its_head,
    tls::PeerNames,
};

/// How many RPCs one connection may have open.
const MAX_STREAMS: u32 = 1_024;
/// How many bytes a request's headers may have before HTTP/2 itself answers 431, or ends the connection if they have far
/// more. Above what calls may have ([`MAX_METADATA`](crate::refused::MAX_METADATA)), so that clients mostly get a status.
const MAX_HEADERS: u32 = 64 * 1024;
/// By how much connection lifetimes vary, so that connections opened together do not end together.
const AGE_JITTER: f64 = 0.1;
/// How many bytes of an HTTP/1 request, which is only refused, are read at once. The lowest value that can be set.
const HTTP1_BUFFER: usize = 8 * 1024;
/// How long calls on a connection may still end by themselves once its client's certificate is over: streams are told
/// why at once, and then there is nothing to wait for.
const CERTIFICATE_GRACE: Duration = Duration::from_secs(2);
/// How long a health check's request may take to arrive.
const CHECKED_WITHIN: Duration = Duration::from_secs(2);

/// The layers around every call.
pub(super) type Stack = Authenticated<Traced<Gate<Admission<Deadlines<MapResponse<Routes, Explain>>>>>>;
/// What is added to refusals.
pub(super) type Explain = fn(Response<Body>) -> Response<Body>;

/// What every connection is served with.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) stack: Stack,
    pub(super) methods: Methods,
    pub(super) keep_alive: KeepAlive,
    /// How long a connection accepts new calls, on average.
    pub(super) age: Option<Duration>,
    pub(super) entropy: Entropy,
    /// How long a request may take to arrive.
    pub(super) request_time: Duration,
    pub(super) lifecycle: Lifecycle,
}

/// How long a request to `path` may take to arrive. None for a streaming request: its handler bounds how long the
/// sender may be silent.
fn time_for(path: &str, methods: &Methods, request_time: Duration) -> Option<Duration> {
    if path == HEALTH_CHECK {
        return Some(request_time.min(CHECKED_WITHIN));
    }
    (!methods.at(path).request_is_stream).then_some(request_time)
}

fn http(streams: Streams, keep_alive: KeepAlive) -> Builder<Streams> {
    let mut builder = Builder::new(streams);
    // HTTP/1 is accepted only to be refused, see [`OverHttp2`]: protocol detection is what lets a connection that has
    // sent nothing yet be ended softly.
    builder
        .http1()
        .keep_alive(false)
        .max_buf_size(HTTP1_BUFFER)
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(keep_alive.interval)
        .keep_alive_timeout(keep_alive.timeout)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .max_send_buf_size(SEND_BUFFER);
    builder
}

/// Refuses anything but HTTP/2 before any layer sees it: gRPC runs over HTTP/2, and calls over HTTP/1 would escape the
/// limits on HTTP/2 streams.
#[derive(Clone)]
struct OverHttp2<S>(S);

impl<S> Service<Request<Incoming>> for OverHttp2<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        if request.version() == Version::HTTP_2 {
            return Either::Left(self.0.call(request));
        }
        let mut refusal = Response::new(Body::empty());
        *refusal.status_mut() = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
        Either::Right(ready(Ok(refusal)))
    }
}

/// Ends when the client's certificate has expired or is no longer accepted.
async fn certificate_over(names: PeerNames) {
    let PeerNames {
        validity, withdrawn, ..
    } = names;
    let Some(Validity { not_after, .. }) = validity else {
        return withdrawn.cancelled().await;
    };
    let left = not_after
        .saturating_add(1)
        .saturating_sub(SystemClock.now().as_second());
    let left = Duration::from_secs(left.try_into().unwrap_or(0));
    tokio::select! {
        () = sleep(left) => {}
        () = withdrawn.cancelled() => {}
    }
}

/// Serves one connection to its end, or until the hard token is cancelled.
pub(super) async fn connection<S>(stream: S, peer: Peer, deadline: Instant, serving: Serving)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Serving {
        stack,
        methods,
        keep_alive,
        age,
        entropy,
        request_time,
        lifecycle,
    } = serving;
    let Peer {
        connection: info,
        names,
        // Dropped after the connection.
        permit: _permit,
    } = peer;
    let address = info.remote_addr;
    // A connection from within this process has nowhere else to reconnect to.
    let age = age.filter(|_| address.is_some());
    // The caller can't be known by its certificate from then on: a client that has a new one is to connect again.
    // Boxed, so that a plain connection reserves no space for it.
    let mut over = names.clone().map(|names| Box::pin(certificate_over(names)));
    let soft = lifecycle.soft().clone();
    let service = stack.map_request(move |mut request: Request<Incoming>| {
        let refused = by_its_head(&request);
        let extensions = request.extensions_mut();
        if let Some(refused) = refused {
            extensions.insert(refused);
        }
        extensions.insert(info.clone());
        if let Some(names) = &names {
            extensions.insert(names.clone());
        }
        let time = time_for(request.uri().path(), &methods, request_time);
        request.map(|body| Body::new(TimedBody::new(body, soft.clone(), time)))
    });
    let has_aged = Arc::new(AtomicBool::new(false));
    let io = TimedConnection::new(stream, deadline, lifecycle.soft(), Arc::clone(&has_aged));
    let io = TokioIo::new(io);
    let parts = Parts::new();
    let mut served = pin!(
        http(parts.executor(lifecycle.clone()), keep_alive)
            .serve_connection(io, TowerToHyperService::new(OverHttp2(service)))
            .into_owned()
    );
    let age = age.map(|age| age.mul_f64(entropy.jitter(AGE_JITTER)));
    let mut aged = pin!(async {
        match age {
            Some(age) => sleep(age).await,
            None => pending().await,
        }
    });
    let mut soft = pin!(lifecycle.soft().cancelled());
    let mut hard = pin!(lifecycle.hard().cancelled());
    let mut draining = false;
    let mut close: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|cx| {
        parts.poll(cx, |part, cx| match part {
            Part::Connection => served.as_mut().poll(cx).map(Some),
            Part::End | Part::Stream => {
                if hard.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                if close.is_none()
                    && let Some(over) = &mut over
                    && over.as_mut().poll(cx).is_ready()
                {
                    close = Some(Box::pin(sleep(CERTIFICATE_GRACE)));
                }
                if let Some(close) = &mut close
                    && close.as_mut().poll(cx).is_ready()
                {
                    return Poll::Ready(None);
                }
                if draining {
                    return Poll::Pending;
                }
                // Once stopping, age is of no interest: a stop is stricter.
                let stops = soft.as_mut().poll(cx).is_ready();
                if stops || close.is_some() || aged.as_mut().poll(cx).is_ready() {
                    has_aged.store(!stops, Ordering::Relaxed);
                    draining = true;
                    served.as_mut().graceful_shutdown();
                    parts.wake(Part::Connection);
                }
                Poll::Pending
            }
        })
    })
    .await;
    match ended {
        None => tracing::debug!(
            peer = address.map(tracing::field::display),
            "closed by the hard deadline, or after its client's certificate"
        ),
        Some(Err(error)) => tracing::debug!(
            peer = address.map(tracing::field::display),
            error,
            "connection ended with an error"
        ),
        Some(Ok(())) => {}
    }
}
