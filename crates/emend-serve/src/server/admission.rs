//! Admission control: how many calls a server takes on at once, and how many bytes they may hold
//! ([`call_bytes`](crate::server::call_bytes)). A call beyond that is refused at once, with a hint when to retry. So the
//! work waiting inside, for whatever reason, is bounded, and so is its memory. No single client can take all permits
//! ([`fair_semaphore`](crate::fair_semaphore)).
//!
//! A call counts until its response has been handed to the connection, so also while its client does not read; but a
//! client may go no longer than [`ClientTimeouts::response`](crate::server::bounds::ClientTimeouts::response) without
//! reading anything. A call that answers with a long-lived stream counts until the stream has begun; streams bound
//! themselves. Health checks are counted apart from calls, and so are health watches and reflection, which count for as
//! long as they last: health is reported however many calls there are.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use emend_base::error::Error;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use crate::{
    fair_semaphore::{ClientKey, FairSemaphore, Permit},
    methods::Methods,
    server::{
        SEND_BUFFER,
        bounds::Bounds,
        call_bytes::{CallBudget, CallBytes, Kind},
        unread::Reading,
    },
};

/// The path of health checks.
pub(crate) const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
/// The prefix of the paths that every server adds to its services: health checks and reflection.
const BESIDE: &str = "/grpc.";
/// How many health checks may be in progress at once. They wait for nothing.
const MAX_CHECKS: usize = 1_024;
/// How many health watches and reflection calls may be open at once.
pub(crate) const MAX_WATCHES: usize = 4_096;
/// How long refused callers are asked to wait before retrying.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// A response is handed to the connection in pieces of at most this many bytes, so the call is not over while a client
/// that does not read has more than two pieces left to read.
const PIECE: usize = SEND_BUFFER;

/// Bounds the calls in progress. Clones, and the services they make, share the bound.
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    calls: FairSemaphore,
    checks: FairSemaphore,
    watches: FairSemaphore,
    holdings: CallBudget,
    patience: Duration,
    methods: Methods,
}

impl AdmissionLayer {
    /// Admits as many calls, holding as many bytes, as the bounds say. A call that answers with a single message is
    /// abandoned if its client reads nothing of it for
    /// [`ClientTimeouts::response`](crate::server::bounds::ClientTimeouts::response).
    pub(crate) fn new(bounds: &Bounds, methods: Methods) -> Self {
        Self {
            calls: FairSemaphore::of(bounds.calls),
            checks: FairSemaphore::of(MAX_CHECKS),
            watches: FairSemaphore::of(MAX_WATCHES),
            holdings: CallBudget::of(bounds.bytes),
            patience: bounds.patience.response,
            methods,
        }
    }
}

type Data = <Body as HttpBody>::Data;
type Next = Poll<Option<Result<Frame<Data>, Status>>>;

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Admission {
            inner,
            bound: self.clone(),
        }
    }
}

/// See [`AdmissionLayer`].
#[derive(Debug, Clone)]
pub struct Admission<S> {
    inner: S,
    bound: AdmissionLayer,
}

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let method = self.bound.methods.at(path);
        let (room, lasts) = match path {
            HEALTH_CHECK => (&self.bound.checks, false),
            path if path.starts_with(BESIDE) => (&self.bound.watches, true),
            _ => (&self.bound.calls, method.response_is_stream),
        };
        let is_watch = lasts && path.starts_with(BESIDE);
        let kind = if method.request_is_stream {
            Kind::Stream
        } else {
            Kind::Message
        };
        let client = ClientKey::in_extensions(request.extensions());
        let Some(place) = room.try_acquire(client.clone()) else {
            return Box::pin(async { Ok(Status::from(too_many()).into_http()) });
        };
        let holding = match self.bound.holdings.begin(client, request.headers()) {
            Ok(holding) => holding,
            Err(error) => return Box::pin(async move { Ok(Status::from(error).into_http()) }),
        };
        let patience = self.bound.patience;
        let response = self.inner.call(request.map(|body| holding.request(body, kind)));
        Box::pin(async move {
            let response = response.await?;
            if lasts {
                // The stream bounds itself. Its request body has a clone, so bytes of the request stay counted while it
                // lives.
                drop(holding);
                if !is_watch {
                    return Ok(response);
                }
                return Ok(response.map(|body| Body::new(Counted::of(body, place))));
            }
            let (parts, mut body) = response.into_parts();
            // The first poll encodes the message and frees the value it was encoded from.
            let first = if body.is_end_stream() {
                None
            } else {
                poll_fn(|cx| Poll::Ready(Some(Pin::new(&mut body).poll_frame(cx)))).await
            };
            let length = match &first {
                Some(Poll::Ready(Some(Ok(frame)))) => frame.data_ref().map_or(0, Data::len),
                _ => 0,
            };
            if let Err(error) = holding.answer(length) {
                return Ok(Status::from(error).into_http());
            }
            let body = Counted {
                first: first.filter(Poll::is_ready),
                reading: Reading::begins(patience),
                _holding: Some(holding),
                ..Counted::of(body, place)
            };
            Ok(Response::from_parts(parts, Body::new(body)))
        })
    }
}

