//! Opens connections to the first of a server's addresses that answers.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tower::Service;

use super::{
    ClientTls, TlsError,
    plain::{self, Noticed, PlainStream},
    secured::SecuredConnector,
};

/// A connection for HTTP.
pub type HttpConnection = TokioIo<Pin<Box<dyn Duplex>>>;

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// Connects to the first of some addresses that takes connections, beginning with the one that answered last. From one whose connection
/// ended without an answer, as what stands before a server that is away ends them, the next attempt goes on to the next. Clones share
/// which that is.
#[derive(Debug, Clone)]
pub(super) struct Dialer {
    /// At least one, all plain or all over TLS.
    addresses: Vec<Address>,
    tls: ClientTls,
    begin: Arc<AtomicUsize>,
    noticed: Noticed,
}

/// One address.
#[derive(Debug, Clone)]
struct Address {
    uri: Uri,
    /// Over TLS, if it is `https`.
    secured: Option<SecuredConnector>,
}

impl Address {
    fn new(text: &str) -> Result<Self, TlsError> {
        let uri: Uri = text.parse().map_err(|error| TlsError::new(text, &error))?;
        let secured = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => Some(SecuredConnector::new(&uri)?),
            _ => return Err(TlsError::new(text, "must begin with http:// or https://")),
        };
        Ok(Self { uri, secured })
    }

    async fn open(self, tls: ClientTls, noticed: Noticed) -> io::Result<Pin<Box<dyn Duplex>>> {
        if let Some(mut secured) = self.secured {
            secured.tls = tls;
            return Ok(Box::pin(secured.open().await?));
        }
        let stream = plain::connect(&self.uri, plain::HTTP).await?;
        Ok(Box::pin(PlainStream::new(stream, noticed)))
    }
}

impl Dialer {
    /// To these URIs, separated by commas.
    pub(super) fn new(uris: &str) -> Result<Self, TlsError> {
        let addresses: Vec<_> = uris
            .split(',')
            .map(|uri| Address::new(uri.trim()))
            .collect::<Result<_, _>>()?;
        let secured = addresses
            .iter()
            .filter(|address| address.secured.is_some())
            .count();
        if secured != 0 && secured != addresses.len() {
            return Err(TlsError::new(
                uris,
                "must all begin with http:// or all with https://",
            ));
        }
        Ok(Self {
            addresses,
            tls: ClientTls::default(),
            begin: Arc::default(),
            noticed: Noticed::default(),
        })
    }

    /// The first address, which stands for the server.
    pub(super) fn first(&self) -> &Uri {
        &self.addresses[0].uri
    }

    /// Whether connections are over TLS.
    pub(super) fn is_secured(&self) -> bool {
        self.addresses[0].secured.is_some()
    }

    /// Uses these files for connections over TLS.
    pub(super) fn secure(&mut self, tls: ClientTls) {
        self.tls = tls;
    }

    /// The file with the certificate that is presented, if one is.
    pub(super) fn certificate(&self) -> Option<&std::path::Path> {
        self.tls.certificate()
    }

    /// What was noticed of a server that does not speak plain HTTP/2.
    pub(super) fn noticed(&self) -> Option<&'static str> {
        self.noticed.words()
    }

    /// Whether each URI names a port.
    pub(super) fn names_ports(&self) -> bool {
        self.addresses
            .iter()
            .all(|address| address.uri.port_u16().is_some())
    }

    async fn open(self) -> io::Result<Pin<Box<dyn Duplex>>> {
        let count = self.addresses.len();
        if let [alone] = &*self.addresses {
            return alone.clone().open(self.tls, self.noticed).await;
        }
        let begin = self.begin.load(Ordering::Relaxed);
        let mut failures = Vec::with_capacity(count);
        for offset in 0..count {
            let index = (begin + offset) % count;
            // If connecting is given up meanwhile, the next time begins with the next one.
            self.begin.store(index + 1, Ordering::Relaxed);
            let address = &self.addresses[index];
            let opened = timeout(
                plain::EACH,
                address.clone().open(self.tls.clone(), self.noticed.clone()),
            )
            .await;
            match opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    self.begin.store(index, Ordering::Relaxed);
                    return Ok(Box::pin(Opened {
                        stream,
                        unanswered: Some((index, self.begin)),
                    }));
                }
                Err(error) => failures.push(format!("{}: {error}", address.uri)),
            }
        }
        Err(io::Error::other(failures.join("; ")))
    }
}

/// A connection to one of several addresses.
struct Opened {
    stream: Pin<Box<dyn Duplex>>,
    /// Until the server says something: its place, and with which one connecting begins.
    unanswered: Option<(usize, Arc<AtomicUsize>)>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some((index, begin)) = self.unanswered.take() {
            // Unless connecting begins with another one by now. Who gave up before the server could answer goes on as well: any will do.
            let _ = begin.compare_exchange(index, index + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(cx, buffer);
        if matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() > before {
            self.unanswered = None;
        }
        read
    }
}

impl AsyncWrite for Opened {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Service<Uri> for Dialer {
    type Response = HttpConnection;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.open().await.map(TokioIo::new) })
    }
}

/// Connects to the server at this URI, to speak HTTP/1.1 with it: over TLS if it is `https`.
pub async fn connect_http1(uri: &Uri, tls: ClientTls) -> io::Result<HttpConnection> {
    let stream: Pin<Box<dyn Duplex>> = if uri.scheme_str() == Some("https") {
        let mut connector = SecuredConnector::new(uri).map_err(io::Error::other)?;
        connector.tls = tls;
        connector.protocols = vec![b"http/1.1".to_vec()];
        Box::pin(connector.open().await?)
    } else {
        Box::pin(plain::connect(uri, plain::HTTP).await?)
    };
    Ok(TokioIo::new(stream))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_rustls::rustls::ServerConfig;

    use super::*;
    use crate::tls::files::{identity, provider};

    #[tokio::test]
    async fn of_several_addresses_the_one_that_answers_is_kept() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let away = gone.local_addr().unwrap();
        drop(gone);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let dialer = Dialer::new(&format!("http://{away}, http://{there}")).unwrap();
        for _ in 0..2 {
            let mut opened = dialer.clone().open().await.unwrap();
            listener.accept().await.unwrap().0.write_all(&[0]).await.unwrap();
            assert_eq!(opened.read_u8().await.unwrap(), 0);
            drop(opened);
            assert_eq!(dialer.begin.load(Ordering::Relaxed), 1);
        }
        drop(listener);
        let refused = dialer.open().await.err().unwrap().to_string();
        assert!(
            refused.contains(&format!("http://{away}/: ")) && refused.contains(&format!("http://{there}/: ")),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn an_address_that_ends_connections_without_an_answer_is_left_for_the_next() {
        let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (silent, there) = (listen().await, listen().await);
        let [first, second] = [&silent, &there].map(|listener| listener.local_addr().unwrap());
        let dialer = Dialer::new(&format!("http://{first}, http://{second}")).unwrap();
        let mut opened = dialer.clone().open().await.unwrap();
        drop(silent.accept().await.unwrap());
        assert!(opened.read_u8().await.is_err());
        drop(opened);
        let mut opened = dialer.clone().open().await.unwrap();
        there.accept().await.unwrap().0.write_all(&[0]).await.unwrap();
        assert_eq!(opened.read_u8().await.unwrap(), 0);
        // It had answered: where it is away, connecting begins with it all the same.
        drop(opened);
        assert_eq!(dialer.begin.load(Ordering::Relaxed), 1);
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
        let listener = TcpListener::bind("localhost:0").await.unwrap();
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
}
