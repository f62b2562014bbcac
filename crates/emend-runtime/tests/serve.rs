//! A real server on a real socket: health, reflection, the edge of every RPC, and above all that it ends in time.

#![expect(clippy::unwrap_used, reason = "a test's helper fails like the test")]

use std::{future::pending, net::SocketAddr, pin::Pin, time::Duration};

use emend_proto::learning::v1::{
    ListNodesRequest, ListNodesResponse, ReportStatusRequest, ReportStatusResponse, SubscribeRequest,
    SubscribeResponse,
    subscription_service_client::SubscriptionServiceClient,
    subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
};
use emend_runtime::{
    Entropy, Error, Lifecycle,
    caller::{Caller, caller_of},
    deadline::deadline_of,
    health::{LIVENESS, Readiness},
    lifecycle::Shutdown,
    serve::Server,
    status::Explained,
    trace_context::traceparent_of,
};
use futures::{Stream, StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

const SERVICE: &str = "emend.learning.v1.SubscriptionService";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(30);

/// A service whose streams never end by themselves, not even when asked to.
struct Stubborn;

type Updates = Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send>>;

#[tonic::async_trait]
impl SubscriptionService for Stubborn {
    type SubscribeStream = Updates;

    async fn subscribe(&self, _: Request<SubscribeRequest>) -> Result<Response<Updates>, Status> {
        Ok(Response::new(Box::pin(
            stream::iter([Ok(SubscribeResponse::default())]).chain(stream::pending()),
        )))
    }

    /// Fails inside, after having looked at what the layers found out.
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

    /// Never answers.
    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        pending().await
    }
}

struct Running {
    address: SocketAddr,
    lifecycle: Lifecycle,
    readiness: Readiness,
}

impl Running {
    async fn start() -> Self {
        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Server::new(readiness.clone(), Entropy::seeded(1))
            .add_service(SubscriptionServiceServer::new(Stubborn), &["database", "tailer"])
            .serve(listener, &lifecycle)
            .unwrap();
        Self {
            address,
            lifecycle,
            readiness,
        }
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    async fn health(&self, service: &str) -> Result<ServingStatus, Code> {
        HealthClient::new(self.channel().await)
            .check(HealthCheckRequest {
                service: service.into(),
            })
            .await
            .map(|response| response.into_inner().status())
            .map_err(|status| status.code())
    }

    async fn subscribe(&self) -> tonic::Streaming<SubscribeResponse> {
        let mut updates = SubscriptionServiceClient::new(self.channel().await)
            .subscribe(SubscribeRequest::default())
            .await
            .unwrap()
            .into_inner();
        updates.message().await.unwrap().expect("the first message");
        updates
    }
}

/// Waits until the other side has closed `stream`, discarding what it still says.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // Reset or closed, either is gone.
    let _ = timeout(SOON, stream.read_to_end(&mut rest))
        .await
        .expect("the server closes the connection");
}

#[tokio::test]
async fn connections_that_say_nothing_or_half_a_preface_do_not_hold_up_a_soft_stop() {
    let server = Running::start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let mut half_open = TcpStream::connect(server.address).await.unwrap();
    half_open.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    // One request, so that both have certainly been accepted.
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));

    let started = Instant::now();
    assert_eq!(
        server.lifecycle.shutdown(Duration::from_secs(10)).await,
        Shutdown::Graceful
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    closed(idle).await;
    closed(half_open).await;
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "the listener is closed"
    );
}

#[tokio::test]
async fn a_client_that_never_answers_the_settings_is_gone_at_the_hard_deadline() {
    let server = Running::start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let mut settings = [0; 9];
    silent.read_exact(&mut settings).await.unwrap();

    let started = Instant::now();
    server.lifecycle.shutdown(Duration::from_millis(300)).await;
    assert!(started.elapsed() < Duration::from_secs(3));
    closed(silent).await;
}

#[tokio::test]
async fn streams_and_calls_that_do_not_end_are_cut_at_the_hard_deadline() {
    let server = Running::start().await;
    let mut updates = server.subscribe().await;
    let mut client = SubscriptionServiceClient::new(server.channel().await);
    let call = tokio::spawn(async move { client.list_nodes(ListNodesRequest::default()).await });
    let mut watching = HealthClient::new(server.channel().await)
        .watch(HealthCheckRequest {
            service: SERVICE.into(),
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );

    let started = Instant::now();
    assert_eq!(
        server.lifecycle.shutdown(Duration::from_millis(300)).await,
        Shutdown::Forced
    );
    let took = started.elapsed();
    assert!(
        (Duration::from_millis(300)..Duration::from_secs(3)).contains(&took),
        "{took:?}"
    );
    assert!(
        timeout(SOON, updates.message()).await.unwrap().is_err(),
        "the stream is cut"
    );
    assert!(
        timeout(SOON, call).await.unwrap().unwrap().is_err(),
        "the call is cut"
    );
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );
    assert!(
        matches!(watching.message().await, Ok(None)),
        "the watch ended properly"
    );
}

