//! Calling any method of either service with messages that are encoded already, for bindings to other languages: with
//! the connection, headers, token, deadline and retries of a [`FeedbackClient`].

use std::{
    task::{Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BufMut as _, Bytes};
use emend_base::status::{NO_ANSWER, NO_ANSWER_TO_CHANGE};
use futures::stream;
use http::uri::PathAndQuery;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tonic::{
    Response, Status, Streaming,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::{CallError, FeedbackClient, retry::retry};

/// The largest message that is read: a page of resources of the largest size.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What a method does if it is called twice with the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads: called again while the server is unreachable or overloaded.
    Reads,
    /// It changes something once, however often it is called: called again likewise.
    ChangesOnce,
    /// It may change something each time: called once.
    Changes,
}

/// A call of one method.
#[derive(Debug, Clone)]
pub struct EncodedCall {
    /// The method, for example `/emend.feedback.v1.FeedbackService/GetFeedback`.
    pub method: PathAndQuery,
    /// The encoded request.
    pub request: Bytes,
    /// What calling it twice does.
    pub effect: Effect,
    /// How long the call may take, including all attempts; `None`: as long as the client's other calls.
    pub deadline: Option<Duration>,
}

impl FeedbackClient {
    /// Calls a method that answers with one message, and returns that message encoded.
    pub async fn call_encoded(&self, call: EncodedCall) -> Result<Bytes, CallError> {
        let deadline = Instant::now() + call.deadline.unwrap_or(self.deadline);
        let unanswered = call.unanswered();
        let attempt = |left| self.attempt(&call, left);
        let answered = if call.effect == Effect::Changes {
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout_at(deadline, attempt(left)).await {
                Ok(answered) => answered,
                Err(_) => Err(Status::deadline_exceeded(unanswered)),
            }
        } else {
            retry(deadline, unanswered, self.new_backoff(), attempt).await
        };
        Ok(answered?.into_inner())
    }

    /// Calls a method that answers with a stream of messages; the deadline is for its first answer.
    pub async fn stream_encoded(&self, call: EncodedCall) -> Result<Streaming<Bytes>, CallError> {
        let left = call.deadline.unwrap_or(self.deadline);
        let opening = async {
            let mut client = self.opened().await?;
            let request = self.request(left, call.request.clone());
            client
                .server_streaming(request, call.method.clone(), EncodedCodec)
                .await
        };
        match timeout_at(Instant::now() + left, opening).await {
            Ok(answered) => Ok(answered?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded(call.unanswered()).into()),
        }
    }

    /// Calls a method that takes a stream of messages, once, and returns its answer encoded; the deadline is for all of it. `None`
    /// among the messages ends them. Messages whose sender is gone without that have no end: the call is given up when the future
    /// is dropped, and the server does not take the beginning for all.
    pub async fn upload_encoded(
        &self,
        method: PathAndQuery,
        mut messages: mpsc::Receiver<Option<Bytes>>,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        let messages = stream::poll_fn(move |context| match ready!(messages.poll_recv(context)) {
            Some(message) => Poll::Ready(message),
            None => Poll::Pending,
        });
        let uploading = async {
            let mut client = self.opened().await?;
            let request = self.request(deadline, messages);
            client.client_streaming(request, method, EncodedCodec).await
        };
        match timeout_at(Instant::now() + deadline, uploading).await {
            Ok(answered) => Ok(answered?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded(NO_ANSWER_TO_CHANGE).into()),
        }
    }

    async fn attempt(&self, call: &EncodedCall, left: Duration) -> Result<Response<Bytes>, Status> {
        let mut client = self.opened().await?;
        let request = self.request(left, call.request.clone());
        client.unary(request, call.method.clone(), EncodedCodec).await
    }

    async fn opened(&self) -> Result<tonic::client::Grpc<tonic::transport::Channel>, Status> {
        let mut client =
            tonic::client::Grpc::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        client
            .ready()
            .await
            .map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(client)
    }
}

impl EncodedCall {
    fn unanswered(&self) -> &'static str {
        match self.effect {
            Effect::Reads => NO_ANSWER,
            Effect::ChangesOnce | Effect::Changes => NO_ANSWER_TO_CHANGE,
        }
    }
}

/// Leaves messages as they are.
#[derive(Debug, Clone, Copy)]
struct EncodedCodec;

impl Codec for EncodedCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
