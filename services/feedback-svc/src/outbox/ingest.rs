//! The gRPC transport to learning-svc: one bidirectional `Ingest` stream, opened on demand, with several batches in
//! flight. Answers come in the order of the batches. What has become of feedbacks is asked over the same connection.
//!
//! A stream that fails or falls silent is abandoned with all batches in flight on it; the next batch opens another,
//! over a new connection, so that names are resolved again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use emend_base::{
    Lifecycle,
    bearer::TokenFile,
    status::Explained,
    tls::{Remote, why},
};
use emend_core::InstallationId;
use emend_proto::learning::v1::{
    Event, FeedbackStandings, GetStandingsRequest, IngestRequest, IngestResponse,
    ingest_service_client::IngestServiceClient,
};
use emend_serve::server::bounds::KeepAlive;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Status, transport::Channel};

use crate::{
    fail_points,
    outbox::{Delivered, Delivery, DeliveryError},
};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The reason of a refusal by another installation than the one that a batch is meant for.
const OTHER_INSTALLATION: &str = "INSTALLATION_MISMATCH";
/// How many batches may wait to be written to the connection.
const WRITE_QUEUE: usize = 16;

/// Sends events to one learning-svc address.
#[derive(Debug)]
pub(crate) struct IngestClient {
    remote: Remote,
    token: Option<TokenFile>,
    lifecycle: Lifecycle,
    answer_timeout: Duration,
    stream: Mutex<Option<Stream>>,
}

/// An open stream.
#[derive(Debug)]
struct Stream {
    /// Its connection.
    channel: Channel,
    requests: mpsc::Sender<IngestRequest>,
    under_way: PendingAnswers,
    /// Aborted with the stream.
    _reader: AbortOnDropHandle<()>,
}

/// The batches of one stream, in the order in which they are sent.
type Call = Request<ReceiverStream<IngestRequest>>;

type Answer = Result<Delivered, DeliveryError>;

/// The senders of the next answers, in order; none once the stream has ended.
#[derive(Debug, Clone)]
struct PendingAnswers(Arc<SyncMutex<Option<VecDeque<oneshot::Sender<Answer>>>>>);

impl IngestClient {
    /// A client that connects when it is first used. Its tasks run in `lifecycle`.
    pub(crate) fn new(
        remote: Remote,
        token: Option<TokenFile>,
        lifecycle: Lifecycle,
        answer_timeout: Duration,
        keep_alive: KeepAlive,
    ) -> Self {
        let remote = remote.map(|endpoint| {
            endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true)
        });
        Self {
            remote: remote.keep_alive(keep_alive.interval, keep_alive.timeout),
            token,
            lifecycle,
            answer_timeout,
            stream: Mutex::new(None),
        }
    }

    /// Sends a batch on the stream, opening it if needed.
    async fn send(
        &self,
        events: Vec<Event>,
        to: Option<InstallationId>,
    ) -> Result<oneshot::Receiver<Answer>, DeliveryError> {
        let mut stream = self.stream.lock().await;
        let (answer, answered) = oneshot::channel();
        let open = self.take_open(&mut stream).await?;
        // Under the lock, so that batches wait for their answers in the order in which they are sent. If the stream has
        // just ended, the receiver is told by the sender being dropped.
        open.under_way.push(answer);
        let sent = open
            .requests
            .send(IngestRequest {
                events,
                installation_id: to.map(|id| id.to_string()).unwrap_or_default(),
            })
            .await;
        *stream = Some(open);
        sent.map_err(|_| DeliveryError::Unavailable("the stream has ended".to_owned()))?;
        Ok(answered)
    }

    /// Takes the stream out of its place, or a new one if it has ended.
    async fn take_open(&self, stream: &mut Option<Stream>) -> Result<Stream, DeliveryError> {
        match stream.take() {
            Some(open) if open.under_way.is_open() => Ok(open),
            _ => self.open().await,
        }
    }

    /// The stream's connection.
    async fn channel(&self) -> Result<Channel, DeliveryError> {
        let mut stream = self.stream.lock().await;
        let open = self.take_open(&mut stream).await?;
        Ok(stream.insert(open).channel.clone())
    }

    async fn open(&self) -> Result<Stream, DeliveryError> {
        let channel = self.remote.connect().await;
        let channel = channel.map_err(|error| DeliveryError::Unavailable(why(&error)))?;
        let (requests, queue) = mpsc::channel(WRITE_QUEUE);
        let under_way = PendingAnswers(Arc::new(SyncMutex::new(Some(VecDeque::new()))));
        let mut call = Request::new(ReceiverStream::new(queue));
        if let Some(token) = &self.token {
            token.authorize(&mut call);
        }
        let reader = self.lifecycle.spawn(
            "read ingest answers",
            read(self.remote.clone(), channel.clone(), call, under_way.clone()),
        );
        Ok(Stream {
            channel,
            requests,
            under_way,
            _reader: AbortOnDropHandle::new(reader),
        })
    }
}

