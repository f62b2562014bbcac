//! The caller's deadline: read from `grpc-timeout`, passed to the handlers, and enforced.
//!
//! Work whose deadline has passed is refused before it starts, and the wait for a response is cut. A stream that has
//! begun is not cut: the client does that, and long-lived streams have no deadline.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use emend_base::error::Error;
use http::{HeaderMap, Request, Response};
use tokio::time::{Instant, timeout_at};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

pub(crate) const HEADER: &str = "grpc-timeout";

/// The instant at which the caller stops waiting, in a request's extensions.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

/// The instant at which the sender of `request` stops waiting; `None` if it set no deadline.
pub fn deadline_of<T>(request: &tonic::Request<T>) -> Option<Instant> {
    request.extensions().get::<Deadline>().map(|deadline| deadline.0)
}

/// Reads and enforces deadlines.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineLayer;

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadlines<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Deadlines { inner }
    }
}

/// See [`DeadlineLayer`].
#[derive(Debug, Clone)]
pub struct Deadlines<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for Deadlines<S>
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

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let allowed = match allowed(request.headers()) {
            Ok(None) => return Box::pin(self.inner.call(request)),
            Ok(Some(allowed)) => allowed,
            Err(error) => return Box::pin(async move { Ok(Status::from(error).into_http()) }),
        };
        let now = Instant::now();
        let deadline = now.checked_add(allowed).unwrap_or(now);
        if deadline <= now {
            return Box::pin(async { Ok(Status::from(Error::DeadlineExceeded).into_http()) });
        }
        request.extensions_mut().insert(Deadline(deadline));
        let response = self.inner.call(request);
        Box::pin(async move {
            timeout_at(deadline, response)
                .await
                .unwrap_or_else(|_| Ok(Status::from(Error::DeadlineExceeded).into_http()))
        })
    }
}

/// How long the caller waits, according to its header.
pub(crate) fn allowed(headers: &HeaderMap) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .and_then(parse)
        .map(Some)
        .ok_or_else(|| Error::invalid(HEADER, "must be 1 to 8 digits and a unit of H, M, S, m, u, n"))
}

/// `TimeoutValue TimeoutUnit` of the gRPC over HTTP/2 specification.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tonic::Code;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    async fn code_for(header: &str, handler_ends: bool) -> Code {
        let service = DeadlineLayer.layer(service_fn(move |request: Request<Body>| async move {
            assert!(deadline_of(&tonic::Request::from_http(request)).is_some());
            if !handler_ends {
                pending::<()>().await;
            }
            Ok::<_, Infallible>(Status::ok("").into_http())
        }));
        let request = Request::builder()
            .header(HEADER, header)
            .body(Body::empty())
            .unwrap();
        let response = service.oneshot(request).await.unwrap();
        Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code())
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_in_time_passes_and_a_late_one_is_cut_at_the_deadline() {
        assert_eq!(code_for("100m", true).await, Code::Ok);
        let start = Instant::now();
        assert_eq!(code_for("100m", false).await, Code::DeadlineExceeded);
        assert_eq!(start.elapsed(), Duration::from_millis(100));
    }

    #[tokio::test]
    async fn expired_and_malformed_deadlines_never_reach_the_handler() {
        assert_eq!(code_for("0n", false).await, Code::DeadlineExceeded);
        for malformed in ["", "5", "S", "5s", "-5S", "123456789S", "5 S", "é"] {
            assert_eq!(
                code_for(malformed, false).await,
                Code::InvalidArgument,
                "{malformed:?}"
            );
        }
    }

    #[test]
    fn every_unit_is_understood() {
        let parsed = ["1H", "1M", "1S", "1m", "1u", "1n"].map(|text| parse(text).unwrap().as_nanos());
        assert_eq!(
            parsed,
            [
                3_600_000_000_000,
                60_000_000_000,
                1_000_000_000,
                1_000_000,
                1_000,
                1
            ]
        );
    }
}
