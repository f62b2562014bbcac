//! Plain connections. A server that does not speak plain HTTP/2 is recognized by the first byte that it sends.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tower::Service;

/// The default port of http.
pub(super) const HTTP: u16 = 80;

/// Opens plain connections for HTTP/2.
#[derive(Debug, Clone)]
pub(super) struct PlainConnector {
    host: String,
    port: u16,
}

impl PlainConnector {
    pub(super) fn new(uri: &Uri) -> Self {
        let host = uri.host().unwrap_or_default();
        Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(HTTP),
        }
    }
}

impl Service<Uri> for PlainConnector {
    type Response = TokioIo<PlainStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { host, port } = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            let has_answered = false;
            Ok(TokioIo::new(PlainStream { stream, has_answered }))
        })
    }
}

/// A connection whose first byte from the server is looked at.
#[derive(Debug)]
pub(super) struct PlainStream {
    stream: TcpStream,
    has_answered: bool,
}

/// What a server speaks whose answer begins with this byte, if it is not HTTP/2. There the first frame's length comes first, whose
/// highest byte is 0.
fn other_protocol(first: u8) -> Option<&'static str> {
    match first {
        // A record of TLS: an alert, a handshake.
        0x15 | 0x16 => Some("the server uses TLS at this address: begin it with https://"),
        b'H' => Some(
            "the server answers in HTTP/1.1, not gRPC: this is a port for something else, such as metrics, or requires TLS",
        ),
        _ => None,
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let (false, Some(first)) = (self.has_answered, buffer.filled().get(before)) {
            if let Some(protocol) = other_protocol(*first) {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, protocol)));
            }
            self.has_answered = true;
        }
        read
    }
}

impl AsyncWrite for PlainStream {
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
