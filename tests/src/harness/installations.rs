//! A learning-svc behind which the installation can be exchanged. To each subscriber it sends a snapshot of one phrase,
//! whose verb is the installation's id.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use emend_core::{
    Digest, NORMALIZATION_VERSION,
    digest::{Item, value_checksum},
};
use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceValue},
    learning::v1::{
        self as pb, Bookmark, Cursor, ListNodesRequest, ListNodesResponse, ReportStatusRequest,
        ReportStatusResponse, SnapshotBegin, SnapshotChunk, SnapshotEnd, SnapshotReason, SubscribeRequest,
        SubscribeResponse,
        subscribe_response::Message,
        subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
    },
};
use futures::{StreamExt as _, stream, stream::BoxStream};
use prost::Message as _;
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status, transport::Server};

use super::says::{phrase_key, verb_value};

/// The phrase that each installation has learned.
pub const PHRASE: &str = "set up a csa";

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Installations {
    address: SocketAddr,
    answering: watch::Sender<String>,
    problems: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Installations {
    /// Starts it on a free port, as the installation with this id.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(id: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let answering = watch::Sender::new(id.to_owned());
        let problems = Arc::default();
        let service = Service {
            answering: answering.clone(),
            problems: Arc::clone(&problems),
        };
        let server = Server::builder()
            .add_service(SubscriptionServiceServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let serving =
            tokio::spawn(async move { server.await.expect("the server serves until it is dropped") });
        Self {
            address,
            answering,
            problems,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers as another installation from now on. Open streams end.
    pub fn exchange(&self, id: &str) {
        self.answering.send_replace(id.to_owned());
    }

    /// The problems that nodes have reported so far.
    pub fn problems(&self) -> Vec<String> {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct Service {
    answering: watch::Sender<String>,
    problems: Arc<Mutex<Vec<String>>>,
}

#[tonic::async_trait]
impl SubscriptionService for Service {
    type SubscribeStream = BoxStream<'static, Result<SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        _: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let mut answering = self.answering.subscribe();
        let id = answering.borrow_and_update().clone();
        let messages = snapshot(&id).map(|message| {
            Ok(SubscribeResponse {
                message: Some(message),
            })
        });
        let exchanged = async move {
            // An error means that the server ends.
            let _ = answering.changed().await;
        };
        let messages = stream::iter(messages)
            .chain(stream::pending())
            .take_until(exchanged);
        Ok(Response::new(messages.boxed()))
    }

    async fn report_status(
        &self,
        request: Request<ReportStatusRequest>,
    ) -> Result<Response<ReportStatusResponse>, Status> {
        let problem = request.into_inner().problem;
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem);
        Ok(Response::new(ReportStatusResponse {}))
    }

    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        Err(Status::unimplemented("nobody asks for nodes here"))
    }
}

fn snapshot(id: &str) -> [Message; 4] {
    let key = phrase_key(PHRASE);
    let value = ResourceValue {
        display: PHRASE.into(),
        normalization_version: NORMALIZATION_VERSION.cast_signed(),
        ..verb_value(id)
    };
    let resource = Resource {
        revision: 1,
        value_checksum: value_checksum(&value.encode_to_vec()),
        value: Some(value),
        key: Some(key.clone()),
        ..Resource::default()
    };
    let cursor = Some(Cursor {
        // Each installation has a log of its own.
        epoch: id.into(),
        revision: 1,
        filter_hash: 7,
    });
    let digests = vec![digest(&key, &resource)];
    [
        Message::SnapshotBegin(SnapshotBegin {
            revision: 1,
            reason: SnapshotReason::ForeignEpoch.into(),
            resource_count: 1,
            installation_id: id.into(),
        }),
        Message::SnapshotChunk(SnapshotChunk {
            resources: vec![resource],
            ..SnapshotChunk::default()
        }),
        Message::SnapshotEnd(SnapshotEnd {
            cursor: cursor.clone(),
            digests: digests.clone(),
        }),
        Message::Bookmark(Bookmark {
            cursor,
            digests,
            server_time: None,
            age: None,
        }),
    ]
}

fn digest(key: &ResourceKey, resource: &Resource) -> pb::Digest {
    let mut digest = Digest::default();
    digest.add(&Item {
        namespace: &key.namespace,
        kind: key.kind,
        key: &key.key,
        qualifier: &key.qualifier,
        user_id: &key.user_id,
        revision: resource.revision,
        value_checksum: resource.value_checksum,
    });
    pb::Digest {
        namespace: key.namespace.clone(),
        kind: key.kind,
        user_scoped: false,
        count: digest.count,
        hash: digest.bytes().to_vec().into(),
    }
}
