//! Inputs beside messages: headers, error details, and the addresses that operators type.

use emend_base::{request_id::RequestId, status::Explained, traceparent::Traceparent};
use emend_proto::common::v1::ResourceKey;
use emend_serve::fuzzing::grpc_timeout;
use emend_store::DatabaseUrl;
use prost::Message as _;
use tonic::{Code, Status};

use super::lossy;

/// `traceparent`, `grpc-timeout`, `x-request-id`.
pub(super) fn headers(bytes: &[u8]) -> usize {
    let text = lossy(bytes);
    if let Some(traceparent) = Traceparent::parse(&text) {
        assert_eq!(traceparent.as_str(), text);
        assert_eq!(traceparent.trace_id().len(), 32);
    }
    if let Some(id) = RequestId::parse(&text) {
        assert_eq!(id.as_str(), text);
    }
    if let Some(timeout) = grpc_timeout(bytes) {
        assert!(timeout.as_secs() <= 99_999_999 * 3_600);
    }
    bytes.len()
}

/// Addresses of databases and services. A password must never be shown.
pub(super) fn addresses(bytes: &[u8]) -> usize {
    const PASSWORD: &str = "s3cretpassw0rd";
    let text = lossy(bytes);
    let _ = text.parse::<feedback_svc::LearningAddress>();
    let _ = emend_client::fuzzing::address(&text);
    for url in [
        text.clone(),
        format!("postgres://{text}"),
        format!("postgres://emend:{PASSWORD}@{text}"),
        format!("postgres://emend:{PASSWORD}{text}@db.example/emend"),
        format!("postgres://emend@db.example/emend?password={PASSWORD}&{text}"),
    ] {
        let parsed = url.parse::<DatabaseUrl>();
        let shown = match &parsed {
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(text.contains(PASSWORD) || !shown.contains(PASSWORD), "{shown}");
        if let Ok(DatabaseUrl::Postgres(url)) = parsed {
            let _ = url.with_database("other").to_string();
        }
    }
    text.len()
}

/// A server's error details, as the client explains them.
pub(super) fn statuses(bytes: &[u8]) -> usize {
    let status = Status::with_details(Code::InvalidArgument, lossy(bytes), bytes.to_vec().into());
    let explained = Explained::from(&status);
    let shown = explained.to_string();
    assert!(!shown.is_empty());
    // The details are not a google.rpc.Status.
    let other = ResourceKey {
        key: lossy(bytes),
        ..Default::default()
    };
    let status = Status::with_details(Code::Unavailable, "", other.encode_to_vec().into());
    let _ = Explained::from(&status).to_string();
    shown.len().max(bytes.len())
}
