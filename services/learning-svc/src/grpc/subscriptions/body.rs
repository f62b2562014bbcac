//! A stream's messages as an HTTP body: each a DATA frame of shared bytes, then trailers that say how it ended.
//!
//! tonic's own body copies every message into a buffer per stream, which then stays as large as the largest message was.
//! It must know nothing of the messages.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::Stream as _;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use crate::stream::Session;

/// See the module. The session is dropped as soon as it has ended.
pub(super) struct SessionBody(Option<Session>);

impl SessionBody {
    /// Sends what the session says.
    pub(super) fn new(session: Session) -> Self {
        Self(Some(session))
    }
}

impl http_body::Body for SessionBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(session) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let status = match ready!(Pin::new(session).poll_next(cx)) {
            Some(Ok(message)) => return Poll::Ready(Some(Ok(Frame::data(message.framed())))),
            Some(Err(error)) => Status::from(error),
            None => Status::ok(""),
        };
        self.0 = None;
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(
            status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        ))
    }
}
