//! What every server answers: health, reflection, the edge of every RPC.

use emend_base::status::Explained;
use emend_serve::health::LIVENESS;
use futures::stream;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::{Code, Request};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::{
    harness::{Running, SOON, TRACEPARENT},
    library::{LIST, REPORT, SERVICE, Text, call},
};

#[tokio::test]
async fn health_follows_the_checks_and_liveness_does_not() {
    let server = Running::start().await;
    let mut watching = server.watch(SERVICE).await;
    let mut seen = async || {
        timeout(SOON, watching.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .status()
    };
    assert_eq!(seen().await, ServingStatus::NotServing);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::NotServing));
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));

    server.readiness.set("database", true);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::NotServing));
    server.readiness.set("tailer", true);
    assert_eq!(seen().await, ServingStatus::Serving);
    assert_eq!(server.health(SERVICE).await, Ok(ServingStatus::Serving));

    server.readiness.set("database", false);
    assert_eq!(seen().await, ServingStatus::NotServing);
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));
    assert_eq!(server.health("library.Unknown").await, Err(Code::NotFound));
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn every_http_1_call_is_refused() {
    let server = Running::start().await;
    for path in ["/grpc.health.v1.Health/Check", LIST] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let call = format!(
            "POST {path} HTTP/1.1\r\nhost: library\r\ncontent-type: application/grpc\r\ncontent-length: 5\r\n\r\n\0\0\0\0\0"
        );
        stream.write_all(call.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer))
            .await
            .expect("the connection is closed")
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    }
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_unknown_service_can_be_watched_and_is_unknown() {
    let server = Running::start().await;
    let mut watching = server.watch("library.Unknown").await;
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::ServiceUnknown
    );
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn handlers_see_caller_deadline_and_trace_and_internals_are_hidden() {
    let server = Running::start().await;
    let mut request = Request::new(Text::default());
    request.set_timeout(SOON);
    request
        .metadata_mut()
        .insert("traceparent", TRACEPARENT.parse().unwrap());
    request
        .metadata_mut()
        .insert("x-request-id", "mine-7".parse().unwrap());
    let status = call(server.channel().await, REPORT, request).await.unwrap_err();

    let seen = Explained::from(&status);
    assert_eq!(
        (seen.code, seen.message.as_str()),
        (Code::Internal, "internal error")
    );
    assert_eq!(seen.request_id.as_deref(), Some("mine-7"));
    assert_eq!(status.metadata().get("x-request-id").unwrap(), "mine-7");
    assert!(!format!("{status:?}").contains("secret"));
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let server = Running::start().await;
    let status = call(
        server.channel().await,
        "/library.v1.OtherService/List",
        Text::default(),
    )
    .await
    .unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn without_reflection_nothing_is_described() {
    use tonic_reflection::pb::{v1, v1alpha};

    let server = Running::with(|server| server.reflection(false)).await;
    let refused = v1::server_reflection_client::ServerReflectionClient::new(server.channel().await)
        .server_reflection_info(stream::iter([v1::ServerReflectionRequest::default()]))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    let refused = v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel().await)
        .server_reflection_info(stream::iter([v1alpha::ServerReflectionRequest::default()]))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn both_versions_of_reflection_list_what_is_served_and_nothing_else() {
    use tonic_reflection::pb::{v1, v1alpha};

    let server = Running::start().await;
    let list = stream::iter([v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    }]);
    let mut answers = v1::server_reflection_client::ServerReflectionClient::new(server.channel().await)
        .server_reflection_info(list)
        .await
        .unwrap()
        .into_inner();
    let Some(v1::server_reflection_response::MessageResponse::ListServicesResponse(listed)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("a list of services");
    };
    let mut names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            SERVICE,
        ]
    );

    for symbol in [
        SERVICE,
        "library.v1.Text",
        "google.rpc.RetryInfo",
        "grpc.health.v1.Health",
    ] {
        let ask = stream::iter([v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(
                v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(symbol.into()),
            ),
        }]);
        let mut answers =
            v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel().await)
                .server_reflection_info(ask)
                .await
                .unwrap()
                .into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response;
        assert!(
            matches!(
                answer,
                Some(v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(_))
            ),
            "{symbol}: {answer:?}"
        );
    }
    server.lifecycle.shutdown(SOON).await;
}
