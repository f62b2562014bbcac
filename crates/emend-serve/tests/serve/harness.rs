//! A server whose service does not end what it has begun.

use std::{
    convert::Infallible,
    future::{pending, ready},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use emend_base::{Entropy, Error, Lifecycle};
use emend_serve::{
    Server,
    caller::{Caller, caller_of},
    health::Readiness,
    server::{deadline::deadline_of, trace_context::traceparent_of},
};
use futures::{Stream, StreamExt as _, future::BoxFuture, stream};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client,
    codegen::http::uri::PathAndQuery,
    server::{Grpc, NamedService},
    transport::Channel,
};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use crate::library::{FOLLOW, IMPORT, LIST, REPORT, SERVICE, Text, descriptors};

pub(crate) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Longer than anything here takes.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// More than a client's window plus everything buffered ahead.
pub(crate) const LARGE: usize = 1024 * 1024;

/// A service whose streams never end by themselves, not even when asked to.
#[derive(Clone, Default)]
struct EndlessService {
    /// How many messages the talkative stream was asked for.
    messages: Arc<AtomicUsize>,
}

/// Asks for a stream that sends more than any socket holds.
pub(crate) const TALKATIVE: &str = "talkative";

type Updates = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

impl EndlessService {
    fn follow(&self, request: &Request<Text>) -> Updates {
        if request.get_ref().text != TALKATIVE {
            return Box::pin(stream::iter([Ok(Text::default())]).chain(stream::pending()));
        }
        let message = Text {
            text: "x".repeat(LARGE),
        };
        let messages = Arc::clone(&self.messages);
        Box::pin(stream::repeat_with(move || {
            messages.fetch_add(1, Ordering::SeqCst);
            Ok(message.clone())
        }))
    }
}

/// Fails with an internal error after checking what the layers passed on.
fn report(request: &Request<Text>) -> Status {
    assert_eq!(caller_of(request), Caller::anonymous());
    assert_eq!(
        traceparent_of(request).map(|trace| trace.to_string()).as_deref(),
        Some(TRACEPARENT)
    );
    assert!(deadline_of(request).is_some_and(|deadline| deadline <= Instant::now() + SOON));
    Error::internal("the secret detail").into()
}

/// Never answers; if asked for something, answers with something large.
async fn list(request: Request<Text>) -> Response<Text> {
    if request.get_ref().text.is_empty() {
        pending::<()>().await;
    }
    Response::new(Text {
        text: "x".repeat(LARGE),
    })
}

impl NamedService for EndlessService {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for EndlessService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (service, mut grpc) = (self.clone(), Grpc::new(ProstCodec::<Text, Text>::default()));
        Box::pin(async move {
            Ok(match request.uri().path() {
                FOLLOW => {
                    let follow = service_fn(move |request: Request<Text>| {
                        ready(Ok(Response::new(service.follow(&request))))
                    });
                    grpc.server_streaming(follow, request).await
                }
                REPORT => {
                    let report = service_fn(|request: Request<Text>| ready(Err(report(&request))));
                    grpc.unary(report, request).await
                }
                LIST => {
                    let list = service_fn(async |request: Request<Text>| Ok(list(request).await));
                    grpc.unary(list, request).await
                }
                IMPORT => {
                    let import = service_fn(async |request: Request<Streaming<Text>>| {
                        let mut messages = request.into_inner();
                        while messages.message().await?.is_some() {}
                        Ok(Response::new(Text::default()))
                    });
                    grpc.client_streaming(import, request).await
                }
                path => Status::unimplemented(path.to_owned()).into_http(),
            })
        })
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) readiness: Readiness,
    /// How many messages the talkative streams have sent.
    pub(crate) messages: Arc<AtomicUsize>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|server| server).await
    }

    pub(crate) async fn with(set_up: impl FnOnce(Server) -> Server) -> Self {
        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stubborn = EndlessService::default();
        let messages = Arc::clone(&stubborn.messages);
        let server = Server::new(descriptors(), readiness.clone(), Entropy::seeded(1))
            .add_service(stubborn, &["database", "tailer"]);
        let address = set_up(server).serve(listener, &lifecycle).unwrap();
        Self {
            address,
            lifecycle,
            readiness,
            messages,
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

    pub(crate) async fn follow(&self) -> tonic::Streaming<Text> {
        let mut updates = follow(self.channel().await, Text::default()).await.unwrap();
        updates.message().await.unwrap().expect("the first message");
        updates
    }
}

/// Calls [`FOLLOW`].
pub(crate) async fn follow(channel: Channel, request: Text) -> Result<Streaming<Text>, Status> {
    let (mut grpc, codec) = (client::Grpc::new(channel), ProstCodec::<Text, Text>::default());
    grpc.ready().await.unwrap();
    let followed = grpc.server_streaming(Request::new(request), PathAndQuery::from_static(FOLLOW), codec);
    Ok(followed.await?.into_inner())
}

/// Waits until the other side has closed `stream`, discarding what it still sends.
pub(crate) async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // Reset or closed, it is gone either way.
    let _ = timeout(SOON, stream.read_to_end(&mut rest))
        .await
        .expect("the server closes the connection");
}