#[tokio::test]
async fn a_stream_in_progress_may_end_within_the_grace() {
    let server = Running::start().await;
    let updates = server.subscribe().await;
    let lifecycle = server.lifecycle.clone();
    let stopping = tokio::spawn(async move { lifecycle.shutdown(SOON).await });
    server.lifecycle.soft().cancelled().await;
    drop(updates);
    assert_eq!(
        timeout(SOON, stopping).await.unwrap().unwrap(),
        Shutdown::Graceful
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_preface_is_closed_after_a_while() {
    let server = Running::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    // No time-out of our own: time stands still until the server's is the next to come.
    let said = idle.read_to_end(&mut Vec::new()).await;
    assert!(matches!(said, Ok(0) | Err(_)), "{said:?}");
    assert!(!server.lifecycle.is_stopping());
}

#[tokio::test]
async fn a_client_that_does_not_answer_the_farewell_is_not_waited_for() {
    let server = Running::start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    // All that HTTP/2 begins with, and settings; the server's own come back.
    silent
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    assert!(timeout(SOON, silent.read_u8()).await.unwrap().is_ok());
    assert_eq!(server.lifecycle.shutdown(SOON).await, Shutdown::Graceful);
}

#[tokio::test]
async fn health_follows_the_checks_and_liveness_does_not() {
    let server = Running::start().await;
    let mut watching = HealthClient::new(server.channel().await)
        .watch(HealthCheckRequest {
            service: SERVICE.into(),
        })
        .await
        .unwrap()
        .into_inner();
    let mut seen = async || {
        timeout(SOON, watching.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .status()
    };
    assert_eq!(seen().await, ServingStatus::NotServing);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::NotServing));
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));

    server.readiness.set("database", true);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::NotServing));
    server.readiness.set("tailer", true);
    assert_eq!(seen().await, ServingStatus::Serving);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::Serving));

    server.readiness.set("database", false);
    assert_eq!(seen().await, ServingStatus::NotServing);
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));
    assert_eq!(server.health("emend.Unknown").await, Err(Code::NotFound));
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_unknown_service_can_be_watched_and_is_unknown() {
    let server = Running::start().await;
    let mut watching = HealthClient::new(server.channel().await)
        .watch(HealthCheckRequest {
            service: "emend.Unknown".into(),
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::ServiceUnknown
    );
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn handlers_see_caller_deadline_and_trace_and_internals_stay_inside() {
    let server = Running::start().await;
    let mut request = Request::new(ReportStatusRequest::default());
    request.set_timeout(SOON);
    request
        .metadata_mut()
        .insert("traceparent", TRACEPARENT.parse().unwrap());
    request
        .metadata_mut()
        .insert("x-request-id", "mine-7".parse().unwrap());
    let status = SubscriptionServiceClient::new(server.channel().await)
        .report_status(request)
        .await
        .unwrap_err();

    let seen = Explained::from(&status);
    assert_eq!(
        (seen.code, seen.message.as_str()),
        (Code::Internal, "internal error")
    );
    assert_eq!(seen.request_id.as_deref(), Some("mine-7"));
    assert_eq!(status.metadata().get("x-request-id").unwrap(), "mine-7");
    assert!(!format!("{status:?}").contains("secret"));
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let server = Running::start().await;
    let mut client =
        emend_proto::learning::v1::policy_service_client::PolicyServiceClient::new(server.channel().await);
    let status = client
        .get_policy(emend_proto::learning::v1::GetPolicyRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn both_versions_of_reflection_list_what_is_served_and_nothing_else() {
    use tonic_reflection::pb::{v1, v1alpha};

    let server = Running::start().await;
    let list = stream::iter([v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    }]);
    let mut answers = v1::server_reflection_client::ServerReflectionClient::new(server.channel().await)
        .server_reflection_info(list)
        .await
        .unwrap()
        .into_inner();
    let Some(v1::server_reflection_response::MessageResponse::ListServicesResponse(listed)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("a list of services");
    };
    let mut names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            SERVICE,
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection"
        ]
    );

    for symbol in [
        SERVICE,
        "emend.common.v1.Resource",
        "google.protobuf.Timestamp",
        "grpc.health.v1.Health",
    ] {
        let ask = stream::iter([v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(
                v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(symbol.into()),
            ),
        }]);
        let mut answers =
            v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel().await)
                .server_reflection_info(ask)
                .await
                .unwrap()
                .into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response;
        assert!(
            matches!(
                answer,
                Some(v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(_))
            ),
            "{symbol}: {answer:?}"
        );
    }
    server.lifecycle.shutdown(SOON).await;
}
