//! The seam for the deterministic simulation: a server without a connection. For tests only.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use emend_proto::{
    frame::Frame,
    learning::v1::{Cursor, ReportStatusRequest, SnapshotBegin, SnapshotEnd, SubscribeRequest},
    wire::{Message, SubscribeResponse},
};
use futures::{FutureExt as _, StreamExt as _, future, future::BoxFuture, stream, stream::BoxStream};
use prost::Message as _;
use tonic::Status;

use crate::subscriber::SubscriberBuilder;

/// The messages of a stream, or the error that ended it.
pub type Messages = BoxStream<'static, Result<Frame, Status>>;

/// What a subscriber talks to in place of a learning-svc at an address.
pub trait Server: Send + Sync + fmt::Debug + 'static {
    /// Opens a stream.
    fn subscribe(&self, request: SubscribeRequest) -> BoxFuture<'static, Result<Messages, Status>>;

    /// Takes a report.
    fn report(&self, report: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>>;
}

/// Sets up the node `node_id` subscribed to `server`, like [`Subscriber::builder`](crate::Subscriber::builder).
pub fn builder(server: Arc<dyn Server>, node_id: &str) -> SubscriberBuilder {
    SubscriberBuilder::new("http://simulated.invalid".into(), node_id.to_owned()).server(server)
}

/// Has a node that is set up talk to `server` instead of the one at its address.
pub fn served_by(builder: SubscriberBuilder, server: Arc<dyn Server>) -> SubscriberBuilder {
    builder.server(server)
}

/// A server whose streams stay open and say nothing.
#[derive(Debug, Clone, Copy)]
pub enum Silent {
    /// From the beginning.
    AtOnce,
    /// After a snapshot in which nothing is learned.
    AfterSnapshot,
}

impl Silent {
    fn messages(self) -> Vec<Message> {
        let (revision, epoch) = (1, "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20");
        match self {
            Self::AtOnce => Vec::new(),
            Self::AfterSnapshot => vec![
                Message::SnapshotBegin(SnapshotBegin {
                    revision,
                    installation_id: "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into(),
                    ..SnapshotBegin::default()
                }),
                Message::SnapshotEnd(SnapshotEnd {
                    cursor: Some(Cursor {
                        epoch: epoch.into(),
                        revision,
                        filter_hash: 0,
                    }),
                    digests: Vec::new(),
                }),
            ],
        }
    }
}

impl Server for Silent {
    fn subscribe(&self, _: SubscribeRequest) -> BoxFuture<'static, Result<Messages, Status>> {
        let frames = self.messages().into_iter().map(|message| {
            let response = SubscribeResponse {
                message: Some(message),
            };
            Ok(Frame(Bytes::from(response.encode_to_vec())))
        });
        let messages = stream::iter(frames).chain(stream::pending()).boxed();
        future::ready(Ok(messages)).boxed()
    }

    fn report(&self, _: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>> {
        future::ready(Ok(())).boxed()
    }
}
