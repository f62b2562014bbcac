//! HTTP/1.1: the operators' port, raters in browsers, the console, the edge. Bounded in connections, in
//! time, and in what one address may hold.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use emend_base::lifecycle::Lifecycle;
use http::Request;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tower::ServiceExt as _;

use crate::{
    fair_semaphore::{ClientKey, FairSemaphore},
    tls::{PeerNames, TlsServer},
};

/// [`Bounds::connections`] by default: probes get in however many connections another address holds.
pub(crate) const CONNECTIONS: usize = 256;
/// [`Bounds::patience`] by default.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// [`Bounds::served`] by default.
const SERVED: Duration = Duration::from_secs(20);
/// How long to wait after a failed accept, such as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much is served at once, and how long clients are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections open at once. Further ones are closed, and so is one in the last quarter whose address already has four.
    pub connections: usize,
    /// How long a request's head, and its body, may take to arrive; also how long a silent connection is kept.
    pub patience: Duration,
    /// How long a connection is served; it then ends after the answer in progress, which has `patience`. So a client that
    /// asks and does not read can't hold its permit for longer.
    pub served: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            patience: PATIENCE,
            served: SERVED,
        }
    }
}

/// Serves what connects until `lifecycle` is asked to stop, each request with its peer's address as an extension
/// ([`Extension<SocketAddr>`](axum::Extension)).
pub async fn accept(listener: TcpListener, routes: Router, bounds: Bounds, lifecycle: Lifecycle) {
    accept_by(listener, None, routes, bounds, lifecycle).await;
}

/// The same over TLS, made by [`TlsServer::for_http1`]; a request of a client that showed a certificate also has
/// [`PeerNames`] as an extension.
pub async fn accept_secured(
    listener: TcpListener,
    tls: Arc<TlsServer>,
    routes: Router,
    bounds: Bounds,
    lifecycle: Lifecycle,
) {
    accept_by(listener, Some(tls), routes, bounds, lifecycle).await;
}

async fn accept_by(
    listener: TcpListener,
    tls: Option<Arc<TlsServer>>,
    routes: Router,
    bounds: Bounds,
    lifecycle: Lifecycle,
) {
    let permits = FairSemaphore::of(bounds.connections);
    loop {
        let accepted = tokio::select! {
            biased;
            () = lifecycle.soft().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(permit) = permits.try_acquire(ClientKey::of(None, Some(peer.ip()))) else {
                    tracing::debug!(%peer, "closed: too many connections, in total or from this address");
                    continue;
                };
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%peer, %error, "TCP_NODELAY refused");
                }
                let (routes, scope) = (routes.clone(), lifecycle.clone());
                match tls.clone() {
                    None => lifecycle.spawn_owned(async move {
                        serve(stream, peer, routes, bounds, scope).await;
                        drop(permit);
                    }),
                    Some(tls) => lifecycle.spawn_owned(async move {
                        secured(&tls, stream, peer, routes, bounds, scope).await;
                        drop(permit);
                    }),
                };
            }
            Err(error) => {
                tracing::warn!(%error, "can't accept an HTTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Performs the TLS handshake within the patience of the bounds, then serves like any other connection.
async fn secured(
    tls: &TlsServer,
    stream: TcpStream,
    peer: SocketAddr,
    routes: Router,
    bounds: Bounds,
    lifecycle: Lifecycle,
) {
    let shaken = tokio::select! {
        biased;
        () = lifecycle.soft().cancelled() => return,
        shaken = timeout(bounds.patience, tls.accept(stream)) => shaken,
    };
    match shaken {
        Ok(Ok((stream, names))) => {
            serve_stream(
                stream,
                Client {
                    peer: Some(peer),
                    names,
                },
                routes,
                bounds,
                lifecycle,
            )
            .await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
    }
}

/// The other end of a connection.
#[derive(Debug, Default)]
struct Client {
    peer: Option<SocketAddr>,
    /// What its certificate says, if it showed one.
    names: Option<PeerNames>,
}

/// Serves what connects to a Unix socket until `lifecycle` is asked to stop. Who may connect, its file's permissions say.
pub async fn accept_local(listener: UnixListener, routes: Router, bounds: Bounds, lifecycle: Lifecycle) {
    let permits = Arc::new(Semaphore::new(bounds.connections));
    loop {
        let accepted = tokio::select! {
            biased;
            () = lifecycle.soft().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                    tracing::debug!("closed: too many local connections");
                    continue;
                };
                let serving = serve_stream(
                    stream,
                    Client::default(),
                    routes.clone(),
                    bounds,
                    lifecycle.clone(),
                );
                lifecycle.spawn_owned(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "can't accept a local HTTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Router,
    bounds: Bounds,
    lifecycle: Lifecycle,
) {
    let client = Client {
        peer: Some(peer),
        names: None,
    };
    serve_stream(stream, client, routes, bounds, lifecycle).await;
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: Client,
    routes: Router,
    bounds: Bounds,
    lifecycle: Lifecycle,
) {
    let Client { peer, names } = client;
    // One that is no longer accepted is refused by who asks for it: each request shows it.
    let service = routes.map_request(move |mut request: Request<Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        if let Some(names) = &names {
            request.extensions_mut().insert(names.clone());
        }
        request.map(Body::new)
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.patience)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
    );
    let enough = async {
        tokio::select! {
            () = lifecycle.soft().cancelled() => {}
            () = sleep(bounds.served) => {}
        }
    };
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = enough => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served => ended,
                () = lifecycle.hard().cancelled() => Ok(()),
                () = sleep(bounds.patience) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        let peer = peer.map(tracing::field::display);
        tracing::debug!(peer, %error, "an HTTP connection ended with an error");
    }
}
