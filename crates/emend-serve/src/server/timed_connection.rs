//! A connection whose client must act in time: send the HTTP/2 preface at the start, acknowledge GOAWAY at the end. It
//! is closed only when the client has closed it too.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::graceful_close::{CLOSE_TIMEOUT, poll_closed};

/// The length of the HTTP/2 preface, in bytes. Anything shorter is not HTTP/2.
const PREFACE: usize = 24;
/// How long a client has to acknowledge GOAWAY.
const ANSWER: Duration = Duration::from_secs(3);

/// A connection that fails if its first [`PREFACE`] bytes take too long, or have not arrived when the scope is asked to
/// stop. After that, HTTP/2's own keep-alive detects dead clients. When the scope is asked to stop, a client that does
/// not answer the ping sent with GOAWAY within [`ANSWER`] is disconnected: nothing else would end such a connection
/// before the hard deadline.
///
/// When everything is sent, it [waits](crate::graceful_close) until the client closes, which may delay shutdown by
/// that long.
pub(crate) struct TimedConnection<S> {
    stream: S,
    /// `None` once the preface has arrived.
    pending: Option<Handshake>,
    soft: CancellationToken,
    /// GOAWAY was sent before any stop, because the connection was old: the client has acknowledged it, or is found out by
    /// HTTP/2's keep-alive.
    has_aged: Arc<AtomicBool>,
    go_away: GoAway,
    /// How long the client has to close; `None` while there is still something to send.
    closing: Option<Pin<Box<Sleep>>>,
    /// Whether anything was written.
    has_written: bool,
}

struct Handshake {
    /// Bytes still missing.
    missing: usize,
    /// How long they may take.
    time: Pin<Box<Sleep>>,
    soft: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Whether the client has acknowledged GOAWAY.
enum GoAway {
    NotSent,
    /// How long the acknowledgement may take.
    Sent(Pin<Box<Sleep>>),
    Answered,
}

impl<S> TimedConnection<S> {
    /// The preface must arrive by `deadline`. `has_aged` is set when GOAWAY is sent for another reason than a stop.
    pub(crate) fn new(
        stream: S,
        deadline: Instant,
        soft: &CancellationToken,
        has_aged: Arc<AtomicBool>,
    ) -> Self {
        Self {
            stream,
            pending: Some(Handshake {
                missing: PREFACE,
                time: Box::pin(sleep_until(deadline)),
                soft: Box::pin(soft.clone().cancelled_owned()),
            }),
            soft: soft.clone(),
            has_aged,
            go_away: GoAway::NotSent,
            closing: None,
            has_written: false,
        }
    }

    /// Ready when the client has not acknowledged in time. Polled whenever there is nothing to read or no room to
    /// write: a client that does not read is not read from either. The connection is woken anyway to send GOAWAY, so
    /// nothing needs to wait for the token here.
    fn poll_unanswered(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.go_away, GoAway::NotSent) && self.soft.is_cancelled() {
            self.go_away = if self.has_aged.load(Ordering::Relaxed) {
                GoAway::Answered
            } else {
                GoAway::Sent(Box::pin(sleep(ANSWER)))
            };
        }
        match &mut self.go_away {
            GoAway::Sent(time) => time.as_mut().poll(cx),
            GoAway::NotSent | GoAway::Answered => Poll::Pending,
        }
    }

    /// Handles the result of a write. Whenever the client takes bytes, its time to acknowledge starts over: the
    /// acknowledgement follows whatever was sent before.
    fn written(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            ready!(self.poll_unanswered(cx));
            return Poll::Ready(Err(unanswered()));
        }
        self.has_written = true;
        if let GoAway::Sent(time) = &mut self.go_away {
            time.as_mut().reset(Instant::now() + ANSWER);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> TimedConnection<S> {
    /// Ready when the client has closed, or has not done so in time.
    fn poll_client_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let time = self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSE_TIMEOUT)));
        if time.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        poll_closed(&mut self.stream, cx)
    }
}

