//! A gRPC server as a function of its listener and its [`Lifecycle`].
//!
//! Connections are accepted and owned here rather than by `tonic::transport::Server`, because that waits for open streams
//! for ever, leaves its connections behind when it is dropped, and does not end those that never say anything. Here each
//! connection is a task of the scope: the soft token stops accepting and says GOAWAY, the hard token closes what is left.
//!
//! Every server also answers health checks ([`crate::health`]), server reflection v1 and v1alpha for exactly the services
//! it has, and wraps every RPC in the caller, trace, admission and deadline layers. It speaks HTTP/2 alone: HTTP/1 is answered
//! with 505. Requests may have up to 4 MiB (tonic's default), those to reflection and health 4 KiB.
//!
//! Memory per idle connection is kept small: HTTP/2 windows stay at their defaults, and the bytes that wait for one slow
//! stream are bounded by [`SEND_BUFFER`] and one message. It must know nothing of what the services do.

use std::{
    convert::Infallible,
    future::{Ready, poll_fn, ready},
    io,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
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
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout_at},
};
use tokio_rustls::rustls;
use tonic::{body::Body, server::NamedService, service::Routes, transport::server::TcpConnectInfo};
use tower::{Layer as _, Service, ServiceExt as _};

use crate::{
    admission::{Admission, AdmissionLayer, HEALTH_CHECK},
    auth::{AuthLayer, Authenticated, Authenticator, Gate, GateLayer},
    awaited::Awaited,
    bounds::{Bounds, KeepAlive},
    connection::{Part, Parts, Streams},
    deadline::{DeadlineLayer, Deadlines},
    entropy::Entropy,
    health::{self, Readiness},
    lifecycle::Lifecycle,
    methods::Method,
    open_files,
    prefaced::Prefaced,
    room::{Holder, Place, Room},
    telemetry::metrics::{Connections, OpenConnection, RpcMetrics},
    tls::{PeerNames, Remote, TlsServer},
    trace_context::{TraceLayer, Traced},
};

/// How long a new connection may take until it has sent HTTP/2's preface, TLS included.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many RPCs one connection may have open.
const MAX_STREAMS: u32 = 1_024;
/// One part in so many of the files that the process may have open is for the connections of one server: there may be two, and
/// connections to databases are files, too.
const SHARE_OF_FILES: usize = 3;
/// How many bytes may wait for one stream before the next message is asked for.
pub const SEND_BUFFER: usize = 64 * 1024;
/// No longer are messages to reflection and health checks, which anybody may send.
const SHORT: usize = 4 * 1024;
/// The time that all of a health check's request has.
const CHECKED_WITHIN: Duration = Duration::from_secs(2);
/// How many bytes of a request over HTTP/1, which is only refused, are read at once. No fewer can be set.
const HTTP1_BUFFER: usize = 8 * 1024;
/// How long to wait when the system has no more file descriptors, or the like.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often it is told at most that there are too many connections.
const TOLD: Duration = Duration::from_secs(10);

type Stack = Authenticated<Traced<Gate<Admission<Deadlines<Routes>>>>>;

/// Collects services, then serves them.
#[derive(Debug)]
pub struct Server {
    routes: Routes,
    names: Vec<&'static str>,
    bounds: Bounds,
    readiness: Readiness,
    metrics: RpcMetrics,
    authenticator: Option<Arc<Authenticator>>,
    tls: Option<Arc<TlsServer>>,
    entropy: Entropy,
}

