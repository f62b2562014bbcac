//! A stream's messages as an HTTP body: each a DATA frame of shared bytes, then trailers that say how it ended.
//!
//! tonic's own body copies every message into a buffer per stream, which then stays as large as the largest message was.
//! A long message is handed over in pieces, so that the next one is asked for only when the client has read nearly all of
//! it: else each client that does not read would hold two.
//!
//! It must know nothing of the messages.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use emend_runtime::serve::SEND_BUFFER;
use futures::Stream as _;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use crate::stream::Session;

/// See the module. The session is dropped as soon as it has ended.
pub(super) struct SessionBody {
    session: Option<Session>,
    /// What of the last message is not handed over yet.
    rest: Bytes,
}

impl SessionBody {
    /// Sends what the session says.
    pub(super) fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            rest: Bytes::new(),
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.len().min(SEND_BUFFER);
        Frame::data(self.rest.split_to(piece))
    }
}

impl http_body::Body for SessionBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let Some(session) = &mut self.session else {
            return Poll::Ready(None);
        };
        let status = match ready!(Pin::new(session).poll_next(cx)) {
            Some(Ok(message)) => {
                self.rest = message.framed();
                return Poll::Ready(Some(Ok(self.piece())));
            }
            Some(Err(error)) => Status::from(error),
            None => Status::ok(""),
        };
        self.session = None;
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(
            status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        ))
    }
}
