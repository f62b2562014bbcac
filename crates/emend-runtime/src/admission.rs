//! How many calls a server takes on at once. One more is refused at once, with the time after which to try again: so what
//! waits inside, for whatever it waits, is bounded, and so is the memory that it takes.
//!
//! A call counts until its response has been handed to the connection, so also while a client does not read it. A call that
//! answers with a long-lived stream counts until the stream has begun; those bound themselves. Health checks and reflection
//! are always answered. It must know nothing of what the calls do.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use crate::error::Error;

/// The paths of what every server answers: health checks and reflection.
const ALWAYS: &str = "/grpc.";
/// After which time it may be worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Bounds the calls that are under way. Clones, and the services they make, share the bound.
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    room: Arc<Semaphore>,
    streams: Arc<[&'static str]>,
}

impl AdmissionLayer {
    /// At most so many calls; `streams` are the paths of those that answer with a long-lived stream.
    pub fn new(calls: usize, streams: &[&'static str]) -> Self {
        Self {
            room: Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))),
            streams: streams.into(),
        }
    }
}

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
        if path.starts_with(ALWAYS) {
            return Box::pin(self.inner.call(request));
        }
        let is_stream = self.bound.streams.contains(&path);
        let Ok(place) = Arc::clone(&self.bound.room).try_acquire_owned() else {
            let refusal = Error::ResourceExhausted {
                reason: "TOO_MANY_REQUESTS",
                message: "more requests are under way than this replica takes on at once".to_owned(),
                retry_after: Some(RETRY_AFTER),
            };
            return Box::pin(async move { Ok(Status::from(refusal).into_http()) });
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            Ok(if is_stream {
                drop(place);
                response
            } else {
                response.map(|inner| Body::new(Counted { inner, _place: place }))
            })
        })
    }
}

/// A response that keeps its place until it is sent or given up.
struct Counted {
    inner: Body,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Counted {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tonic::Code;
    use tower::{ServiceExt as _, service_fn};

    use super::*;
    use crate::status::Explained;

    const STREAM: &str = "/emend.Test/Stream";

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

    /// A server of one call at once that answers everything at once.
    fn server() -> Admission<
        impl Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
        > + Clone,
    > {
        let answering = service_fn(|_: Request<Body>| async { Ok(Response::new(Body::new(Unread))) });
        AdmissionLayer::new(1, &[STREAM]).layer(answering)
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
    async fn a_call_counts_until_its_response_is_gone_and_one_more_is_told_when_to_try_again() {
        let server = server();
        let unread = call(&server, "/emend.Test/Call").await.unwrap();
        let refused = call(&server, "/emend.Test/Call").await.unwrap_err();
        assert_eq!(
            (refused.code, refused.reason.as_deref()),
            (Code::ResourceExhausted, Some("TOO_MANY_REQUESTS"))
        );
        assert!(refused.retry_after.is_some());
        drop(unread);
        assert!(call(&server, "/emend.Test/Call").await.is_ok());
    }

    #[tokio::test]
    async fn a_stream_counts_until_it_has_begun() {
        let server = server();
        let streams = [call(&server, STREAM).await, call(&server, STREAM).await];
        assert!(streams.iter().all(Result::is_ok), "{streams:?}");
    }

    #[tokio::test]
    async fn health_checks_are_answered_however_many_calls_are_under_way() {
        let server = server();
        let _unread = call(&server, "/emend.Test/Call").await.unwrap();
        assert!(call(&server, "/grpc.health.v1.Health/Check").await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_gives_its_place_back() {
        let hanging =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
        let server = AdmissionLayer::new(1, &[]).layer(hanging);
        let mut gone = Box::pin(call(&server, "/emend.Test/Call"));
        assert!((&mut gone).now_or_never().is_none());
        assert!(call(&server, "/emend.Test/Call").await.is_err());
        drop(gone);
        assert!(call(&server, "/emend.Test/Call").now_or_never().is_none());
    }
}