impl Server {
    /// No service yet. What is added is registered with `readiness`; request ids are drawn from `entropy`.
    pub fn new(readiness: Readiness, entropy: Entropy) -> Self {
        Self {
            routes: Routes::default(),
            names: Vec::new(),
            bounds: Bounds::default(),
            readiness,
            metrics: RpcMetrics::default(),
            authenticator: None,
            tls: None,
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

    /// How much it takes on at once; default: as [`Bounds::default`] has it.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Where its calls are counted; default: nowhere that anybody sees.
    #[must_use]
    pub fn metrics(mut self, metrics: &RpcMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Who knows who calls and who may do what; without one everybody may do everything.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Option<Arc<Authenticator>>) -> Self {
        self.authenticator = authenticator;
        self
    }

    /// All connections are over TLS, by files that the caller has looked at again (see [`crate::reload`]); default: none is.
    #[must_use]
    pub fn tls(mut self, tls: Option<Arc<TlsServer>>) -> Self {
        self.tls = tls;
        self
    }

    /// Starts serving in `lifecycle`, raises the number of files that the process may have open to what the system allows, and
    /// answers with the address. The listener is closed by the soft token, every connection by the hard one at the latest.
    pub fn serve(self, listener: TcpListener, lifecycle: &Lifecycle) -> io::Result<SocketAddr> {
        Ok(self.serve_inside(listener, lifecycle)?.0)
    }

    /// The same, and answers also with a way in for others in this process: what they say never leaves it, so it is without
    /// TLS, and without a client's certificate.
    pub fn serve_inside(
        self,
        listener: TcpListener,
        lifecycle: &Lifecycle,
    ) -> io::Result<(SocketAddr, Remote)> {
        let address = listener.local_addr()?;
        let health = health::server(self.readiness.clone(), lifecycle.soft().clone());
        let routes = self.routes.add_service(health.max_decoding_message_size(SHORT));
        let routes = with_reflection(routes, &self.names)?.prepare();
        let admission = AdmissionLayer::new(&self.bounds);
        let admitted = admission.layer(DeadlineLayer.layer(routes));
        let traced = TraceLayer::new(self.entropy, self.metrics.calls(&self.names));
        let stack = AuthLayer::new(self.authenticator).layer(traced.layer(GateLayer.layer(admitted)));
        let requests = Requests {
            time: self.bounds.patience.request,
        };
        let serving = Serving {
            stack,
            keep_alive: self.bounds.keep_alive,
            requests,
            lifecycle: lifecycle.clone(),
        };
        let inside = serving.clone();
        let inside = Remote::inside(move || accept_inside(&inside));
        let files = open_files::raised() / SHARE_OF_FILES;
        let wanted = self.bounds.connections;
        if files < wanted {
            tracing::warn!(
                wanted,
                connections = files,
                "fewer connections than set: the process may open no more files"
            );
        }
        let entrance = Entrance {
            room: Room::of(wanted.min(files)),
            connections: self.metrics.connections().clone(),
            told: None,
        };
        lifecycle.spawn(
            "accept connections",
            accept(listener, entrance, self.tls, serving),
        );
        Ok((address, inside))
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
            // What the details of errors are made of: so that a client can show them in clear.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(routes
        .add_service(
            builder()
                .with_service_name("grpc.reflection.v1.ServerReflection")
                .build_v1()
                .map_err(io::Error::other)?
                .max_decoding_message_size(SHORT),
        )
        .add_service(
            builder()
                .with_service_name("grpc.reflection.v1alpha.ServerReflection")
                .build_v1alpha()
                .map_err(io::Error::other)?
                .max_decoding_message_size(SHORT),
        ))
}

/// How long the messages of requests are waited for.
#[derive(Debug, Clone)]
struct Requests {
    time: Duration,
}

impl Requests {
    /// The time that all of a request to `path` has; none for one that is a stream: those bound themselves how long their sender
    /// may be silent.
    fn time(&self, path: &str) -> Option<Duration> {
        if path == HEALTH_CHECK {
            return Some(self.time.min(CHECKED_WITHIN));
        }
        (!Method::at(path).request_is_stream).then_some(self.time)
    }
}

/// What every connection is served with.
#[derive(Clone)]
struct Serving {
    stack: Stack,
    keep_alive: KeepAlive,
    requests: Requests,
    lifecycle: Lifecycle,
}

/// Who is at the other side.
struct Peer {
    connection: TcpConnectInfo,
    names: Option<PeerNames>,
    /// Of the connection; one from within this process takes none.
    seat: Option<Seat>,
}

/// Where connections are let in, as far as there is room.
struct Entrance {
    room: Room,
    connections: Connections,
    /// When it was last told that there is none.
    told: Option<Instant>,
}

impl Entrance {
    /// A seat for a connection from there.
    fn enter(&mut self, peer: SocketAddr) -> Option<Seat> {
        if let Some(place) = self.room.enter(Holder::of(None, Some(peer.ip()))) {
            return Some(Seat {
                _place: place,
                _open: self.connections.open(),
            });
        }
        self.connections.refused();
        if self.told.is_none_or(|told| told.elapsed() >= TOLD) {
            tracing::warn!(%peer, "closed: too many connections, of all or of this address");
            self.told = Some(Instant::now());
        }
        None
    }
}

/// What a connection keeps for as long as it is open.
struct Seat {
    _place: Place,
    _open: OpenConnection,
}

async fn accept(
    listener: TcpListener,
    mut entrance: Entrance,
    tls: Option<Arc<TlsServer>>,
    serving: Serving,
) {
    let lifecycle = serving.lifecycle.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = lifecycle.soft().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(seat) = entrance.enter(peer) else {
                    continue;
                };
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%peer, %error, "TCP_NODELAY refused");
                }
                let deadline = Instant::now() + HANDSHAKE;
                let peer = Peer {
                    connection: TcpConnectInfo {
                        local_addr: stream.local_addr().ok(),
                        remote_addr: Some(peer),
                    },
                    names: None,
                    seat: Some(seat),
                };
                // Two futures, so that a plain connection has no room for a handshake.
                match &tls {
                    None => lifecycle.spawn_owned(connection(stream, peer, deadline, serving.clone())),
                    Some(tls) => lifecycle.spawn_owned(secured(
                        Arc::clone(tls),
                        stream,
                        peer,
                        deadline,
                        serving.clone(),
                    )),
                };
            }
            // One client that is gone again concerns nobody; a lack of descriptors passes when connections end.
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Opens a connection from within this process and serves it.
fn accept_inside(serving: &Serving) -> io::Result<DuplexStream> {
    if serving.lifecycle.soft().is_cancelled() {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let (near, far) = duplex(SEND_BUFFER);
    let nowhere = Peer {
        connection: TcpConnectInfo {
            local_addr: None,
            remote_addr: None,
        },
        names: None,
        seat: None,
    };
    let deadline = Instant::now() + HANDSHAKE;
    serving
        .lifecycle
        .spawn_owned(connection(far, nowhere, deadline, serving.clone()));
    Ok(near)
}

/// Shakes hands until `deadline`, or until the scope is asked to stop; then serves as any other.
async fn secured(
    tls: Arc<TlsServer>,
    stream: TcpStream,
    mut peer: Peer,
    deadline: Instant,
    serving: Serving,
) {
    let address = peer.connection.remote_addr;
    let shaken = tokio::select! {
        biased;
        () = serving.lifecycle.soft().cancelled() => return,
        shaken = timeout_at(deadline, tls.accept(stream)) => shaken,
    };
    drop(tls);
    match shaken {
        Ok(Ok((stream, names))) => {
            peer.names = names;
            connection(stream, peer, deadline, serving).await;
        }
        // Somebody was meant to be let in and is not, or was not meant to: operators want to know.
        Ok(Err(error)) if is_refusal(&error) => {
            tracing::info!(peer = ?address, %error, "a client's certificate is refused");
        }
        Ok(Err(error)) => tracing::debug!(peer = ?address, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(peer = ?address, "the TLS handshake took too long"),
    }
}

/// Whether it was the client's certificate.
fn is_refusal(error: &io::Error) -> bool {
    let error = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(
        error,
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    )
}

fn http(streams: Streams, keep_alive: KeepAlive) -> Builder<Streams> {
    let mut builder = Builder::new(streams);
    // HTTP/1 is let in only to be refused, see [`OverHttp2`]: telling the two apart is what lets a connection that has not
    // said anything yet be ended softly.
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
        .max_send_buf_size(SEND_BUFFER);
    builder
}

/// Refuses what does not come over HTTP/2 before any layer sees it: gRPC is of HTTP/2, and who could call over HTTP/1 would
/// not be bound by what is asked of HTTP/2's streams.
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

/// Serves one connection to its end, or until the hard token.
async fn connection<S>(stream: S, peer: Peer, deadline: Instant, serving: Serving)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Serving {
        stack,
        keep_alive,
        requests,
        lifecycle,
    } = serving;
    let Peer {
        connection: info,
        names,
        // Dropped after the connection.
        seat: _seat,
    } = peer;
    let address = info.remote_addr;
    let soft = lifecycle.soft().clone();
    let service = stack.map_request(move |mut request: Request<Incoming>| {
        let extensions = request.extensions_mut();
        extensions.insert(info.clone());
        if let Some(names) = &names {
            extensions.insert(names.clone());
        }
        let time = requests.time(request.uri().path());
        request.map(|body| Body::new(Awaited::new(body, soft.clone(), time)))
    });
    let io = TokioIo::new(Prefaced::new(stream, deadline, lifecycle.soft()));
    let parts = Parts::new();
    let mut served = pin!(
        http(parts.executor(lifecycle.clone()), keep_alive)
            .serve_connection(io, TowerToHyperService::new(OverHttp2(service)))
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
        None => tracing::debug!(peer = ?address, "closed by the hard deadline"),
        Some(Err(error)) => tracing::debug!(peer = ?address, error, "connection ended with an error"),
        Some(Ok(())) => {}
    }
}