/// Passes answers on to the batches that wait for them, until the stream ends.
async fn read(remote: Remote, channel: Channel, call: Call, under_way: PendingAnswers) {
    let error = match answers(channel, call, &under_way).await {
        Ok(()) => DeliveryError::Unavailable("learning-svc ended the stream".to_owned()),
        Err(status) => explain(&remote, &status),
    };
    under_way.end(&error);
}

async fn answers(channel: Channel, call: Call, under_way: &PendingAnswers) -> Result<(), Status> {
    // Awaiting the response headers here lets batches be sent before they arrive.
    let mut client = IngestServiceClient::new(channel);
    let mut answers = client.ingest(call).await?.into_inner();
    while let Some(IngestResponse {
        results,
        installation_id,
    }) = answers.message().await?
    {
        let by = InstallationId::parse(&installation_id).ok();
        under_way.answer(Delivered { results, by });
    }
    Ok(())
}

/// What the end of a stream means for the batches on it.
fn explain(remote: &Remote, status: &Status) -> DeliveryError {
    if let Some(why) = remote.misdirected(status) {
        return DeliveryError::Unavailable(why);
    }
    let (code, message) = (status.code(), status.message());
    match code {
        Code::FailedPrecondition if Explained::from(status).reason.as_deref() == Some(OTHER_INSTALLATION) => {
            let preconditions = Explained::from(status).preconditions;
            let answering = preconditions.first().map(|answering| &*answering.subject);
            DeliveryError::OtherInstallation(answering.and_then(|id| InstallationId::parse(id).ok()))
        }
        // The batch is at fault; `OUT_OF_RANGE` means a message that is too large.
        Code::InvalidArgument | Code::OutOfRange => DeliveryError::Refused {
            code: code.into(),
            message: message.to_owned(),
        },
        _ => DeliveryError::Unavailable(format!("{}: {message}", emend_base::status::code_name(code))),
    }
}

