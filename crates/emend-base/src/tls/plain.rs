//! Plain connections. A server that does not speak plain HTTP/2 is recognized by the first byte that it sends.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// The default port of http.
pub(super) const HTTP: u16 = 80;
/// How long one of several addresses may take before the next one is tried.
pub(super) const EACH: Duration = Duration::from_secs(2);
/// Said of a server that answers with a record of TLS.
const TLS: &str = "the server uses TLS at this address: begin it with https://, or name its CA";
/// Said of a server that answers in HTTP/1.1, as one for HTTP/2 over TLS may also do.
const HTTP_1: &str =
    "the server answers in HTTP/1.1, not gRPC: this is a port for something else, such as metrics";
/// Said of one that ends the connection before it has answered anything.
const CLOSED: &str = "the server ended the connection without an answer: this may be a port for something else, such as metrics, or one with TLS";

/// Whether this is said of a server that speaks another protocol than expected. It is told by its words: what comes between hands
/// on nothing else.
pub(crate) fn is_of_other_protocol(reason: &str) -> bool {
    [TLS, HTTP_1, CLOSED].contains(&reason)
}

/// The host in a URI, an IPv6 address without brackets.
pub(super) fn host_of(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Connects to the host of a URI, at the port that it names or else at this one. Of several addresses of the host, one that does
/// not answer holds up the others only for a while.
pub(super) async fn connect(uri: &Uri, default_port: u16) -> io::Result<TcpStream> {
    let port = uri.port_u16().unwrap_or(default_port);
    let addresses: Vec<SocketAddr> = lookup_host((host_of(uri), port)).await?.collect();
    let patience = match addresses.len() {
        0 | 1 => Duration::MAX,
        _ => EACH,
    };
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

/// What was noticed of a server that does not speak plain HTTP/2, until one does. Clones share it: what comes between hands on an
/// error of the connection only sometimes.
#[derive(Debug, Clone, Default)]
pub(super) struct Noticed(Arc<Mutex<Option<&'static str>>>);

impl Noticed {
    pub(super) fn words(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, words: Option<&'static str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }
}

/// A connection whose first byte from the server is looked at.
#[derive(Debug)]
pub(super) struct PlainStream {
    stream: TcpStream,
    has_answered: bool,
    noticed: Noticed,
}

impl PlainStream {
    pub(super) fn new(stream: TcpStream, noticed: Noticed) -> Self {
        Self {
            stream,
            has_answered: false,
            noticed,
        }
    }
}

/// What a server speaks whose answer begins with this byte, if it is not HTTP/2. There the first frame's length comes first, whose
/// highest byte is 0.
fn other_protocol(first: u8) -> Option<&'static str> {
    match first {
        // A record of TLS: an alert, a handshake.
        0x15 | 0x16 => Some(TLS),
        b'H' => Some(HTTP_1),
        _ => None,
    }
}

impl PlainStream {
    /// The error of a connection that ended before the server had answered, or as it is.
    fn ended(&self, error: io::Error) -> io::Error {
        if self.has_answered || error.kind() == io::ErrorKind::InvalidData {
            return error;
        }
        // What the server had said before says more.
        let words = self.noticed.words().unwrap_or(CLOSED);
        self.noticed.set(Some(words));
        io::Error::new(error.kind(), words)
    }

    /// Handles the result of a write. If the server no longer accepts data, it may have said before what it speaks.
    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = written else {
            return written;
        };
        if self.has_answered {
            return Poll::Ready(Err(error));
        }
        let mut first = [0; 1];
        match Pin::new(&mut *self).poll_read(cx, &mut ReadBuf::new(&mut first)) {
            Poll::Ready(Err(cause)) => Poll::Ready(Err(cause)),
            _ => Poll::Ready(Err(self.ended(error))),
        }
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.has_answered || read.is_pending() || !has_room {
            return read;
        }
        match (read, buffer.filled().get(before)) {
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(self.ended(error))),
            (_, None) => Poll::Ready(Err(self.ended(io::ErrorKind::ConnectionAborted.into()))),
            (read, Some(first)) => {
                if let Some(protocol) = other_protocol(*first) {
                    self.noticed.set(Some(protocol));
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, protocol)));
                }
                self.noticed.set(None);
                self.has_answered = true;
                read
            }
        }
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
