//! Requests that are no gRPC calls, or whose metadata are too large: refused before anything runs.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use emend_base::{status::Explained, telemetry::metrics::Metrics, testing::Logged};
use emend_serve::{
    auth::{Authenticator, Reaches, Role, rule},
    metrics::ServerMetrics,
};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use tokio::time::Instant;
use tonic::{Code, Status, body::Body, transport::Channel};
use tower::{Service as _, ServiceExt as _};

use crate::{
    harness::{Running, SOON, TALKATIVE},
    library::{FOLLOW, Text, call},
};

const REFLECTION: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
const HEALTH: [&str; 2] = ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"];
/// What a page of another site may send without asking, and what other protocols send.
const FOREIGN: [Option<&str>; 7] = [
    None,
    Some("text/plain"),
    Some("text/plain;charset=UTF-8"),
    Some("application/x-www-form-urlencoded"),
    Some("application/json"),
    Some("application/grpc-web"),
    Some("application/grpc-web+proto"),
];

/// A message as gRPC frames it.
fn framed(message: &Text) -> Vec<u8> {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, &message].concat()
}

/// Sends a request as it is, over HTTP/2, as a page of another site would.
async fn send(
    channel: &Channel,
    method: Method,
    path: &str,
    content_type: Option<&str>,
    message: &Text,
) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("origin", "https://evil.example")
        .header("sec-fetch-site", "cross-site")
        .header("sec-fetch-mode", "no-cors");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    let body = Body::new(Full::<Bytes>::from(framed(message)));
    let mut channel = channel.clone();
    let ready = channel.ready().await.unwrap();
    ready.call(request.body(body).unwrap()).await.unwrap()
}

fn talk() -> Text {
    Text::from(TALKATIVE)
}

#[tokio::test]
async fn what_is_no_grpc_call_is_refused_before_anything_runs() {
    let server = Running::start().await;
    let channel = server.channel().await;
    let paths = [
        &[FOLLOW][..],
        &HEALTH,
        &REFLECTION,
        &["/", "/library.v1.Unknown/Method"],
    ]
    .concat();
    for path in paths {
        for content_type in FOREIGN {
            let refused = send(&channel, Method::POST, path, content_type, &talk()).await;
            assert_eq!(refused.status(), 415, "{path} {content_type:?}");
            let status = Status::from_header_map(refused.headers()).expect("a gRPC status, too");
            assert_eq!(status.code(), Code::InvalidArgument, "{path} {content_type:?}");
            assert!(status.message().contains("application/grpc"), "{status:?}");
            assert!(refused.into_body().collect().await.unwrap().to_bytes().is_empty());
        }
        for method in [Method::GET, Method::PUT, Method::OPTIONS] {
            let refused = send(&channel, method.clone(), path, Some("application/grpc"), &talk()).await;
            assert_eq!(refused.status(), 405, "{path} {method}");
            assert_eq!(refused.headers()[header::ALLOW], "POST");
        }
    }
    assert_eq!(server.messages.load(Ordering::SeqCst), 0, "no handler ran");

    for content_type in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc;x=y",
    ] {
        let answered = send(&channel, Method::POST, FOLLOW, Some(content_type), &talk()).await;
        assert_eq!(answered.status(), StatusCode::OK, "{content_type}");
    }
    assert!(server.messages.load(Ordering::SeqCst) > 0);
    drop(channel);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn nobody_is_asked_who_sends_what_is_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.toml");
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let known = format!(
        "[[principals]]\nname = \"web\"\ntoken_sha256 = [\"{hash}\"]\n\
         grants = [{{ roles = [\"reporter\"], namespaces = \"*\" }}]\n"
    );
    fs::write(&file, known).unwrap();
    let authenticator = Arc::new(Authenticator::load(&file).unwrap());
    let rules = [rule(FOLLOW, Role::Reporter, Reaches::One)];
    let server = Running::with(|server| server.authenticator(Some(authenticator), &rules)).await;
    let channel = server.channel().await;
    for (content_type, code) in [
        ("application/grpc", Code::Unauthenticated),
        ("text/plain", Code::InvalidArgument),
    ] {
        let refused = send(&channel, Method::POST, FOLLOW, Some(content_type), &talk()).await;
        assert_eq!(Status::from_header_map(refused.headers()).unwrap().code(), code);
    }
    drop(channel);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn what_is_no_call_is_counted_under_its_method_and_logged_ten_times_a_second_at_most() {
    let (metrics, logged) = (Metrics::new(), Logged::default());
    let _logging = tracing::subscriber::set_default(logged.clone());
    let server = Running::with(|server| server.metrics(ServerMetrics::of(&metrics).rpc())).await;
    let channel = server.channel().await;
    let began = Instant::now();
    for _ in 0..200 {
        send(&channel, Method::POST, FOLLOW, Some("text/plain"), &talk()).await;
    }
    send(&channel, Method::GET, "/made/up", None, &talk()).await;
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    let rendered = metrics.render();
    for (method, count) in [("Follow", 200), ("unknown", 1)] {
        let found = rendered.lines().any(|line| {
            line.starts_with("grpc_server_handled_total{")
                && line.contains(&format!(
                    "grpc_method=\"{method}\",grpc_code=\"InvalidArgument\"}} {count}"
                ))
        });
        assert!(found, "{method}:\n{rendered}");
    }
    let lines = logged.lines();
    let refused = lines.iter().filter(|line| line.contains("reason=\"HTTP 415\""));
    let refused = refused
        .filter(|line| line.starts_with("message=refused;"))
        .count();
    assert!(
        (1..=10 * (seconds + 1)).contains(&refused),
        "{refused} in {seconds} s"
    );
    drop(channel);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn a_call_with_too_many_bytes_of_metadata_gets_a_status_that_says_so() {
    let server = Running::start().await;
    let channel = server.channel().await;
    let with = |bytes: usize| {
        let mut request = tonic::Request::new(Text::default());
        let value = "m".repeat(bytes).parse().unwrap();
        request.metadata_mut().insert("x-metadata", value);
        call(channel.clone(), "/library.v1.OtherService/List", request)
    };
    assert_eq!(with(15 << 10).await.unwrap_err().code(), Code::Unimplemented);
    for kib in [17, 40, 60] {
        let refused = Explained::from(with(kib << 10).await.unwrap_err());
        assert_eq!(
            (refused.code, refused.reason.as_deref()),
            (Code::ResourceExhausted, Some("REQUEST_TOO_LARGE")),
            "{kib} KiB"
        );
        assert!(refused.message.contains("16384"), "{}", refused.message);
        assert_eq!(refused.retry_after, None);
    }
    // What HTTP/2 does not take into memory can't be answered by a status.
    let refused = with(70 << 10).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unknown, "{refused:?}");
    assert!(refused.message().contains("431"), "{refused:?}");
    // The connection goes on.
    assert_eq!(with(1).await.unwrap_err().code(), Code::Unimplemented);
    server.lifecycle.shutdown(SOON).await;
}
