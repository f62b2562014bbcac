//! A learning-svc that permanently refuses every event, as an older version refuses events of a kind that it does not
//! know.

use std::net::SocketAddr;

use emend_proto::{
    common::v1::ItemStatus,
    learning::v1::{
        Event, EventResult, GetStandingsRequest, GetStandingsResponse, IngestRequest, IngestResponse,
        event_result,
        ingest_service_server::{IngestService, IngestServiceServer},
    },
};
use futures::{StreamExt as _, stream::BoxStream};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Response, Status, Streaming, transport::Server};

/// The refusal's message.
pub const REFUSAL: &str = "no such kind of event";

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Refusing {
    address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

impl Refusing {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let server = Server::builder()
            .add_service(IngestServiceServer::new(RefusingService))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let serving =
            tokio::spawn(async move { server.await.expect("the server serves until it is dropped") });
        Self {
            address,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Debug)]
struct RefusingService;

#[tonic::async_trait]
impl IngestService for RefusingService {
    type IngestStream = BoxStream<'static, Result<IngestResponse, Status>>;

    async fn ingest(
        &self,
        request: Request<Streaming<IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let batches = request.into_inner();
        let answers = batches.map(|batch| {
            let results = batch?.events.iter().map(refuse).collect();
            Ok(IngestResponse {
                results,
                ..Default::default()
            })
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn get_standings(
        &self,
        _request: Request<GetStandingsRequest>,
    ) -> Result<Response<GetStandingsResponse>, Status> {
        Err(Status::unimplemented("as by an older version"))
    }
}

fn refuse(event: &Event) -> EventResult {
    let error = ItemStatus {
        code: Code::InvalidArgument.into(),
        message: REFUSAL.into(),
        details: Vec::new(),
    };
    EventResult {
        event_id: event.event_id.clone(),
        result: Some(event_result::Result::Error(error)),
    }
}