fn unanswered() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "the client does not acknowledge the end of the connection",
    )
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Self {
            stream,
            pending,
            go_away,
            ..
        } = &mut *self;
        if let Poll::Ready(read) = Pin::new(stream).poll_read(cx, buffer) {
            if let Some(handshake) = pending {
                let read = buffer.filled().len() - before;
                handshake.missing = handshake.missing.saturating_sub(read);
                if handshake.missing == 0 {
                    *pending = None;
                }
            }
            if matches!(go_away, GoAway::Sent(_)) {
                *go_away = GoAway::Answered;
            }
            return Poll::Ready(read);
        }
        let Some(handshake) = pending else {
            ready!(self.poll_unanswered(cx));
            return Poll::Ready(Err(unanswered()));
        };
        if handshake.soft.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(handshake.time.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the HTTP/2 preface took too long",
        )))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedConnection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(cx) {
            return Poll::Ready(flushed);
        }
        // TLS accepts more than the socket does, and waits here.
        ready!(self.poll_unanswered(cx));
        Poll::Ready(Err(unanswered()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_some() {
            return self.poll_client_closed(cx).map(Ok);
        }
        if let Poll::Ready(shut) = Pin::new(&mut self.stream).poll_shutdown(cx) {
            shut?;
            return self.poll_client_closed(cx).map(Ok);
        }
        ready!(self.poll_unanswered(cx));
        Poll::Ready(Err(unanswered()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(cx, written)
    }

    /// Not before the first write: h2 asks when it is set up, and then copies messages of up to 1 KiB into its buffer instead
    /// of 256 B, so that a small answer leaves with its headers and trailers in one write. Longer messages are written from
    /// where they are, together with what is in the buffer.
    fn is_write_vectored(&self) -> bool {
        self.has_written && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// Both ends of a connection; the server's has received its preface.
    async fn connected() -> (TcpStream, TimedConnection<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut server = TimedConnection::new(server, deadline, &CancellationToken::new(), Arc::default());
        client.write_all(&[0; PREFACE]).await.unwrap();
        server.read_exact(&mut [0; PREFACE]).await.unwrap();
        (client, server)
    }

    #[tokio::test]
    async fn a_client_that_is_still_writing_reads_the_whole_response() {
        let (mut client, mut server) = connected().await;
        client.write_all(b"not asked for").await.unwrap();
        server.stream.readable().await.unwrap();
        let server = tokio::spawn(async move {
            server.write_all(&[7; 4_096]).await.unwrap();
            server.stream.shutdown().await.unwrap();
            // Longer than anything here takes.
            server.closing = Some(Box::pin(sleep(Duration::from_mins(1))));
            server.shutdown().await
        });
        let mut answer = Vec::new();
        while answer.len() < 4_096 {
            client.read_buf(&mut answer).await.unwrap();
            client.write_all(b"neither is this").await.unwrap();
        }
        assert_eq!(
            client.read(&mut [0]).await.unwrap(),
            0,
            "it ends, and is not reset"
        );
        drop(client);
        server.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_told_to_leave_before_the_stop_need_not_acknowledge_it() {
        for (has_aged, is_cut) in [(false, true), (true, false)] {
            let (mut client, server) = duplex(16);
            let (stop, aged) = (CancellationToken::new(), Arc::new(AtomicBool::new(has_aged)));
            let deadline = Instant::now() + Duration::from_mins(1);
            let mut server = TimedConnection::new(server, deadline, &stop, aged);
            let mut preface = [0; PREFACE];
            let (sent, read) = tokio::join!(client.write_all(&[0; PREFACE]), server.read_exact(&mut preface));
            sent.and(read.map(drop)).unwrap();
            stop.cancel();
            let read = tokio::time::timeout(2 * ANSWER, server.read(&mut [0])).await;
            assert_eq!(read.is_ok_and(|read| read.is_err()), is_cut, "aged: {has_aged}");
            drop(client);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_close_is_dropped() {
        let (client, server) = duplex(16);
        let stop = CancellationToken::new();
        let mut server = TimedConnection::new(server, Instant::now() + CLOSE_TIMEOUT, &stop, Arc::default());
        let before = Instant::now();
        server.shutdown().await.unwrap();
        assert_eq!(before.elapsed(), CLOSE_TIMEOUT);
        drop(client);
    }
}
