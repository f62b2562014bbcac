//! The transport to learning-svc: gRPC, or its replacement in a simulation.

use std::{fmt, time::Duration};

use emend_base::{
    bearer::TokenFile,
    tls::{Remote, why},
};
use emend_proto::{
    frame::Frame,
    learning::{
        encoded::subscription_service_client::SubscriptionServiceClient,
        v1::{ReportStatusRequest, SubscribeRequest},
    },
};
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use tonic::{Code, Request, Status, codec::CompressionEncoding, metadata::MetadataMap, transport::Channel};

use super::ended::Ended;

/// The largest message: a batch of 3 MiB, one larger resource, or the digests of thousands of namespaces.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens streams.
pub(super) trait Transport: Send + Sync + fmt::Debug {
    /// Opens a stream.
    fn open(&self, request: SubscribeRequest) -> BoxFuture<'_, Result<Opened, Ended>>;
}

/// An open stream.
pub(super) struct Opened {
    /// The server's messages.
    pub(super) messages: BoxStream<'static, Result<Frame, Status>>,
    /// Sends reports to the same server.
    pub(super) reports: Box<dyn Reports>,
}

/// Takes reports.
pub(super) trait Reports: Send + Sync {
    /// Sends one. The future does not borrow from this, so it can be awaited elsewhere.
    fn report(&self, report: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>>;
}

/// The gRPC transport.
#[derive(Debug)]
pub(super) struct Grpc {
    pub(super) remote: Remote,
    pub(super) headers: MetadataMap,
    pub(super) token: Option<TokenFile>,
}

struct Connected {
    client: SubscriptionServiceClient<Channel>,
    headers: MetadataMap,
    token: Option<TokenFile>,
}

fn call<T>(headers: &MetadataMap, token: Option<&TokenFile>, message: T) -> Request<T> {
    let mut request = Request::new(message);
    *request.metadata_mut() = headers.clone();
    if let Some(token) = token {
        token.authorize(&mut request);
    }
    request
}

/// Why no stream was opened. What no server of streams said has no status.
fn unanswered(remote: &Remote, status: Status) -> Ended {
    match (remote.misdirected(&status), status.code()) {
        (Some(why), Code::Unimplemented) => Status::unimplemented(why).into(),
        (Some(why), _) => Ended::failed(why),
        (None, _) => status.into(),
    }
}

impl Transport for Grpc {
    /// Opens a new connection each time, so that the name is resolved again: the server may have moved.
    fn open(&self, request: SubscribeRequest) -> BoxFuture<'_, Result<Opened, Ended>> {
        Box::pin(async move {
            let channel = self
                .remote
                .connect()
                .await
                .map_err(|error| Ended::failed(why(&error)))?;
            let mut client = SubscriptionServiceClient::new(channel)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .accept_compressed(CompressionEncoding::Zstd);
            let token = self.token.clone();
            let request = call(&self.headers, token.as_ref(), request);
            let messages = client
                .subscribe(request)
                .await
                .map_err(|status| unanswered(&self.remote, status))?
                .into_inner();
            let headers = self.headers.clone();
            Ok(Opened {
                messages: messages.boxed(),
                reports: Box::new(Connected {
                    client,
                    headers,
                    token,
                }),
            })
        })
    }
}

impl Reports for Connected {
    fn report(&self, report: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>> {
        let mut request = call(&self.headers, self.token.as_ref(), report);
        request.set_timeout(REPORT_TIMEOUT);
        let mut client = self.client.clone();
        Box::pin(async move { client.report_status(request).await.map(|_| ()) })
    }
}

#[cfg(any(test, feature = "simulation"))]
mod simulated {
    use std::sync::Arc;

    use super::{
        BoxFuture, Ended, Opened, ReportStatusRequest, Reports, Status, SubscribeRequest, Transport,
    };
    use crate::simulation::Server;

    impl Transport for Arc<dyn Server> {
        fn open(&self, request: SubscribeRequest) -> BoxFuture<'_, Result<Opened, Ended>> {
            Box::pin(async move {
                Ok(Opened {
                    messages: self.subscribe(request).await?,
                    reports: Box::new(Self::clone(self)),
                })
            })
        }
    }

    impl Reports for Arc<dyn Server> {
        fn report(&self, report: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>> {
            (**self).report(report)
        }
    }
}
