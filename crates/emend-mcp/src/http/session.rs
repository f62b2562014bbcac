//! One session: what its client sends waits here for what serves it, and each answer finds the stream of the call that it belongs
//! to. It costs little while nobody calls, for it has no queues of its own: the library's sessions take 60 KiB more.
//!
//! Only what its client sends keeps it from ending: what it is told may have no reader. A client that listens and says nothing is
//! pinged, and its answer is something that it sends. A call whose client has gone is cancelled, since its answer would find nobody:
//! streams are not taken up again.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt as _};
use rmcp::{
    RoleServer,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
        GetExtensions as _, GetMeta as _, JsonRpcMessage, PingRequest, ProgressToken, RequestId,
        ServerJsonRpcMessage, ServerNotification, ServerRequest,
    },
    service::OriginatingRequestId,
    transport::{Transport, streamable_http_server::session::ServerSseMessage},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;

/// How long a session's client may be silent.
pub(super) const IDLE: Duration = Duration::from_mins(30);
/// For how long a client that listens may be silent until it is pinged, and how long until it is pinged again.
const PING: Duration = Duration::from_mins(10);
/// The id of a ping; no request of the protocol's library has a text as its id.
const PING_ID: &str = "ping";
/// The messages that may wait for a client that reads slowly; and those that are kept for one that does not listen.
const WAITING: usize = 16;

type Sender = mpsc::Sender<ServerSseMessage>;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug)]
struct State {
    arrived: VecDeque<ClientJsonRpcMessage>,
    is_closed: bool,
    /// When its client sent something last.
    heard: Instant,
    /// When its client was pinged last, or heard of.
    asked: Instant,
    /// Takes the answer to `initialize`.
    hello: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    /// The streams of the calls under way.
    calls: HashMap<RequestId, Call>,
    /// The stream that belongs to no call.
    standalone: Option<Sender>,
    /// What came while there was none.
    kept: VecDeque<ServerSseMessage>,
}

#[derive(Debug)]
struct Call {
    stream: Sender,
    progress: Option<ProgressToken>,
    /// What its client was asked for it.
    asked: Vec<RequestId>,
}

impl Session {
    pub(super) fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            state: Mutex::new(State {
                arrived: VecDeque::new(),
                is_closed: false,
                heard: now,
                asked: now,
                hello: None,
                calls: HashMap::new(),
                standalone: None,
                kept: VecDeque::new(),
            }),
            arrived: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what the client sends.
    pub(super) fn take(&self, message: ClientJsonRpcMessage) {
        let mut state = self.state();
        state.heard();
        if let JsonRpcMessage::Notification(told) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // Nothing answers it any more: its stream ends.
            state.calls.remove(id);
        }
        state.arrived.push_back(message);
        drop(state);
        self.arrived.notify_one();
    }

    /// How much is going on in it.
    pub(super) fn activity(&self) -> Activity {
        let state = self.state();
        Activity {
            has_calls: !state.calls.is_empty(),
            is_listening: state.listener().is_some(),
            heard: state.heard,
        }
    }

    /// Hands on the first message; returns what takes its answer.
    pub(super) fn greet(&self, message: ClientJsonRpcMessage) -> oneshot::Receiver<ServerJsonRpcMessage> {
        let (hello, answer) = oneshot::channel();
        self.state().hello = Some(hello);
        self.take(message);
        answer
    }

    /// Hands on a request; returns the stream of what belongs to it, which ends with its answer. Once it is dropped the request is
    /// cancelled.
    pub(super) fn call(self: Arc<Self>, message: ClientJsonRpcMessage) -> CallStream {
        let (stream, events) = mpsc::channel(WAITING);
        let mut id = None;
        if let JsonRpcMessage::Request(request) = &message {
            let progress = request.request.get_meta().get_progress_token();
            let call = Call {
                stream,
                progress,
                asked: Vec::new(),
            };
            self.state().calls.insert(request.id.clone(), call);
            id = Some(request.id.clone());
        }
        self.take(message);
        CallStream {
            events,
            id,
            session: self,
        }
    }

    /// Cancels a call whose stream is closed, unless it was answered.
    fn abandon(&self, id: &RequestId) {
        let mut state = self.state();
        // Another call may have its id by now.
        if state.calls.get(id).is_none_or(|call| !call.stream.is_closed()) {
            return;
        }
        state.calls.remove(id);
        let why = "its client closed the connection".to_owned();
        let cancelled = CancelledNotificationParam::new(Some(id.clone()), Some(why));
        let cancelled = CancelledNotification::new(cancelled);
        let cancelled = ClientNotification::CancelledNotification(cancelled);
        state.arrived.push_back(JsonRpcMessage::notification(cancelled));
        drop(state);
        self.arrived.notify_one();
    }

    /// The stream of what belongs to no call; the newest one that was opened is told.
    pub(super) fn listen(&self) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        let (stream, events) = mpsc::channel(WAITING);
        let mut state = self.state();
        state.heard();
        state.standalone = Some(stream);
        let kept = std::mem::take(&mut state.kept);
        drop(state);
        // There is somebody to ping.
        self.arrived.notify_one();
        futures::stream::iter(kept).chain(ReceiverStream::new(events))
    }

    /// Tells its client that a resource may be another now.
    #[cfg(test)]
    pub(super) async fn tell_of_a_change(self: &Arc<Self>) {
        use rmcp::model::{ResourceUpdatedNotification, ResourceUpdatedNotificationParam};
        let changed = ResourceUpdatedNotificationParam::new("emend://default/pending");
        let changed = ResourceUpdatedNotification::new(changed);
        let changed = ServerNotification::ResourceUpdatedNotification(changed);
        let mut transport = SessionTransport(Arc::clone(self));
        let Ok(()) = transport.send(JsonRpcMessage::notification(changed)).await;
    }

    /// The next message of the client, once it comes; none once the session has ended.
    async fn received(&self) -> Option<ClientJsonRpcMessage> {
        loop {
            let until = {
                let mut state = self.state();
                if state.is_closed {
                    return None;
                }
                if let Some(message) = state.arrived.pop_front() {
                    if state.arrived.is_empty() {
                        // A silent session keeps no room for messages.
                        state.arrived = VecDeque::new();
                    }
                    return Some(message);
                }
                let ends = state.heard + IDLE;
                if ends <= Instant::now() {
                    return None;
                }
                state.ping().map_or(ends, |ping| ping.min(ends))
            };
            tokio::select! {
                () = self.arrived.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Ends it: what serves it receives nothing more, and its streams end.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.calls.clear();
        state.standalone = None;
        drop(state);
        self.arrived.notify_one();
    }
}

/// How much is going on in a session: the less, the sooner it makes room for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Activity {
    /// A call is under way.
    pub(super) has_calls: bool,
    /// Its client listens to what belongs to no call.
    is_listening: bool,
    /// When its client sent something last.
    heard: Instant,
}

