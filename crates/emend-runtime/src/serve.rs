//! A gRPC server as a function of its listener and its [`Lifecycle`].
//!
//! Connections are accepted and owned here rather than by `tonic::transport::Server`, because that waits for open streams
//! for ever, leaves its connections behind when it is dropped, and does not end those that never say anything. Here each
//! connection is a task of the scope: the soft token stops accepting and says GOAWAY, the hard token closes what is left.
//!
//! Every server also answers health checks ([`crate::health`]), server reflection v1 and v1alpha for exactly the services
//! it has, and wraps every RPC in the caller, trace and deadline layers. Requests may have up to 4 MiB (tonic's default).
//!
//! Memory per idle connection is kept small: HTTP/2 windows stay at their defaults, and the bytes that wait for one slow
//! stream are bounded by [`SEND_BUFFER`] and one message. It must know nothing of what the services do.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{body::Body, server::NamedService, service::Routes, transport::server::TcpConnectInfo};
use tower::{Layer as _, Service, ServiceExt as _};

use crate::{
    caller::{Anonymous, AnonymousLayer},
    connection::{Part, Parts, Streams},
    deadline::{DeadlineLayer, Deadlines},
    entropy::Entropy,
    health::{self, Readiness},
    lifecycle::Lifecycle,
    trace_context::{TraceLayer, Traced},
};

/// How long a new connection may take until it has sent HTTP/2's preface.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The length of that preface, in bytes. What is shorter is no HTTP/2.
const PREFACE: usize = 24;
/// How often an idle connection is asked whether its client still lives.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long the client has for its answer.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How many RPCs one connection may have open.
const MAX_STREAMS: u32 = 1_024;
/// How many bytes may wait for one stream before the next message is asked for.
pub const SEND_BUFFER: usize = 64 * 1024;
/// How long to wait when the system has no more file descriptors, or the like.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Stack = Anonymous<Traced<Deadlines<Routes>>>;

/// Collects services, then serves them.
#[derive(Debug)]
pub struct Server {
    routes: Routes,
    names: Vec<&'static str>,
    readiness: Readiness,
    entropy: Entropy,
}

impl Server {
    /// No service yet. What is added is registered with `readiness`; request ids are drawn from `entropy`.
    pub fn new(readiness: Readiness, entropy: Entropy) -> Self {
        Self {
            routes: Routes::default(),
            names: Vec::new(),
            readiness,
            entropy,
        }
    }

    /// Adds a service, ready while all the checks it `needs` pass (see [`Readiness::set`]).
    #[must_use]
    pub fn add_service<S>(mut self, service: S, needs: &'static [&'static str]) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.readiness.register(S::NAME, needs);
        self.names.push(S::NAME);
        self.routes = self.routes.add_service(service);
        self
    }

    /// Starts serving in `lifecycle` and answers with the address. The listener is closed by the soft token, every
    /// connection by the hard one at the latest.
    pub fn serve(self, listener: TcpListener, lifecycle: &Lifecycle) -> io::Result<SocketAddr> {
        let address = listener.local_addr()?;
        let routes = self
            .routes
            .add_service(health::server(self.readiness.clone(), lifecycle.soft().clone()));
        let routes = with_reflection(routes, &self.names)?.prepare();
        let stack = AnonymousLayer.layer(TraceLayer::new(self.entropy).layer(DeadlineLayer.layer(routes)));
        lifecycle.spawn("accept connections", accept(listener, stack, lifecycle.clone()));
        Ok(address)
    }
}

/// Both versions: older clients ask for v1alpha only.
fn with_reflection(routes: Routes, names: &[&'static str]) -> io::Result<Routes> {
    let builder = || {
        let own = names
            .iter()
            .fold(tonic_reflection::server::Builder::configure(), |builder, name| {
                builder.with_service_name(*name)
            });
        own.with_service_name("grpc.health.v1.Health")
            .register_encoded_file_descriptor_set(emend_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(routes
        .add_service(
            builder()
                .with_service_name("grpc.reflection.v1.ServerReflection")
                .build_v1()
                .map_err(io::Error::other)?,
        )
        .add_service(
            builder()
                .with_service_name("grpc.reflection.v1alpha.ServerReflection")
                .build_v1alpha()
                .map_err(io::Error::other)?,
        ))
}

async fn accept(listener: TcpListener, stack: Stack, lifecycle: Lifecycle) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = lifecycle.soft().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%peer, %error, "TCP_NODELAY refused");
                }
                lifecycle.spawn_owned(connection(stream, peer, stack.clone(), lifecycle.clone()));
            }
            // One client that is gone again concerns nobody; a lack of descriptors passes when connections end.
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn http(streams: Streams) -> Builder<Streams> {
    let mut builder = Builder::new(streams);
    // HTTP/1 is let in only as far as the first bytes: telling the two apart is what lets a connection that has not said
    // anything yet be ended softly.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(SEND_BUFFER);
    builder
}

/// Serves one connection to its end, or until the hard token.
async fn connection(stream: TcpStream, peer: SocketAddr, stack: Stack, lifecycle: Lifecycle) {
    let info = TcpConnectInfo {
        local_addr: stream.local_addr().ok(),
        remote_addr: Some(peer),
    };
    let service = stack.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(info.clone());
        request.map(Body::new)
    });
    let io = TokioIo::new(Prefaced::new(stream, lifecycle.soft()));
    let parts = Parts::new();
    let mut served = pin!(
        http(parts.executor(lifecycle.clone()))
            .serve_connection(io, TowerToHyperService::new(service))
            .into_owned()
    );
    let mut soft = pin!(lifecycle.soft().cancelled());
    let mut hard = pin!(lifecycle.hard().cancelled());
    let mut draining = false;
    let ended = poll_fn(|cx| {
        parts.poll(cx, |part, cx| match part {
            Part::Connection => served.as_mut().poll(cx).map(Some),
            Part::End | Part::Stream => {
                if hard.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                if !draining && soft.as_mut().poll(cx).is_ready() {
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
        None => tracing::debug!(%peer, "closed by the hard deadline"),
        Some(Err(error)) => tracing::debug!(%peer, error, "connection ended with an error"),
        Some(Ok(())) => {}
    }
}

/// A connection that ends with an error if its first [`PREFACE`] bytes take longer than [`HANDSHAKE`], or are not here when
/// the scope is asked to stop. From then on HTTP/2's own keep-alive finds out who is gone.
struct Prefaced {
    stream: TcpStream,
    /// `None` once the preface is here.
    pending: Option<Handshake>,
}

struct Handshake {
    /// How many bytes are still missing.
    missing: usize,
    /// The time they have.
    time: Pin<Box<Sleep>>,
    soft: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Prefaced {
    fn new(stream: TcpStream, soft: &CancellationToken) -> Self {
        Self {
            stream,
            pending: Some(Handshake {
                missing: PREFACE,
                time: Box::pin(sleep(HANDSHAKE)),
                soft: Box::pin(soft.clone().cancelled_owned()),
            }),
        }
    }
}

impl AsyncRead for Prefaced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Self { stream, pending } = &mut *self;
        if let Poll::Ready(read) = Pin::new(stream).poll_read(cx, buffer) {
            if let Some(handshake) = pending {
                let read = buffer.filled().len() - before;
                handshake.missing = handshake.missing.saturating_sub(read);
                if handshake.missing == 0 {
                    *pending = None;
                }
            }
            return Poll::Ready(read);
        }
        let Some(handshake) = pending else {
            return Poll::Pending;
        };
        if handshake.soft.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(handshake.time.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the HTTP/2 preface took too long",
        )))
    }
}

impl AsyncWrite for Prefaced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
