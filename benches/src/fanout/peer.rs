//! The peer: the obvious implementation of the same service. A broadcast feeds a task per subscriber, which feeds the
//! subscriber's queue; tonic encodes each message per subscriber.

use std::{pin::Pin, sync::Arc};

use anyhow::Result;
use emend_proto::{
    common::v1::{Cause, Resource},
    learning::v1::{
        Change, Cursor, Digest, ListNodesRequest, ListNodesResponse, ReportStatusRequest,
        ReportStatusResponse, SnapshotEnd, SubscribeRequest, SubscribeResponse, Update, change,
        subscribe_response::Message,
        subscription_service_server::{SubscriptionService, SubscriptionServiceServer},
    },
};
use emend_wire::render::timestamp_from_micros;
use futures::Stream;
use tokio::{
    net::TcpListener,
    sync::{broadcast, mpsc},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, transport::Server};

use super::{process, put};

/// Maximum number of messages queued for a subscriber.
const QUEUE: usize = 256;

pub(super) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    process::tell(&listener.local_addr()?.to_string());
    let server = Server::builder()
        .tcp_nodelay(true)
        .add_service(SubscriptionServiceServer::new(Peer(broadcast::Sender::new(
            QUEUE,
        ))))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::select! {
        ended = server => Ok(ended?),
        () = process::until_input_ends() => Ok(()),
    }
}

struct Peer(broadcast::Sender<Arc<SubscribeResponse>>);

#[tonic::async_trait]
impl SubscriptionService for Peer {
    type SubscribeStream = Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send>>;

    async fn subscribe(
        &self,
        _: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let (queue, queued) = mpsc::channel(QUEUE);
        let mut updates = self.0.subscribe();
        let begun = Message::SnapshotEnd(SnapshotEnd::default());
        tokio::spawn(async move {
            let mut next = Ok(Arc::new(SubscribeResponse { message: Some(begun) }));
            while let Ok(message) = next {
                if queue.send(Ok((*message).clone())).await.is_err() {
                    return;
                }
                next = updates.recv().await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(queued))))
    }

    /// Publishes one update like Emend's.
    async fn report_status(
        &self,
        _: Request<ReportStatusRequest>,
    ) -> Result<Response<ReportStatusResponse>, Status> {
        // Fails only if there are no subscribers.
        let _ = self.0.send(Arc::new(update()));
        Ok(Response::new(ReportStatusResponse {}))
    }

    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        Err(Status::unimplemented("not of this benchmark"))
    }
}

fn update() -> SubscribeResponse {
    let (set, now) = (put(1_234), Some(timestamp_from_micros(1_767_225_600_123_456)));
    SubscribeResponse {
        message: Some(Message::Update(Update {
            from_revision: 1_233,
            to_revision: 1_234,
            changes: vec![Change {
                revision: 1_234,
                change: Some(change::Change::Put(Resource {
                    key: set.key.clone(),
                    revision: 1_234,
                    value: set.value,
                    value_checksum: 1,
                    committed_at: now,
                    etag: String::new(),
                })),
                cause: Cause::Operator.into(),
                committed_at: now,
                ..Default::default()
            }],
            last: true,
            cursor: Some(Cursor {
                epoch: "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into(),
                revision: 1_234,
                filter_hash: 1,
            }),
            digests: vec![Digest {
                namespace: super::NAMESPACE.into(),
                kind: 1,
                user_scoped: false,
                count: 100,
                hash: vec![1; 16].into(),
            }],
        })),
    }
}
