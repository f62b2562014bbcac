//! A server's address, and how connections to it are opened: plain, over TLS, or within this process.

use std::fmt;
use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Service;

use super::{ClientTls, TlsError, TrustError, alpn};

/// The default port of https.
const HTTPS: u16 = 443;
/// The default port of http.
const HTTP: u16 = 80;

/// A server's address as a URI: `http://…`, or `https://…` for TLS.
#[derive(Debug, Clone)]
pub struct Remote {
    endpoint: Endpoint,
    transport: Transport,
}

/// How connections are opened.
#[derive(Debug, Clone)]
enum Transport {
    /// In the clear, by tonic.
    Plain,
    /// Over TLS.
    Secured(Connector),
    /// Without leaving this process.
    InProcess(InProcess),
}

impl Remote {
    /// The server at this URI. An `https` one is verified with the system's CAs unless [`Remote::tls`] says otherwise.
    pub fn new(uri: &str) -> Result<Self, TlsError> {
        let parsed: Uri = uri.parse().map_err(|error| TlsError::new(uri, &error))?;
        let transport = match parsed.scheme_str() {
            Some("http") => Transport::Plain,
            Some("https") => Transport::Secured(Connector::new(&parsed)?),
            _ => return Err(TlsError::new(uri, "must begin with http:// or https://")),
        };
        let endpoint = if matches!(transport, Transport::Secured(_)) {
            // The connector does the TLS. tonic, which would configure it once for all connections, must see plain
            // http.
            let plain = uri.replacen("https", "http", 1).replacen("HTTPS", "http", 1);
            Endpoint::from_shared(plain).map(|endpoint| endpoint.origin(parsed))
        } else {
            Endpoint::from_shared(uri.to_owned())
        };
        let endpoint = endpoint.map_err(|error| TlsError::new(uri, &error))?;
        Ok(Self { endpoint, transport })
    }

    /// A server in this process; `open` opens connections.
    pub fn inside(open: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static) -> Self {
        Self {
            endpoint: Endpoint::from_static("http://inside"),
            transport: Transport::InProcess(InProcess(Arc::new(open))),
        }
    }

    /// Uses these files. Fails unless the URI is `https`, because nothing would be secure otherwise.
    pub fn tls(mut self, tls: ClientTls) -> Result<Self, TlsError> {
        let Transport::Secured(secured) = &mut self.transport else {
            return Err(TlsError::new(
                self.endpoint.uri(),
                "must begin with https:// if TLS files are given",
            ));
        };
        secured.tls = tls;
        Ok(self)
    }

    /// Whether connections are over TLS, which [`Remote::tls`] can configure.
    pub fn is_secured(&self) -> bool {
        matches!(self.transport, Transport::Secured(_))
    }

    /// The file with the certificate that is presented to it, if one is.
    pub fn certificate(&self) -> Option<&Path> {
        if let Transport::Secured(secured) = &self.transport {
            return secured.tls.certificate();
        }
        None
    }

    /// The port, if the URI names one.
    pub fn port(&self) -> Option<u16> {
        self.endpoint.uri().port_u16()
    }

    /// With other connection settings.
    #[must_use]
    pub fn map(mut self, change: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.endpoint = change(self.endpoint);
        self
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Channel, Error> {
        match &self.transport {
            Transport::Plain => self.endpoint.connect().await,
            Transport::Secured(secured) => self.endpoint.connect_with_connector(secured.clone()).await,
            Transport::InProcess(inside) => self.endpoint.connect_with_connector(inside.clone()).await,
        }
    }

    /// Opens a connection on first use, and again when it is lost.
    pub fn connect_lazy(&self) -> Channel {
        match &self.transport {
            Transport::Plain => self.endpoint.connect_lazy(),
            Transport::Secured(secured) => self.endpoint.connect_with_connector_lazy(secured.clone()),
            Transport::InProcess(inside) => self.endpoint.connect_with_connector_lazy(inside.clone()),
        }
    }
}

/// Why a connection could not be opened, with all causes, in one line: tonic's own message only says that something
/// went wrong.
pub fn why(error: &Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        // Errors that wrap others often repeat them.
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        cause = error.source();
    }
    if causes.is_empty() {
        causes.push(error.to_string());
    }
    causes.join(": ")
}

