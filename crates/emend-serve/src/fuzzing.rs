//! For the fuzz targets: parsers of untrusted input that are otherwise private.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

/// The time allowed by this `grpc-timeout`; `None` if it is refused or is no valid header value.
pub fn grpc_timeout(value: &[u8]) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert(
        crate::server::deadline::HEADER,
        HeaderValue::from_bytes(value).ok()?,
    );
    crate::server::deadline::allowed(&headers).ok().flatten()
}
