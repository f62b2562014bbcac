//! Closing a connection when all is said: only when the other side has closed it, too.
//!
//! A socket that is closed with something unread is reset, and so is one that something reaches later: the other side's next
//! write fails then, and with it all that it had not read yet. So what still comes is read and thrown away, for a while.
//!
//! It must know nothing of what was said.

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

/// How long the other side has to close once it was told that nothing more comes.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// What is read at once of that which nobody wants to know any more, in bytes.
const DISCARDED: usize = 1_024;

/// Ready when the other side has closed, or is gone.
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

/// Says that nothing more comes, and waits until the other side has closed, for [`LINGER`] at most.
pub(crate) async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let closed = async {
        if stream.shutdown().await.is_ok() {
            poll_fn(|cx| poll_closed(&mut stream, cx)).await;
        }
    };
    // Whoever has not closed by then is left.
    let _ = timeout(LINGER, closed).await;
}
