//! Connections to a service, which are kept for the next request.

use std::{
    convert::Infallible,
    future::pending,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use jiff::{SignedDuration, Timestamp};

use crate::tls::{ClientTls, connect_http1};

/// How long a connection is kept without a request; what is between it and the service may forget it later.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// An open connection. Nothing is read from it or written to it but within its methods: no task of its own drives it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Pin<Box<dyn Future<Output = Infallible> + Send>>,
}

impl Connection {
    /// Connects to the service at this address, verified as `tls` says; the error says why not.
    pub(super) async fn open(to: &Uri, tls: ClientTls) -> Result<Self, String> {
        let stream = connect_http1(to, tls).await.map_err(|error| error.to_string())?;
        let (sender, connection) = handshake(stream).await.map_err(|error| error.to_string())?;
        let driver = async {
            // If it fails, so does what is sent, and says so.
            let _ = connection.await;
            pending().await
        };
        Ok(Self {
            sender,
            driver: Box::pin(driver),
        })
    }

    /// Sends a request and lets `read` take what it needs of the answer; an error if the connection ended before one.
    pub(super) async fn exchange<T>(
        &mut self,
        request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Response<Incoming>) -> T,
    ) -> hyper::Result<T> {
        let Self { sender, driver } = self;
        let exchanged = async {
            let response = sender.send_request(request).await?;
            Ok(read(response).await)
        };
        tokio::select! {
            biased;
            exchanged = exchanged => exchanged,
            never = driver => match never {},
        }
    }

    /// Whether it takes another request: the service has not closed it, as far as that is known here.
    async fn is_open(&mut self) -> bool {
        tokio::select! {
            biased;
            // First, since this is what learns of an end.
            never = &mut self.driver => match never {},
            ready = self.sender.ready() => ready.is_ok(),
        }
    }
}

/// Connections without a request, each with when its last one ended.
#[derive(Default)]
pub(super) struct Kept(Mutex<Vec<(Connection, Timestamp)>>);

impl Kept {
    /// One that is still open, the newest first.
    pub(super) async fn take(&self, now: Timestamp) -> Option<Connection> {
        let newest = || self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some((mut connection, since)) = newest() {
            if is_young(since, now) && connection.is_open().await {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps one whose answer was read to its end.
    pub(super) fn keep(&self, connection: Connection, now: Timestamp) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(_, since)| is_young(*since, now));
        kept.push((connection, now));
    }
}

fn is_young(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) < SignedDuration::try_from(IDLE_TIMEOUT).unwrap_or(SignedDuration::ZERO)
}
