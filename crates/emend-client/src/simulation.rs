//! The seam for the deterministic simulation: a server without a connection. For tests only.

use std::{fmt, sync::Arc};

use emend_proto::{
    frame::Frame,
    learning::v1::{ReportStatusRequest, SubscribeRequest},
};
use futures::{future::BoxFuture, stream::BoxStream};
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
