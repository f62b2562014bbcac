//! Connections over TLS, and how a server's late rejection of the client is noticed.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use super::{
    ClientTls, TlsError, TrustError,
    plain::{connect, host_of},
};

/// The default port of https.
const HTTPS: u16 = 443;

/// Opens connections over TLS, reading the files for each.
#[derive(Debug, Clone)]
pub(super) struct SecuredConnector {
    pub(super) tls: ClientTls,
    uri: Uri,
    name: ServerName<'static>,
    pub(super) protocols: Vec<Vec<u8>>,
}

impl SecuredConnector {
    pub(super) fn new(uri: &Uri) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(host_of(uri).to_owned()).map_err(|error| TlsError::new(uri, &error))?;
        Ok(Self {
            tls: ClientTls::default(),
            uri: uri.clone(),
            name,
            protocols: super::alpn(),
        })
    }

    /// Opens a connection.
    pub(super) async fn open(self) -> io::Result<LoggedStream> {
        let Self {
            tls,
            uri,
            name,
            protocols,
        } = self;
        let mut config = tokio::task::spawn_blocking(move || tls.config())
            .await
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        config.alpn_protocols = protocols;
        let stream = connect(&uri, HTTPS).await?;
        let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        shaken.map(LoggedStream).map_err(TrustError::of_handshake)
    }
}

/// A connection on which the server may still reject the client: in TLS 1.3 it does so after the handshake, when calls
/// have already begun, which then end without a reason. So the reason is logged.
#[derive(Debug)]
pub(super) struct LoggedStream(TlsStream<TcpStream>);

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
