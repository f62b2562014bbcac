//! A stream's messages as an HTTP body: each goes out as DATA frames of shared bytes, and trailers say how the stream
//! ended.
//!
//! tonic's own body copies every message into a buffer per stream, which stays as large as the largest message. Here a
//! long message is handed over in pieces, so that the next message is polled for only when the client has read nearly
//! all of this one; otherwise each client that does not read would hold two.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use emend_serve::server::SEND_BUFFER;
use emend_stream::encode::Compression;
use futures::Stream as _;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use crate::stream::Session;

/// See the module. The session is dropped as soon as it ends.
pub(super) struct SessionBody {
    session: Option<Session>,
    /// The part of the last message not handed over yet.
    rest: Bytes,
    compression: Compression,
}

impl SessionBody {
    /// A body of the session's messages.
    pub(super) fn new(session: Session, compression: Compression) -> Self {
        Self {
            session: Some(session),
            compression,
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
                self.rest = message.framed(self.compression);
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
