//! Answers and refusals: a test gets the one that it expects, or fails with the full text of the other.

use std::{
    fmt::Debug,
    future,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use emend_base::status::{Explained, explain, from_item_status};
use emend_proto::{
    common::v1::ItemStatus,
    frame::{Frame, FrameCodec},
};
use tonic::{
    Code, Response, Status, Streaming,
    body::Body,
    client::Grpc,
    codegen::{
        Service as _,
        http::{Request, uri::PathAndQuery},
    },
    transport::{Channel, Endpoint},
};

use super::wait::within;

/// A channel that connects on first use and reconnects when necessary.
///
/// # Panics
/// If `address` is not an address.
pub fn channel(address: impl std::fmt::Display) -> Channel {
    Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .connect_lazy()
}

/// The response.
///
/// # Panics
/// If the call was refused.
#[track_caller]
pub fn answered<T>(result: Result<Response<T>, Status>) -> T {
    match result {
        Ok(response) => response.into_inner(),
        Err(status) => panic!("refused: {}", explain(&status)),
    }
}

/// The refusal, parsed.
///
/// # Panics
/// If the call succeeded.
#[track_caller]
pub fn refused<T: Debug>(result: Result<T, Status>) -> Explained {
    match result {
        Ok(response) => panic!("not refused: {response:?}"),
        Err(status) => Explained::from(status),
    }
}

/// Why an item of a batch was refused; `None` if it was not.
pub fn item_refusal(status: Option<&ItemStatus>) -> Option<Explained> {
    status.and_then(from_item_status).map(Explained::from)
}

/// The fields that a refusal names, sorted.
pub fn fields(refusal: &Explained) -> Vec<&str> {
    let mut fields: Vec<&str> = refusal
        .field_violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    fields.sort_unstable();
    fields
}

/// Calls any RPC by its path with any number of encoded messages, and answers with the first response message, if any.
/// Unary and streaming RPCs look the same on the wire.
pub async fn call(channel: &Channel, path: &str, messages: Vec<Bytes>) -> Result<Option<Bytes>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::try_from(path).map_err(|error| Status::internal(error.to_string()))?;
    let request = tonic::Request::new(tokio_stream::iter(messages.into_iter().map(Frame)));
    let codec = FrameCodec::<Frame, Frame>::default();
    let mut answers = grpc.streaming(request, path, codec).await?.into_inner();
    Ok(answers.message().await?.map(|Frame(bytes)| bytes))
}

/// Begins an RPC by its path and never sends a message; answers with how the call ended.
pub async fn begin_and_never_send(channel: Channel, path: &'static str) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let request = tonic::Request::new(futures::stream::pending::<Frame>());
    let codec = FrameCodec::<Frame, Frame>::default();
    let answer = grpc
        .streaming(request, PathAndQuery::from_static(path), codec)
        .await?;
    answer.into_inner().message().await?;
    Ok(())
}

/// Calls an RPC by its path and never reads the response, which is larger than the stream window it is given.
///
/// # Panics
/// If it can't connect.
pub async fn ask_and_never_read(
    address: SocketAddr,
    path: &'static str,
    message: Bytes,
) -> Result<Streaming<Frame>, Status> {
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .initial_stream_window_size(10)
        .connect()
        .await
        .expect("the receiver exists");
    let mut grpc = Grpc::new(channel);
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let request = tonic::Request::new(tokio_stream::iter([Frame(message)]));
    let codec = FrameCodec::<Frame, Frame>::default();
    let answer = grpc.streaming(request, PathAndQuery::from_static(path), codec);
    within("an answer begins", answer).await.map(Response::into_inner)
}

/// Begins an RPC by its path and sends the first `bytes` of a 4 MiB message, never the rest; answers with how the call
/// ended.
pub async fn send_part_of_a_message(
    mut channel: Channel,
    path: &'static str,
    bytes: usize,
) -> Result<(), Status> {
    let broken = |error: tonic::transport::Error| Status::unavailable(error.to_string());
    let request = Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(IncompleteBody {
            left: bytes,
            begun: false,
        }))
        .expect("a request");
    future::poll_fn(|cx| channel.poll_ready(cx))
        .await
        .map_err(broken)?;
    let response = channel.call(request).await.map_err(broken)?;
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(()),
    }
}

/// A message that is never complete.
struct IncompleteBody {
    left: usize,
    begun: bool,
}

impl http_body::Body for IncompleteBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        const LENGTH: [u8; 5] = [0, 0, 0x40, 0, 0];
        const PIECE: usize = 16 * 1024;
        if !self.begun {
            self.begun = true;
            return Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&LENGTH)))));
        }
        let piece = self.left.min(PIECE);
        if piece == 0 {
            return Poll::Pending;
        }
        self.left -= piece;
        let data = Bytes::from_static(&[0; PIECE]).split_to(piece);
        Poll::Ready(Some(Ok(http_body::Frame::data(data))))
    }
}
