//! Accepting connections: from the network, up to the limit and after a TLS handshake if TLS is on, and from within
//! this process.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use emend_base::telemetry::sparse::Sparse;
use tokio::{
    io::{DuplexStream, duplex},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout_at},
};
use tokio_rustls::rustls;
use tonic::transport::server::TcpConnectInfo;

use super::{
    SEND_BUFFER,
    http::{Serving, connection},
};
use crate::{
    fair_semaphore::{ClientKey, FairSemaphore, Permit},
    metrics::{Connections, OpenConnection},
    tls::{PeerNames, TlsServer},
};

/// How long a new connection may take to send the HTTP/2 preface, TLS handshake included.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// The least time between two log lines about too many connections.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept, such as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Clients whose certificates are refused: ten lines a second at most.
static REFUSED: Sparse = Sparse::new(10, Duration::from_secs(1));

/// The other end of a connection.
pub(super) struct Peer {
    pub(super) connection: TcpConnectInfo,
    /// The names in the client's certificate.
    pub(super) names: Option<PeerNames>,
    /// None for a connection from within this process.
    pub(super) permit: Option<ConnectionPermit>,
}

/// Bounds the number of connections.
pub(super) struct ConnectionLimit {
    permits: FairSemaphore,
    connections: Connections,
    /// When a refusal was last logged.
    logged: Option<Instant>,
}

impl ConnectionLimit {
    /// Admits this many connections at once and counts them in `connections`.
    pub(super) fn of(limit: usize, connections: Connections) -> Self {
        Self {
            permits: FairSemaphore::of(limit),
            connections,
            logged: None,
        }
    }

    /// A permit for a connection from `peer`, if there is one.
    fn admit(&mut self, peer: SocketAddr) -> Option<ConnectionPermit> {
        if let Some(permit) = self.permits.try_acquire(ClientKey::of(None, Some(peer.ip()))) {
            return Some(ConnectionPermit {
                _permit: permit,
                _open: self.connections.open(),
            });
        }
        self.connections.refused();
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(%peer, "closed: too many connections, in total or from this address");
            self.logged = Some(Instant::now());
        }
        None
    }
}

/// Held for as long as the connection is open.
pub(super) struct ConnectionPermit {
    _permit: Permit,
    _open: OpenConnection,
}

/// Accepts connections until the soft token is cancelled.
pub(super) async fn accept(
    listener: TcpListener,
    mut limit: ConnectionLimit,
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
                let Some(permit) = limit.admit(peer) else {
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
                    permit: Some(permit),
                };
                // Two kinds of future, so that a plain connection reserves no space for a handshake.
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
            // A client that is already gone affects nobody else; a lack of descriptors passes as connections end.
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Opens a connection from within this process and serves it.
pub(super) fn accept_inside(serving: &Serving) -> io::Result<DuplexStream> {
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
        permit: None,
    };
    let deadline = Instant::now() + HANDSHAKE;
    serving
        .lifecycle
        .spawn_owned(connection(far, nowhere, deadline, serving.clone()));
    Ok(near)
}

/// Performs the TLS handshake until `deadline`, or until the scope is asked to stop; then serves like any other
/// connection.
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
        Ok(Err(error)) => report(&REFUSED, address, &error),
        Err(_) => tracing::debug!(
            peer = address.map(tracing::field::display),
            "the TLS handshake took too long"
        ),
    }
}

/// Logs a handshake that failed.
fn report(refused: &Sparse, address: Option<SocketAddr>, error: &io::Error) {
    let peer = address.map(tracing::field::display);
    if !is_refusal(error) {
        tracing::debug!(peer, %error, "the TLS handshake failed");
        return;
    }
    // A certificate is wrong, or a stranger tried to connect: either way operators want to know, and one line for each of
    // thousands tells them no more.
    if let Some(left_out) = refused.due() {
        tracing::info!(peer, %error, left_out, "a client's certificate is refused");
    }
}

/// Whether the client's certificate was refused.
fn is_refusal(error: &io::Error) -> bool {
    let error = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(
        error,
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    )
}

#[cfg(test)]
mod tests {
    use emend_base::testing::Logged;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_handshakes_are_logged_ten_times_a_second_at_most() {
        let (logged, refused) = (Logged::default(), Sparse::new(10, Duration::from_secs(1)));
        let error = io::Error::other(rustls::Error::NoCertificatesPresented);
        let _logging = tracing::subscriber::set_default(logged.clone());
        for _ in 0..2_000 {
            report(&refused, None, &error);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        report(&refused, None, &error);
        let lines = logged.lines();
        assert_eq!(lines.len(), 11, "{lines:?}");
        assert!(lines[10].contains("left_out=1990;"), "{lines:?}");
    }
}
