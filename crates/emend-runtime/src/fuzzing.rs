//! For the fuzz targets: what reads what others wrote and is private otherwise.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

/// How long a caller waits that sends this `grpc-timeout`; none where it is refused, or no header's value at all.
pub fn grpc_timeout(value: &[u8]) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert(crate::deadline::HEADER, HeaderValue::from_bytes(value).ok()?);
    crate::deadline::allowed(&headers).ok().flatten()
}