/// What belongs to a call, until its answer.
#[derive(Debug)]
pub(super) struct CallStream {
    events: mpsc::Receiver<ServerSseMessage>,
    id: Option<RequestId>,
    session: Arc<Session>,
}

impl Stream for CallStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.events.poll_recv(context)
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        self.events.close();
        if let Some(id) = &self.id {
            self.session.abandon(id);
        }
    }
}

impl State {
    /// Its client sent something.
    fn heard(&mut self) {
        self.heard = Instant::now();
        self.asked = self.heard;
    }

    /// The stream that belongs to no call, if somebody reads it.
    fn listener(&self) -> Option<&Sender> {
        self.standalone.as_ref().filter(|stream| !stream.is_closed())
    }

    /// Pings the client, if it listens and has been silent for long. Returns when to look again, if that is before it ends.
    fn ping(&mut self) -> Option<Instant> {
        let stream = self.listener()?;
        if self.asked + PING <= Instant::now() {
            let ping = ServerRequest::PingRequest(PingRequest::default());
            let ping = JsonRpcMessage::request(ping, RequestId::String(PING_ID.into()));
            // A client that has not read what it was told before is not heard of either.
            let _ = stream.try_send(ServerSseMessage::from_message(ping));
            self.asked = Instant::now();
        }
        Some(self.asked + PING)
    }

    /// The stream for a message, where there is one; with it goes a call that is answered.
    fn stream_for(&mut self, message: &ServerJsonRpcMessage) -> Option<Sender> {
        match message {
            JsonRpcMessage::Response(answer) => self.calls.remove(&answer.id).map(|call| call.stream),
            JsonRpcMessage::Error(error) => {
                let call = self.calls.remove(error.id.as_ref()?);
                call.map(|call| call.stream)
            }
            JsonRpcMessage::Request(asked) => {
                let origin = asked.request.extensions().get::<OriginatingRequestId>();
                let call = origin.and_then(|origin| self.calls.get_mut(&origin.0));
                call.map(|call| {
                    call.asked.push(asked.id.clone());
                    call.stream.clone()
                })
                .or_else(|| self.listener().cloned())
            }
            JsonRpcMessage::Notification(told) => {
                let call = match &told.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        let token = Some(&progress.params.progress_token);
                        self.calls.values().find(|call| call.progress.as_ref() == token)
                    }
                    ServerNotification::CancelledNotification(cancelled) => {
                        let id = cancelled.params.request_id.as_ref();
                        id.and_then(|id| self.calls.values().find(|call| call.asked.contains(id)))
                    }
                    _ => None,
                };
                call.map(|call| call.stream.clone())
                    .or_else(|| self.listener().cloned())
            }
        }
    }
}

/// The session's end of what serves it.
#[derive(Debug)]
pub(super) struct SessionTransport(pub(super) Arc<Session>);

impl Transport<RoleServer> for SessionTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let session = Arc::clone(&self.0);
        // Boxed, as what is received is: the tasks of a session would each reserve room for it.
        Box::pin(async move {
            let (stream, message) = {
                let mut state = session.state();
                let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
                if is_answer && let Some(hello) = state.hello.take() {
                    // Who asked may have gone.
                    let _ = hello.send(message);
                    return Ok(());
                }
                let stream = state.stream_for(&message);
                let message = ServerSseMessage::from_message(message);
                // An answer whose call has gone is nobody's.
                if stream.is_none() && !is_answer {
                    if state.kept.len() == WAITING {
                        state.kept.pop_front();
                    }
                    state.kept.push_back(message.clone());
                }
                (stream, message)
            };
            if let Some(stream) = stream {
                // Whoever listened may have gone.
                let _ = stream.send(message).await;
            }
            Ok(())
        })
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        Box::pin(self.0.received())
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Infallible>> + Send {
        self.0.close();
        ready(Ok(()))
    }
}
