//! A server whose service does not end what it has begun.

use std::{
    future::pending,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_base::{Entropy, Error, Lifecycle};
use emend_proto::learning::v1::{
    Drain, ListNodesRequest, ListNodesResponse, ReportStatusRequest, ReportStatusResponse, SubscribeRequest,
    SubscribeResponse, subscribe_response,
    subscription_service_client::SubscriptionServiceClient,
    subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
};
use emend_serve::{
    Server,
    caller::{Caller, caller_of},
    health::Readiness,
    server::{deadline::deadline_of, trace_context::traceparent_of},
};
use futures::{Stream, StreamExt as _, stream};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};

pub(crate) const SERVICE: &str = "emend.learning.v1.SubscriptionService";
pub(crate) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Longer than anything here takes.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// More than a client's window plus everything buffered ahead.
pub(crate) const LARGE: usize = 1024 * 1024;

/// A service whose streams never end by themselves, not even when asked to.
#[derive(Default)]
struct Stubborn {
    /// How many messages the talkative stream was asked for.
    said: Arc<AtomicUsize>,
}

/// A node whose stream sends more than any socket holds.
pub(crate) const TALKATIVE: &str = "talkative";

type Updates = Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send>>;

#[tonic::async_trait]
impl SubscriptionService for Stubborn {
    type SubscribeStream = Updates;

    async fn subscribe(&self, request: Request<SubscribeRequest>) -> Result<Response<Updates>, Status> {
        if request
            .get_ref()
            .node
            .as_ref()
            .is_some_and(|node| node.id == TALKATIVE)
        {
            let drain = Drain {
                reason: "x".repeat(LARGE),
                ..Drain::default()
            };
            let message = SubscribeResponse {
                message: Some(subscribe_response::Message::Drain(drain)),
            };
            let said = Arc::clone(&self.said);
            let talk = stream::repeat_with(move || {
                said.fetch_add(1, Ordering::SeqCst);
                Ok(message.clone())
            });
            return Ok(Response::new(Box::pin(talk)));
        }
        Ok(Response::new(Box::pin(
            stream::iter([Ok(SubscribeResponse::default())]).chain(stream::pending()),
        )))
    }

    /// Fails with an internal error after checking what the layers passed on.
    async fn report_status(
        &self,
        request: Request<ReportStatusRequest>,
    ) -> Result<Response<ReportStatusResponse>, Status> {
        assert_eq!(caller_of(&request), Caller::anonymous());
        assert_eq!(
            traceparent_of(&request).map(|trace| trace.to_string()).as_deref(),
            Some(TRACEPARENT)
        );
        assert!(deadline_of(&request).is_some_and(|deadline| deadline <= Instant::now() + SOON));
        Err(Error::internal("the secret detail").into())
    }

    /// Never answers; if asked for a page, answers with a large one.
    async fn list_nodes(
        &self,
        request: Request<ListNodesRequest>,
    ) -> Result<Response<ListNodesResponse>, Status> {
        if request.get_ref().page_size == 0 {
            pending::<()>().await;
        }
        Ok(Response::new(ListNodesResponse {
            next_page_token: "x".repeat(LARGE),
            ..ListNodesResponse::default()
        }))
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) readiness: Readiness,
    /// How many messages the talkative streams have sent.
    pub(crate) said: Arc<AtomicUsize>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|server| server).await
    }

    pub(crate) async fn with(set_up: impl FnOnce(Server) -> Server) -> Self {
        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stubborn = Stubborn::default();
        let said = Arc::clone(&stubborn.said);
        let server = Server::new(readiness.clone(), Entropy::seeded(1))
            .add_service(SubscriptionServiceServer::new(stubborn), &["database", "tailer"]);
        let address = set_up(server).serve(listener, &lifecycle).unwrap();
        Self {
            address,
            lifecycle,
            readiness,
            said,
        }
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    pub(crate) async fn health(&self, service: &str) -> Result<ServingStatus, Code> {
        HealthClient::new(self.channel().await)
            .check(HealthCheckRequest {
                service: service.into(),
            })
            .await
            .map(|response| response.into_inner().status())
            .map_err(|status| status.code())
    }

    pub(crate) async fn watch(&self, service: &str) -> tonic::Streaming<HealthCheckResponse> {
        let request = HealthCheckRequest {
            service: service.into(),
        };
        let watching = HealthClient::new(self.channel().await).watch(request).await;
        watching.unwrap().into_inner()
    }

    pub(crate) async fn subscribe(&self) -> tonic::Streaming<SubscribeResponse> {
        let mut updates = SubscriptionServiceClient::new(self.channel().await)
            .subscribe(SubscribeRequest::default())
            .await
            .unwrap()
            .into_inner();
        updates.message().await.unwrap().expect("the first message");
        updates
    }
}

/// Waits until the other side has closed `stream`, discarding what it still sends.
pub(crate) async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // Reset or closed, it is gone either way.
    let _ = timeout(SOON, stream.read_to_end(&mut rest))
        .await
        .expect("the server closes the connection");
}
