//! Closing a connection only after the other side has closed it too.
//!
//! A socket closed with unread data is reset, and so is one that data reaches after the close: the other side's next
//! write fails, and it loses whatever it had not read yet. So incoming data is read and discarded for a while.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    time::timeout,
};

/// How long the other side has to close after our end of stream.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many bytes to discard at once.
const DISCARDED: usize = 1_024;

/// Ready when the other side has closed or is gone.
pub(crate) fn poll_closed<S: AsyncRead + Unpin>(stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
    let mut bytes = [0; DISCARDED];
    loop {
        let mut buffer = ReadBuf::new(&mut bytes);
        match ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer)) {
            Ok(()) if !buffer.filled().is_empty() => {}
            Ok(()) | Err(_) => return Poll::Ready(()),
        }
    }
}

/// Shuts down the sending side and waits until the other side has closed, for [`CLOSE_TIMEOUT`] at most.
pub(crate) async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let closed = async {
        if stream.shutdown().await.is_ok() {
            poll_fn(|cx| poll_closed(&mut stream, cx)).await;
        }
    };
    // A peer that has not closed by then is dropped.
    let _ = timeout(CLOSE_TIMEOUT, closed).await;
}
