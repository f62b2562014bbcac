//! Requests that are answered without being carried out. Whoever decides that leaves the reason in the request's
//! extensions; [`auth::GateLayer`](crate::auth::GateLayer) answers, so that all of them are counted and logged alike.

use std::sync::Arc;

use emend_base::error::{Error, to_status};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use tonic::body::Body;

/// What a gRPC call's content type begins with.
const GRPC: &str = "application/grpc";
/// The most bytes of a request's metadata, counted as HTTP/2 does.
pub(crate) const MAX_METADATA: usize = 16 * 1024;
/// What HTTP/2 counts for each header beside its name and value.
const HEADER_BYTES: usize = 32;

/// Why a request is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    error: Arc<Error>,
    /// For what is no gRPC call, and may come from a client that knows only HTTP.
    http: StatusCode,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self {
            error: Arc::new(error),
            http: StatusCode::OK,
        }
    }
}

impl Refused {
    /// The answer; it has no body.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut response = to_status(&self.error).into_http();
        *response.status_mut() = self.http;
        if self.http == StatusCode::METHOD_NOT_ALLOWED {
            let post = HeaderValue::from_static("POST");
            response.headers_mut().insert(header::ALLOW, post);
        }
        response
    }
}

/// Refuses what is no gRPC call: a page in a browser may send a POST with `text/plain`, or a GET, to any address without
/// asking, and its user may be somebody. Refuses metadata that are too large, too.
pub(crate) fn by_its_head<T>(request: &Request<T>) -> Option<Refused> {
    if request.method() != Method::POST {
        return Some(Refused {
            error: Arc::new(Error::invalid(":method", "must be POST")),
            http: StatusCode::METHOD_NOT_ALLOWED,
        });
    }
    let mut types = request.headers().get_all(header::CONTENT_TYPE).into_iter();
    if !types.next().is_some_and(is_grpc) || types.next().is_some() {
        return Some(Refused {
            error: Arc::new(Error::invalid(
                "content-type",
                "must be application/grpc, alone or followed by + or ;",
            )),
            http: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        });
    }
    let bytes =
        |(name, value): (&header::HeaderName, &HeaderValue)| name.as_str().len() + value.len() + HEADER_BYTES;
    let metadata: usize = request.headers().iter().map(bytes).sum();
    (metadata > MAX_METADATA).then(|| {
        let message = format!("the call's metadata have {metadata} bytes, more than {MAX_METADATA}");
        Refused::from(Error::ResourceExhausted {
            reason: "REQUEST_TOO_LARGE",
            message,
            retry_after: None,
        })
    })
}

fn is_grpc(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    value.split_at_checked(GRPC.len()).is_some_and(|(kind, rest)| {
        kind.eq_ignore_ascii_case(GRPC.as_bytes()) && matches!(rest.first(), None | Some(b'+' | b';'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &str, types: &[&str]) -> Option<u16> {
        let mut request = Request::builder().method(method);
        for content_type in types {
            request = request.header(header::CONTENT_TYPE, *content_type);
        }
        by_its_head(&request.body(()).expect("a request")).map(|refused| refused.http.as_u16())
    }

    #[test]
    fn only_a_post_of_grpc_is_a_call() {
        for good in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;charset=utf-8",
            "Application/gRPC",
        ] {
            assert_eq!(refused("POST", &[good]), None, "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "text/plain;charset=UTF-8",
            "application/json",
            "application/grp",
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpcx",
            " application/grpc",
            "text/plain, application/grpc",
        ] {
            assert_eq!(refused("POST", &[bad]), Some(415), "{bad:?}");
        }
        assert_eq!(refused("POST", &[]), Some(415));
        assert_eq!(refused("POST", &["application/grpc", "text/plain"]), Some(415));
        for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "CONNECT"] {
            assert_eq!(refused(method, &["application/grpc"]), Some(405), "{method}");
        }
    }

    #[test]
    fn metadata_may_have_so_many_bytes_and_no_more() {
        let content_type = (header::CONTENT_TYPE.as_str(), GRPC);
        let rest = MAX_METADATA - content_type.0.len() - content_type.1.len() - 2 * HEADER_BYTES - "x".len();
        for (length, is_refused) in [(rest, false), (rest + 1, true)] {
            let request = Request::post("/")
                .header(content_type.0, content_type.1)
                .header("x", "v".repeat(length));
            let refused = by_its_head(&request.body(()).expect("a request"));
            assert_eq!(refused.is_some(), is_refused, "{length}");
        }
    }
}
