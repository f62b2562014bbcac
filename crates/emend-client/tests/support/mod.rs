//! A subscription service on a real socket whose messages are scripted by the test.

pub(crate) mod server_log;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use emend_client::{Events, Observed, SubscriberEvent};
use emend_proto::{
    frame::Frame,
    learning::{
        encoded::subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
        v1::{
            ListNodesRequest, ListNodesResponse, ReportStatusRequest, ReportStatusResponse, SubscribeRequest,
        },
    },
    wire::Message,
};
use prost::Message as _;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, async_trait, transport::Server};

use self::server_log::response;

/// Waits for the future, with a time limit.
pub(crate) async fn bounded<F: Future>(step: &str, future: F) -> F::Output {
    timeout(Duration::from_secs(20), future)
        .await
        .unwrap_or_else(|_| panic!("{step} did not come in time"))
}

/// Waits for an event for which `pick` returns a value.
pub(crate) async fn event<T>(
    step: &str,
    events: &mut Events,
    mut pick: impl FnMut(&SubscriberEvent) -> Option<T>,
) -> T {
    bounded(step, async {
        loop {
            match events.next().await {
                Some(Observed::Event(event)) => {
                    if let Some(picked) = pick(&event) {
                        return picked;
                    }
                }
                Some(Observed::Missed(missed)) => panic!("{missed} events were missed"),
                None => panic!("the subscriber ended before {step}"),
            }
        }
    })
    .await
}

/// A running fake.
pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    streams: mpsc::UnboundedReceiver<OpenStream>,
    reports: mpsc::UnboundedReceiver<ReportStatusRequest>,
    serving: JoinHandle<()>,
}

/// A stream that a node opened.
pub(crate) struct OpenStream {
    pub(crate) request: SubscribeRequest,
    messages: mpsc::Sender<Result<Frame, Status>>,
}

impl OpenStream {
    pub(crate) async fn send(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let frame = Frame(Bytes::from(response(message).encode_to_vec()));
            // Fails if the node has closed the stream, which is what some tests are about.
            let _ = self.messages.send(Ok(frame)).await;
        }
    }

    pub(crate) async fn fail(self, status: Status) {
        let _ = self.messages.send(Err(status)).await;
    }

    /// Waits until the node has closed the stream.
    pub(crate) async fn closed(&self) {
        bounded("the end of a stream", self.messages.closed()).await;
    }
}

impl FakeServer {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().expect("an address")).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (streams_in, streams) = mpsc::unbounded_channel();
        let (reports_in, reports) = mpsc::unbounded_channel();
        let fake = Fake(Arc::new(Mutex::new((streams_in, reports_in))));
        let serving = tokio::spawn(async move {
            let served = Server::builder()
                .add_service(SubscriptionServiceServer::new(fake))
                .serve_with_incoming(TcpListenerStream::new(listener));
            served.await.expect("serves");
        });
        Self {
            address,
            streams,
            reports,
            serving,
        }
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next stream that a node opens.
    pub(crate) async fn stream(&mut self) -> OpenStream {
        bounded("a stream", self.streams.recv())
            .await
            .expect("the server runs")
    }

    /// The next report for which `wanted` holds.
    pub(crate) async fn report(
        &mut self,
        wanted: impl Fn(&ReportStatusRequest) -> bool,
    ) -> ReportStatusRequest {
        bounded("a report", async {
            loop {
                let report = self.reports.recv().await.expect("the server runs");
                if wanted(&report) {
                    return report;
                }
            }
        })
        .await
    }

    /// Stops the server and closes its port.
    pub(crate) async fn stop(self) -> SocketAddr {
        self.serving.abort();
        let _ = self.serving.await;
        self.address
    }
}

type Outlets = (
    mpsc::UnboundedSender<OpenStream>,
    mpsc::UnboundedSender<ReportStatusRequest>,
);

struct Fake(Arc<Mutex<Outlets>>);

#[async_trait]
impl SubscriptionService for Fake {
    type SubscribeStream = ReceiverStream<Result<Frame, Status>>;

    async fn subscribe(
        &self,
        request: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let (messages, stream) = mpsc::channel(1024);
        let open = OpenStream {
            request: request.into_inner(),
            messages,
        };
        self.0
            .lock()
            .await
            .0
            .send(open)
            .map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn report_status(
        &self,
        request: Request<ReportStatusRequest>,
    ) -> Result<Response<ReportStatusResponse>, Status> {
        let sent = self.0.lock().await.1.send(request.into_inner());
        sent.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReportStatusResponse {}))
    }

    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }
}
