//! The subscription service: subscribe, report status, list nodes.
//!
//! [`SubscriptionServer`] answers `Subscribe` itself: a batch encoded once goes to every subscriber's connection as the
//! same bytes, without a copy or a buffer per stream ([`body`]). tonic handles the other methods and everything about
//! the protocol but the stream's body.

mod body;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod parse;
#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use emend_base::Error;
use emend_proto::{
    frame::{Frame, FrameCodec},
    learning::{
        encoded::subscription_service_server::{SubscriptionService, SubscriptionServiceServer as Generated},
        v1 as pb,
    },
};
use emend_serve::{auth::Call, caller::caller_of, fair_semaphore::ClientKey};
use emend_stream::encode::Compression;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use tonic::{
    Request, Response, Status,
    body::Body,
    codec::{Codec as _, Streaming},
    metadata::MetadataMap,
    server::NamedService,
};
use tower::Service;

use self::body::SessionBody;
use crate::{
    roles::open,
    stream::{Session, Stream},
};

/// How a message is compressed.
const ENCODING: &str = "grpc-encoding";
/// How messages to the client may be compressed.
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";
const ZSTD: &str = "zstd";
const SUBSCRIBE: &str = "/emend.learning.v1.SubscriptionService/Subscribe";
/// More than any valid request needs, in bytes: a thousand namespaces, sixteen labels.
const MAX_REQUEST: usize = 256 * 1024;

/// The methods' handlers.
#[derive(Clone)]
pub struct Subscriptions {
    stream: Stream,
}

impl Subscriptions {
    /// Serves from `stream`.
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream }
    }

    async fn open(&self, request: Request<pb::SubscribeRequest>) -> Result<Session, Error> {
        let who = (caller_of(&request), ClientKey::of_request(&request));
        let Call { access, message } = open(request)?;
        let subscription = parse::subscription(message, who, &access)?;
        self.stream.subscribe(subscription).await
    }
}

#[tonic::async_trait]
impl SubscriptionService for Subscriptions {
    type SubscribeStream = BoxStream<'static, Result<Frame, Status>>;

    async fn subscribe(
        &self,
        request: Request<pb::SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let session = self.open(request).await?;
        let frames = session.map(|next| Ok(Frame(next?.message())));
        Ok(Response::new(frames.boxed()))
    }

    async fn report_status(
        &self,
        request: Request<pb::ReportStatusRequest>,
    ) -> Result<Response<pb::ReportStatusResponse>, Status> {
        let who = (caller_of(&request), ClientKey::of_request(&request));
        let (node_id, report) = parse::report(open(request)?.message).map_err(Error::from)?;
        let nodes = self.stream.nodes();
        if let Ok(state) = self.stream.state() {
            nodes.check_applied(&report, state.place()).await?;
        }
        nodes.report(who, node_id, &report).await?;
        Ok(Response::new(pb::ReportStatusResponse {}))
    }

    async fn list_nodes(
        &self,
        request: Request<pb::ListNodesRequest>,
    ) -> Result<Response<pb::ListNodesResponse>, Status> {
        let query = parse::list_nodes(open(request)?.message).map_err(Error::from)?;
        Ok(Response::new(self.stream.nodes().list(query).await?))
    }
}

/// The service, to be added to a server.
#[derive(Clone)]
pub struct SubscriptionServer {
    own: Subscriptions,
    generated: Generated<Subscriptions>,
}

impl SubscriptionServer {
    /// Serves from `stream`.
    pub fn new(stream: Stream) -> Self {
        let own = Subscriptions::new(stream);
        Self {
            generated: Generated::new(own.clone()),
            own,
        }
    }
}

impl std::fmt::Debug for SubscriptionServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubscriptionServer").finish_non_exhaustive()
    }
}

impl NamedService for SubscriptionServer {
    const NAME: &'static str = "emend.learning.v1.SubscriptionService";
}

impl Service<http::Request<Body>> for SubscriptionServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.generated, cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        // Compressed requests go to tonic, which refuses them as the protocol prescribes.
        let plain = request
            .headers()
            .get(ENCODING)
            .is_none_or(|encoding| encoding == "identity");
        if request.uri().path() != SUBSCRIBE || !plain {
            return Box::pin(self.generated.call(request));
        }
        let own = self.own.clone();
        let compression = accepted(request.headers());
        Box::pin(async move {
            Ok(match subscribe(own, request).await {
                Ok(session) => streaming(session, compression),
                Err(status) => status.into_http(),
            })
        })
    }
}

/// Reads the one request message and opens the stream.
async fn subscribe(own: Subscriptions, request: http::Request<Body>) -> Result<Session, Status> {
    let (parts, body) = request.into_parts();
    let decoder = FrameCodec::<Frame, pb::SubscribeRequest>::default().decoder();
    let mut messages = Streaming::new_request(decoder, body, None, Some(MAX_REQUEST));
    let message = messages
        .message()
        .await?
        .ok_or_else(|| Status::internal("Missing request message."))?;
    let metadata = MetadataMap::from_headers(parts.headers);
    Ok(own
        .open(Request::from_parts(metadata, parts.extensions, message))
        .await?)
}

/// The best compression that the client takes.
fn accepted(headers: &HeaderMap) -> Compression {
    let mut offers = headers.get_all(ACCEPT_ENCODING).iter();
    let takes = |offer: &HeaderValue| {
        offer
            .to_str()
            .is_ok_and(|offer| offer.split(',').any(|name| name.trim() == ZSTD))
    };
    if offers.any(takes) {
        Compression::Zstd
    } else {
        Compression::Identity
    }
}

fn streaming(session: Session, compression: Compression) -> http::Response<Body> {
    let mut response = http::Response::new(Body::new(SessionBody::new(session, compression)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    if compression == Compression::Zstd {
        headers.insert(ENCODING, HeaderValue::from_static(ZSTD));
    }
    response
}