impl PendingAnswers {
    fn with<T>(&self, change: impl FnOnce(&mut Option<VecDeque<oneshot::Sender<Answer>>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_open(&self) -> bool {
        self.with(|waiting| waiting.is_some())
    }

    fn push(&self, answer: oneshot::Sender<Answer>) {
        self.with(|waiting| waiting.as_mut().map(|waiting| waiting.push_back(answer)));
    }

    fn answer(&self, delivered: Delivered) {
        if let Some(first) = self.with(|waiting| waiting.as_mut().and_then(VecDeque::pop_front)) {
            // The caller may have given up.
            let _ = first.send(Ok(delivered));
        }
    }

    fn end(&self, error: &DeliveryError) {
        for answer in self.with(Option::take).into_iter().flatten() {
            let _ = answer.send(Err(error.clone()));
        }
    }
}

#[async_trait]
impl Delivery for IngestClient {
    async fn deliver(&self, events: Vec<Event>, to: Option<InstallationId>) -> Answer {
        let answered = self.send(events, to).await?;
        fail_points::BATCH_SENT.pass();
        match timeout(self.answer_timeout, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(DeliveryError::Unavailable("the stream has ended".to_owned())),
            Err(_) => {
                // A late answer must not be taken for that of another batch, so the stream is dropped with all batches
                // on it.
                let error = DeliveryError::Unavailable(format!("no answer within {:?}", self.answer_timeout));
                if let Some(silent) = self.stream.lock().await.take() {
                    silent.under_way.end(&error);
                }
                Err(error)
            }
        }
    }

    async fn standings(
        &self,
        request: GetStandingsRequest,
        until: Instant,
    ) -> Result<Vec<FeedbackStandings>, DeliveryError> {
        let mut client = IngestServiceClient::new(self.channel().await?);
        let mut call = Request::new(request);
        call.set_timeout(until.saturating_duration_since(Instant::now()));
        if let Some(token) = &self.token {
            token.authorize(&mut call);
        }
        let answer = client.get_standings(call).await;
        let answer = answer.map_err(|status| explain(&self.remote, &status))?;
        Ok(answer.into_inner().standings)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emend_base::{
        Entropy,
        tls::{ClientTls, testing::Authority},
    };
    use emend_serve::{
        Server,
        health::Readiness,
        tls::{TlsFiles, TlsServer},
    };
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::outbox::config::RelayConfig;

    /// Why a batch is not delivered there.
    async fn refused(remote: Remote, lifecycle: &Lifecycle) -> DeliveryError {
        let RelayConfig {
            answer_timeout,
            keep_alive,
            ..
        } = RelayConfig::default();
        let client = IngestClient::new(remote, None, lifecycle.clone(), answer_timeout, keep_alive);
        client.deliver(Vec::new(), None).await.unwrap_err()
    }

    #[tokio::test]
    async fn what_answers_instead_of_learning_svc_is_explained_in_plain_words() {
        let lifecycle = Lifecycle::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let of_web = listener.local_addr().unwrap();
        lifecycle.spawn("answer in HTTP/1.1", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                // What closes with something unread takes its answer back.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = Server::new(emend_proto::DESCRIPTOR_SET, Readiness::new(), Entropy::seeded(1))
            .serve(listener, &lifecycle)
            .unwrap();
        for (address, says) in [
            (of_web, "the server answers in HTTP/1.1, not gRPC"),
            (other, "does not know this call"),
        ] {
            let remote = Remote::new(&format!("http://{address}")).unwrap();
            let DeliveryError::Unavailable(why) = refused(remote, &lifecycle).await else {
                panic!("{address} is no learning-svc");
            };
            assert!(why.contains(says), "{why}");
        }
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn a_certificate_for_another_name_is_explained_in_plain_words() {
        let (authority, directory) = (Authority::new("ca"), tempfile::tempdir().unwrap());
        let at = |name: &str| directory.path().join(name);
        authority
            .issue(1, &["learning.example"])
            .write(directory.path(), "server");
        std::fs::write(at("ca.pem"), authority.pem()).unwrap();
        let files = TlsFiles {
            cert: at("server.pem"),
            key: at("server.key"),
            client_ca: None,
            client_crl: None,
        };
        let lifecycle = Lifecycle::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Server::new(emend_proto::DESCRIPTOR_SET, Readiness::new(), Entropy::seeded(1))
            .tls(Some(Arc::new(TlsServer::load(files).unwrap())))
            .serve(listener, &lifecycle)
            .unwrap();
        let remote = Remote::new(&format!("https://{address}")).unwrap();
        let remote = remote.tls(ClientTls::default().ca(at("ca.pem"))).unwrap();
        let refused = refused(remote, &lifecycle).await;
        let expected = "the server's certificate is not for 127.0.0.1, but for learning.example";
        assert_eq!(refused, DeliveryError::Unavailable(expected.to_owned()));
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }
}