fn too_many() -> Error {
    Error::ResourceExhausted {
        reason: "TOO_MANY_REQUESTS",
        message: "too many requests are in progress on this replica, in total or from this client".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

/// A response that keeps its permit until it is sent or abandoned.
struct Counted {
    inner: Body,
    /// The result of the early poll for the first frame, until this body is polled for it.
    first: Option<Next>,
    /// The rest of the last data frame, not handed over yet.
    rest: Data,
    reading: Option<Reading>,
    _place: Permit,
    _holding: Option<CallBytes>,
}

impl Counted {
    fn of(inner: Body, place: Permit) -> Self {
        Self {
            inner,
            first: None,
            rest: Data::new(),
            reading: None,
            _place: place,
            _holding: None,
        }
    }
}

impl HttpBody for Counted {
    type Data = Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Data>, Status>>> {
        // Being polled again means that the previous piece was handed over.
        if let Some(reading) = &self.reading {
            reading.gets_on();
        }
        if self.rest.is_empty() {
            let next = match self.first.take() {
                Some(first) => first,
                None => Pin::new(&mut self.inner).poll_frame(cx),
            };
            if let (Poll::Pending, Some(reading)) = (&next, &self.reading) {
                reading.has_nothing_to_read();
            }
            match ready!(next).transpose()? {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
            }
        }
        let piece = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.first.is_some() {
            return SizeHint::default();
        }
        let (rest, inner) = (self.rest.len() as u64, self.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + inner.lower());
        if let Some(upper) = inner.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tonic::Code;
    use tower::{ServiceExt as _, service_fn};

    use super::*;
    use crate::{
        caller::Caller,
        library::{FOLLOW, LIST, descriptors},
    };
    use emend_base::status::Explained;

    /// A response that its client does not read.
    struct Unread;

    impl HttpBody for Unread {
        type Data = <Body as HttpBody>::Data;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
            Poll::Pending
        }
    }

    fn calls(calls: usize) -> Bounds {
        Bounds {
            calls,
            ..Bounds::default()
        }
    }

    /// A server that admits one call at once and answers immediately.
    fn server() -> Admission<
        impl Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
        > + Clone,
    > {
        let answering = service_fn(|_: Request<Body>| async { Ok(Response::new(Body::new(Unread))) });
        AdmissionLayer::new(&calls(1), Methods::of(descriptors())).layer(answering)
    }

    async fn call<S>(server: &S, path: &str) -> Result<Response<Body>, Explained>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
    {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = server.clone().oneshot(request).await.unwrap();
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != Code::Ok => Err(Explained::from(status)),
            _ => Ok(response),
        }
    }

    #[tokio::test]
    async fn a_call_counts_until_its_response_is_dropped_and_a_refused_one_may_retry() {
        let server = server();
        let unread = call(&server, LIST).await.unwrap();
        let refused = call(&server, LIST).await.unwrap_err();
        assert_eq!(
            (refused.code, refused.reason.as_deref()),
            (Code::ResourceExhausted, Some("TOO_MANY_REQUESTS"))
        );
        assert!(refused.retry_after.is_some());
        drop(unread);
        assert!(call(&server, LIST).await.is_ok());
    }

    #[tokio::test]
    async fn a_stream_counts_until_its_response_begins() {
        let server = server();
        let streams = [call(&server, FOLLOW).await, call(&server, FOLLOW).await];
        assert!(streams.iter().all(Result::is_ok), "{streams:?}");
    }

    #[tokio::test]
    async fn health_checks_are_answered_however_many_calls_are_in_progress() {
        let server = server();
        let _unread = call(&server, LIST).await.unwrap();
        assert!(call(&server, "/grpc.health.v1.Health/Check").await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_disconnects_releases_its_permit() {
        let hanging =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
        let server = AdmissionLayer::new(&calls(1), Methods::of(descriptors())).layer(hanging);
        let mut gone = Box::pin(call(&server, LIST));
        assert!((&mut gone).now_or_never().is_none());
        assert!(call(&server, LIST).await.is_err());
        drop(gone);
        assert!(call(&server, LIST).now_or_never().is_none());
    }

    /// A response whose data is available at once.
    struct Whole(Option<Data>);

    impl HttpBody for Whole {
        type Data = Data;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Data>, Status>>> {
            Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_none()
        }
    }

    #[tokio::test]
    async fn a_response_keeps_its_permit_until_its_last_piece() {
        let bytes: Vec<u8> = (0..=3 * PIECE).map(|n| n.to_le_bytes()[0]).collect();
        let sent = Data::from(bytes);
        let answer = sent.clone();
        let answering = service_fn(move |_: Request<Body>| {
            let answer = answer.clone();
            async { Ok(Response::new(Body::new(Whole(Some(answer))))) }
        });
        let server = AdmissionLayer::new(&calls(1), Methods::of(descriptors())).layer(answering);
        let mut response = call(&server, LIST).await.unwrap().into_body();
        let mut came = Vec::new();
        let mut pieces = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut response).poll_frame(cx)).await {
            assert!(call(&server, LIST).await.is_err(), "it has its place");
            let data = frame.unwrap().into_data().unwrap();
            pieces.push(data.len());
            came.extend_from_slice(&data);
        }
        assert_eq!(pieces, [PIECE, PIECE, PIECE, 1]);
        assert!(sent == came && response.is_end_stream());
        drop(response);
        assert!(call(&server, LIST).await.is_ok());
    }

    /// Otherwise its headers would not end the stream, and clients would wait for trailers.
    #[tokio::test]
    async fn a_refusal_that_is_all_in_headers_has_no_body() {
        let refusing = service_fn(|_: Request<Body>| async { Ok(Status::not_found("no").into_http()) });
        let server = AdmissionLayer::new(&calls(1), Methods::of(descriptors())).layer(refusing);
        let request = Request::builder().uri(LIST).body(Body::empty()).unwrap();
        let response: Response<Body> = server.oneshot(request).await.unwrap();
        assert!(response.body().is_end_stream());
    }

    #[tokio::test]
    async fn one_client_leaves_permits_to_others() {
        let unread = service_fn(|_: Request<Body>| async { Ok(Response::new(Body::new(Unread))) });
        let server = AdmissionLayer::new(&calls(64), Methods::of(descriptors())).layer(unread);
        let call_of = async |caller: &str| {
            let request = Request::builder()
                .uri(LIST)
                .extension(Caller::parse(caller).unwrap())
                .body(Body::empty())
                .unwrap();
            let response = server.clone().oneshot(request).await.unwrap();
            Status::from_header_map(response.headers()).map_or(Ok(response), Err)
        };
        let mut held = Vec::new();
        while let Ok(response) = call_of("hog").await {
            held.push(response);
        }
        assert_eq!(held.len(), 48);
        assert!(call_of("another").await.is_ok());
    }

    #[tokio::test]
    async fn watches_are_counted_separately_and_bounded() {
        let server = server();
        let watch = async || call(&server, "/grpc.health.v1.Health/Watch").await;
        let mut watching = Vec::new();
        let refused = loop {
            match watch().await {
                Ok(response) => watching.push(response),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.reason.as_deref(), Some("TOO_MANY_REQUESTS"));
        assert!(watching.len() <= MAX_WATCHES, "{}", watching.len());
        assert!(call(&server, HEALTH_CHECK).await.is_ok());
        assert!(call(&server, LIST).await.is_ok());
        watching.pop();
        assert!(watch().await.is_ok());
    }
}