/// The endpoint as it is, with its own TLS if it has any.
impl From<Endpoint> for Remote {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            transport: Transport::Plain,
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
    protocols: Vec<Vec<u8>>,
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
            protocols: alpn(),
        })
    }

    async fn open(self) -> io::Result<LoggedStream> {
        let Self {
            tls,
            host,
            port,
            name,
            protocols,
        } = self;
        let mut config = tokio::task::spawn_blocking(move || tls.config())
            .await
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        config.alpn_protocols = protocols;
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        shaken.map(LoggedStream).map_err(TrustError::rephrase)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<LoggedStream>;
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

/// A connection for HTTP/1.1.
pub type HttpConnection = TokioIo<Pin<Box<dyn Duplex>>>;

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// Connects to the server at this URI, to speak HTTP/1.1 with it: over TLS if it is `https`.
pub async fn connect_http1(uri: &Uri, tls: ClientTls) -> io::Result<HttpConnection> {
    let stream: Pin<Box<dyn Duplex>> = if uri.scheme_str() == Some("https") {
        let mut connector = Connector::new(uri).map_err(io::Error::other)?;
        connector.tls = tls;
        connector.protocols = vec![b"http/1.1".to_vec()];
        Box::pin(connector.open().await?)
    } else {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Box::pin(TcpStream::connect((host, uri.port_u16().unwrap_or(HTTP))).await?)
    };
    Ok(TokioIo::new(stream))
}

/// A connection on which the server may still reject the client: in TLS 1.3 it does so after the handshake, when calls
/// have already begun, which then end without a reason. So the reason is logged.
struct LoggedStream(TlsStream<TcpStream>);

impl LoggedStream {
    /// Logs the error if it is such a rejection.
    fn log(error: io::Error) -> io::Error {
        let error = TrustError::rephrase(error);
        if let Some(untrusted) = TrustError::within(&error) {
            tracing::warn!("{untrusted}");
        }
        error
    }

    /// Handles the result of a write. If the server no longer accepts data, it has sent the reason before.
    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = written else {
            return written;
        };
        let (mut last, cause) = ([0; 1], Pin::new(&mut self.0));
        match cause.poll_read(cx, &mut ReadBuf::new(&mut last)) {
            Poll::Ready(Err(cause)) => Poll::Ready(Err(Self::log(cause))),
            _ => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for LoggedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer).map_err(Self::log)
    }
}

impl AsyncWrite for LoggedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.0).poll_flush(cx);
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write_vectored(cx, slices);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

/// Opens connections to a server of this process.
#[derive(Clone)]
struct InProcess(Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Service<Uri> for InProcess {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        std::future::ready((self.0)().map(TokioIo::new))
    }
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::ServerConfig;

    use super::*;
    use crate::tls::files::{identity, provider};

    #[test]
    fn uris_must_be_http_or_https() {
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

    #[tokio::test]
    async fn http1_is_agreed_on_with_a_server_that_is_verified() {
        let directory = tempfile::tempdir().unwrap();
        let authority = crate::tls::testing::Authority::new("CA");
        let ca = directory.path().join("ca.pem");
        std::fs::write(&ca, authority.pem()).unwrap();
        authority
            .issue(1, &["localhost"])
            .write(directory.path(), "server");
        let file = |name: &str| directory.path().join(name);
        let (chain, key) = identity(&file("server.pem"), &file("server.key")).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = tokio::net::TcpListener::bind("localhost:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            let accepted = tokio_rustls::TlsAcceptor::from(Arc::new(config))
                .accept(stream)
                .await;
            accepted.unwrap().get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
        };
        let uri: Uri = format!("https://localhost:{port}/").parse().unwrap();
        let (protocol, connected) = tokio::join!(serve, connect_http1(&uri, ClientTls::default().ca(ca)));
        connected.unwrap();
        assert_eq!(protocol.unwrap(), b"http/1.1");
    }

    #[test]
    fn tls_files_are_refused_for_an_address_without_tls() {
        let plain = Remote::new("http://127.0.0.1:7402").unwrap();
        let refused = plain.tls(ClientTls::default().ca("ca.pem")).unwrap_err();
        assert!(refused.to_string().contains("https://"), "{refused}");
    }
}
