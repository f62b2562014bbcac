//! HTTP/1.1 without TLS, for what is small and simple: the operators' port, and raters in browsers. Bounded in connections, in
//! time, and in what one address may hold.

use std::{net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, body::Body};
use emend_base::lifecycle::Lifecycle;
use http::Request;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tower::ServiceExt as _;

use crate::fair_semaphore::{ClientKey, FairSemaphore};

/// Connections open at once. Further ones are closed, and so is one in the last quarter whose address already has four.
/// So probes get in however many connections another address holds.
pub(crate) const CONNECTIONS: usize = 256;
/// How long a request's head, and its body, may take to arrive; also how long a silent connection is kept.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection is served; it then ends after the answer in progress, which has [`PATIENCE`]. So a client that
/// asks and does not read can't hold its permit for longer.
const SERVED: Duration = Duration::from_secs(20);
/// How long to wait after a failed accept, such as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves what connects until `lifecycle` is asked to stop, each request with its peer's address as an extension
/// ([`Extension<SocketAddr>`](axum::Extension)).
pub async fn accept(listener: TcpListener, routes: Router, lifecycle: Lifecycle) {
    let permits = FairSemaphore::of(CONNECTIONS);
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
                let serving = serve(stream, peer, routes.clone(), lifecycle.clone());
                lifecycle.spawn_owned(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "can't accept an HTTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, routes: Router, lifecycle: Lifecycle) {
    let service = routes.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.map(Body::new)
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
    );
    let enough = async {
        tokio::select! {
            () = lifecycle.soft().cancelled() => {}
            () = sleep(SERVED) => {}
        }
    };
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = enough => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served => ended,
                () = lifecycle.hard().cancelled() => Ok(()),
                () = sleep(PATIENCE) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "an HTTP connection ended with an error");
    }
}
