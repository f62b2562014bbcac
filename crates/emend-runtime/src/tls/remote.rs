//! Where a server is, and how connections to it are opened.
//!
//! It must know nothing of which server that is.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Service;

use super::{ClientTls, TlsError};

/// The port of https.
const HTTPS: u16 = 443;

/// Where a server is, by a URI: `http://…`, or `https://…` with TLS.
#[derive(Debug, Clone)]
pub struct Remote {
    endpoint: Endpoint,
    secured: Option<Connector>,
}

impl Remote {
    /// At this URI. An `https` one is verified by the system's CAs unless [`Remote::tls`] says otherwise.
    pub fn new(uri: &str) -> Result<Self, TlsError> {
        let parsed: Uri = uri.parse().map_err(|error| TlsError::new(uri, &error))?;
        let secured = match parsed.scheme_str() {
            Some("http") => None,
            Some("https") => Some(Connector::new(&parsed)?),
            _ => return Err(TlsError::new(uri, "must begin with http:// or https://")),
        };
        let endpoint = if secured.is_some() {
            // The connector makes what it connects secure; tonic, which would do so once for all connections, must not.
            let plain = uri.replacen("https", "http", 1).replacen("HTTPS", "http", 1);
            Endpoint::from_shared(plain).map(|endpoint| endpoint.origin(parsed))
        } else {
            Endpoint::from_shared(uri.to_owned())
        };
        let endpoint = endpoint.map_err(|error| TlsError::new(uri, &error))?;
        Ok(Self { endpoint, secured })
    }

    /// By these files; refused where the URI is not `https`, since nothing would be secure then.
    pub fn tls(mut self, tls: ClientTls) -> Result<Self, TlsError> {
        let Some(secured) = &mut self.secured else {
            return Err(TlsError::new(
                self.endpoint.uri(),
                "must begin with https:// where files for TLS are given",
            ));
        };
        secured.tls = tls;
        Ok(self)
    }

    /// Whether connections are over TLS that [`Remote::tls`] can set.
    pub fn is_secured(&self) -> bool {
        self.secured.is_some()
    }

    /// The port, if the URI names one.
    pub fn port(&self) -> Option<u16> {
        self.endpoint.uri().port_u16()
    }

    /// With other settings of connections.
    #[must_use]
    pub fn map(mut self, change: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.endpoint = change(self.endpoint);
        self
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Channel, Error> {
        match &self.secured {
            None => self.endpoint.connect().await,
            Some(secured) => self.endpoint.connect_with_connector(secured.clone()).await,
        }
    }

    /// Opens a connection when it is first used, and another when that is lost.
    pub fn connect_lazy(&self) -> Channel {
        match &self.secured {
            None => self.endpoint.connect_lazy(),
            Some(secured) => self.endpoint.connect_with_connector_lazy(secured.clone()),
        }
    }
}

/// As it is, with TLS of its own if it has any.
impl From<Endpoint> for Remote {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            secured: None,
        }
    }
}

/// Opens connections over TLS, reading the files for each.
#[derive(Debug, Clone)]
struct Connector {
    tls: ClientTls,
    host: String,
    port: u16,
    name: ServerName<'static>,
}

impl Connector {
    fn new(uri: &Uri) -> Result<Self, TlsError> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|error| TlsError::new(uri, &error))?;
        Ok(Self {
            tls: ClientTls::default(),
            host,
            port: uri.port_u16().unwrap_or(HTTPS),
            name,
        })
    }

    async fn open(self) -> io::Result<TlsStream<TcpStream>> {
        let Self {
            tls,
            host,
            port,
            name,
        } = self;
        let config = tokio::task::spawn_blocking(move || tls.config())
            .await
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open().await.map(TokioIo::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_plain_or_secured_and_nothing_else() {
        assert!(!Remote::new("http://127.0.0.1:7402").unwrap().is_secured());
        for secured in [
            "https://learning:7402",
            "https://[::1]:7402",
            "HTTPS://emend.example",
        ] {
            assert!(Remote::new(secured).unwrap().is_secured(), "{secured}");
        }
        for bad in [
            "learning:7402",
            "ftp://learning:7402",
            "",
            "https://",
            "https://a b:1",
        ] {
            assert!(Remote::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_for_tls_are_refused_where_nothing_would_be_secure() {
        let plain = Remote::new("http://127.0.0.1:7402").unwrap();
        let refused = plain.tls(ClientTls::default().ca("ca.pem")).unwrap_err();
        assert!(refused.to_string().contains("https://"), "{refused}");
    }
}
