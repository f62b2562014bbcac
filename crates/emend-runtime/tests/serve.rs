//! A real server on a real socket: health, reflection, the edge of every RPC, and above all that it ends in time.

#![expect(clippy::unwrap_used, reason = "a test's helper fails like the test")]

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

use emend_proto::{
    frame::{Frame, FrameCodec},
    learning::v1::{
        Drain, ListNodesRequest, ListNodesResponse, NodeInfo, ReportStatusRequest, ReportStatusResponse,
        SubscribeRequest, SubscribeResponse, subscribe_response,
        subscription_service_client::SubscriptionServiceClient,
        subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
    },
};
use emend_runtime::{
    Entropy, Error, Lifecycle,
    admission::Patience,
    caller::{Caller, caller_of},
    deadline::deadline_of,
    health::{LIVENESS, Readiness},
    lifecycle::Shutdown,
    serve::Server,
    status::Explained,
    trace_context::traceparent_of,
};
use futures::{Stream, StreamExt as _, stream};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};
use tonic::{
    Code, Request, Response, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel,
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

const SERVICE: &str = "emend.learning.v1.SubscriptionService";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(30);

/// More than a client's window and all that is written ahead.
const LARGE: usize = 1024 * 1024;

/// A service whose streams never end by themselves, not even when asked to.
#[derive(Default)]
struct Stubborn {
    /// How often the talkative stream was asked for more.
    said: Arc<AtomicUsize>,
}

/// A stream that says more than any socket takes, if it is asked by that node.
const TALKATIVE: &str = "talkative";

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

    /// Never answers; asked for a page, answers with a large one.
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

struct Running {
    address: SocketAddr,
    lifecycle: Lifecycle,
    readiness: Readiness,
    said: Arc<AtomicUsize>,
}

impl Running {
    async fn start() -> Self {
        Self::with(|server| server).await
    }

    async fn with(set_up: impl FnOnce(Server) -> Server) -> Self {
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

/// A client whose windows have no end, and a road to it that is not read from while it is held up.
async fn held_up(server: &Running) -> (Channel, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (road, target) = (listener.local_addr().unwrap(), server.address);
    let (hold, mut paused) = watch::channel(false);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let (mut requests, mut answers) = client.into_split();
        let (mut said, mut heard) = TcpStream::connect(target).await.unwrap().into_split();
        tokio::spawn(async move { tokio::io::copy(&mut requests, &mut heard).await });
        let mut buffer = vec![0; LARGE];
        loop {
            paused.wait_for(|paused| !paused).await.unwrap();
            let count = said.read(&mut buffer).await.unwrap_or(0);
            if count == 0 || answers.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    });
    let channel = Channel::from_shared(format!("http://{road}"))
        .unwrap()
        .initial_stream_window_size(i32::MAX.cast_unsigned())
        .initial_connection_window_size(i32::MAX.cast_unsigned())
        .connect()
        .await
        .unwrap();
    (channel, hold)
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_waited_for_either() {
    let server = Running::start().await;
    let (channel, hold) = held_up(&server).await;
    let request = SubscribeRequest {
        node: Some(NodeInfo {
            id: TALKATIVE.into(),
            ..NodeInfo::default()
        }),
        ..SubscribeRequest::default()
    };
    let mut updates = SubscriptionServiceClient::new(channel)
        .subscribe(request)
        .await
        .unwrap()
        .into_inner();
    updates.message().await.unwrap().expect("a message");
    hold.send_replace(true);
    // Until no more fits into any socket: then the server writes, and does not read.
    let full = async {
        loop {
            let before = server.said.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
            if server.said.load(Ordering::SeqCst) == before {
                return;
            }
        }
    };
    timeout(SOON, full).await.unwrap();
    assert_eq!(server.lifecycle.shutdown(SOON).await, Shutdown::Graceful);
}

fn impatient(server: Server) -> Server {
    server.max_calls(4).patience(Patience {
        request: Duration::from_millis(300),
        response: Duration::from_millis(300),
    })
}

#[tokio::test]
async fn calls_that_are_never_finished_give_their_places_back() {
    let server = Running::with(impatient).await;
    let channel = server.channel().await;
    let stalled: Vec<_> = (0..8)
        .map(|_| {
            let mut grpc = Grpc::new(channel.clone());
            tokio::spawn(async move {
                grpc.ready().await.unwrap();
                let path = PathAndQuery::from_static("/emend.learning.v1.SubscriptionService/ListNodes");
                let codec = FrameCodec::<Frame, Frame>::default();
                let request = Request::new(stream::pending::<Frame>());
                let answer = grpc.streaming(request, path, codec).await?;
                answer.into_inner().message().await.map(drop)
            })
        })
        .collect();
    let mut codes = Vec::new();
    for stalled in stalled {
        codes.push(timeout(SOON, stalled).await.unwrap().unwrap().unwrap_err().code());
    }
    codes.sort_by_key(|code| i32::from(*code));
    let refused = codes.partition_point(|code| *code == Code::ResourceExhausted);
    // One of the four places is for somebody else.
    assert!(codes.len() - refused >= 3, "{codes:?}");
    assert!(
        codes[refused..].iter().all(|code| *code == Code::Aborted),
        "{codes:?}"
    );
    let page = ListNodesRequest {
        page_size: 1,
        ..ListNodesRequest::default()
    };
    assert!(
        SubscriptionServiceClient::new(channel)
            .list_nodes(page)
            .await
            .is_ok()
    );
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn responses_that_are_never_read_give_their_places_back() {
    let server = Running::with(impatient).await;
    let page = ListNodesRequest {
        page_size: 1,
        ..ListNodesRequest::default()
    };
    let narrow = Channel::from_shared(format!("http://{}", server.address))
        .unwrap()
        .initial_stream_window_size(32 * 1024)
        .connect()
        .await
        .unwrap();
    let mut grpc = Grpc::new(narrow);
    let mut unread = Vec::new();
    for _ in 0..3 {
        grpc.ready().await.unwrap();
        let path = PathAndQuery::from_static("/emend.learning.v1.SubscriptionService/ListNodes");
        let codec = FrameCodec::<Frame, Frame>::default();
        let request = Request::new(stream::iter([Frame(page.encode_to_vec().into())]));
        unread.push(grpc.streaming(request, path, codec).await.unwrap().into_inner());
    }
    // From another connection, but the same address: of the four places one is for somebody else.
    let mut other = SubscriptionServiceClient::new(server.channel().await);
    let answered = async {
        while other.list_nodes(page.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, answered).await.unwrap();
    // They were told so, and what waited for them is gone.
    for mut unread in unread {
        let ended = unread.message().await.map(drop).unwrap_err();
        assert_eq!(ended.code(), Code::Cancelled);
    }
    server.lifecycle.shutdown(SOON).await;
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
