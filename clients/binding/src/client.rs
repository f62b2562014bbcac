//! Calling every method of both services by its name, with JSON.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use emend_base::Entropy;
use emend_client::{CallError, Effect, EncodedCall, FeedbackClient};
use tokio::{sync::mpsc, task::JoinHandle};
use tonic::{Code, Streaming};

use crate::{ConnectionSettings, Error, FieldNames, background, contract::Method, per_process::PerProcess};

/// How many requests of a stream wait for the network.
const WAITING: usize = 4;
/// How long a stream of requests may take.
const UPLOAD: Duration = Duration::from_mins(10);

/// Calls a service. It connects on the first call, and works on after a fork.
#[derive(Debug)]
pub struct Client {
    /// Nothing once it is closed.
    connected: PerProcess<ArcSwapOption<FeedbackClient>>,
    /// For a child, too, that is forked afterwards.
    closed: AtomicBool,
    names: FieldNames,
    entropy: Entropy,
}

impl Client {
    /// A client with these settings, whose answers have their fields named so.
    pub fn new(settings: ConnectionSettings, names: FieldNames) -> Result<Self, Error> {
        let connect = move || {
            // A channel is served by the runtime in which it is made.
            let _within = background::handle()?.enter();
            settings.client().map(ArcSwapOption::from_pointee)
        };
        Ok(Self {
            connected: PerProcess::new(connect)?,
            closed: AtomicBool::new(false),
            names,
            entropy: Entropy::system(),
        })
    }

    /// Calls a method, for example `FeedbackService/GetFeedback`: the request and the answer are JSON of the wire contract.
    /// A call that is safe to repeat is repeated while the service is unreachable or overloaded, until the deadline; an absent
    /// request id is made. The future may be polled anywhere.
    pub fn call(
        &self,
        method: &str,
        request: &str,
        deadline: Option<Duration>,
    ) -> impl Future<Output = Result<String, Error>> + Send + use<> {
        let prepared = self.prepare(method, request, deadline, false);
        let names = self.names;
        async move {
            let (client, method, call) = prepared?;
            let answered = background::run(async move { client.call_encoded(call).await }).await??;
            method.answer(answered, names)
        }
    }

    /// Calls a method that answers with a stream.
    pub fn stream(
        &self,
        method: &str,
        request: &str,
        deadline: Option<Duration>,
    ) -> impl Future<Output = Result<Answers, Error>> + Send + use<> {
        let prepared = self.prepare(method, request, deadline, true);
        let names = self.names;
        async move {
            let (client, method, call) = prepared?;
            let answers = background::run(async move { client.stream_encoded(call).await }).await??;
            Ok(Answers {
                stream: answers,
                method,
                names,
            })
        }
    }

    /// Begins a call of a method that takes a stream of requests. The deadline is for all of it; default: 10 minutes.
    pub fn upload(&self, method: &str, deadline: Option<Duration>) -> Result<Upload, Error> {
        let method = Method::named(method)?;
        if !method.is_upload() {
            return Err(no_such_method(&method, "takes one request"));
        }
        let client = self.connected()?;
        let (requests, sent) = mpsc::channel(WAITING);
        let path = method.path.clone();
        let deadline = deadline.unwrap_or(UPLOAD);
        let answer =
            background::handle()?.spawn(async move { client.upload_encoded(path, sent, deadline).await });
        Ok(Upload {
            method,
            names: self.names,
            entropy: self.entropy.clone(),
            requests,
            answer,
        })
    }

    /// Calls fail from now on with the reason `CLOSED`. The connection is closed once the calls under way are answered.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Ok(connected) = self.connected.get() {
            connected.value.store(None);
        }
    }

    /// This process's client, for what else uses the connection.
    pub(crate) fn connected(&self) -> Result<FeedbackClient, Error> {
        let connected = self.connected.get()?;
        let client = connected.value.load_full();
        match client {
            Some(client) if !self.closed.load(Ordering::Acquire) => Ok(FeedbackClient::clone(&client)),
            _ => Err(Error::new(
                Code::FailedPrecondition,
                "CLOSED",
                "this client is closed: make another one to go on",
            )),
        }
    }

    fn prepare(
        &self,
        method: &str,
        request: &str,
        deadline: Option<Duration>,
        is_stream: bool,
    ) -> Result<(FeedbackClient, Method, EncodedCall), Error> {
        let method = Method::named(method)?;
        if method.is_upload() {
            return Err(no_such_method(&method, "takes a stream of requests"));
        }
        if method.is_stream() != is_stream {
            let answers = if is_stream {
                "answers with one message"
            } else {
                "answers with a stream"
            };
            return Err(no_such_method(&method, answers));
        }
        let call = EncodedCall {
            method: method.path.clone(),
            request: method.request(request, &self.entropy)?,
            effect: if is_stream { Effect::Reads } else { method.effect },
            deadline,
        };
        Ok((self.connected()?, method, call))
    }
}

fn no_such_method(method: &Method, what: &str) -> Error {
    let message = format!("{} {what}", method.path);
    Error::new(Code::Unimplemented, "NO_SUCH_METHOD", message)
}

/// Requests on their way to a method that takes a stream of them. Dropping it before its end gives the call up, and the service does
/// nothing.
#[derive(Debug)]
pub struct Upload {
    method: Method,
    names: FieldNames,
    entropy: Entropy,
    requests: mpsc::Sender<Option<Bytes>>,
    answer: JoinHandle<Result<Bytes, CallError>>,
}

impl Upload {
    /// Sends one request, JSON, once there is room for it. `false`: the service takes no more, and [`Upload::finish`] says why.
    pub fn send(&self, request: &str) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let encoded = self.method.request(request, &self.entropy);
        let requests = self.requests.clone();
        async move { Ok(requests.send(Some(encoded?)).await.is_ok()) }
    }

    /// Ends the requests, and waits for the answer.
    pub async fn finish(mut self) -> Result<String, Error> {
        // Who takes no more has an answer.
        let _ = self.requests.send(None).await;
        let answered = (&mut self.answer).await.map_err(|_| background::ended())??;
        self.method.answer(answered, self.names)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

/// The answers of a stream.
#[derive(Debug)]
pub struct Answers {
    stream: Streaming<Bytes>,
    method: Method,
    names: FieldNames,
}

impl Answers {
    /// Waits for the next one; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        let next = self.stream.message().await;
        match next.map_err(|status| Error::from(CallError::from(status)))? {
            Some(answer) => self.method.answer(answer, self.names).map(Some),
            None => Ok(None),
        }
    }
}
