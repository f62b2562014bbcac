//! What every server answers: health, reflection, the edge of every RPC.

use emend_base::status::Explained;
use emend_serve::health::LIVENESS;
use futures::stream;
use prost::Message as _;
use prost_types::FileDescriptorProto;
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

/// Stamps the same test for both versions of reflection, which differ in nothing but their package.
macro_rules! reflection {
    ($($name:ident: $version:ident;)+) => { $(
        #[tokio::test]
        async fn $name() {
            use tonic_reflection::pb::$version::{
                ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
                server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
            };

            let server = Running::start().await;
            let symbol = |name: &str| MessageRequest::FileContainingSymbol(name.to_owned());
            let asked = [
                MessageRequest::ListServices(String::new()),
                symbol("library.v1.Nothing"),
                symbol(SERVICE),
                MessageRequest::FileByFilename("library/v1/nothing.proto".to_owned()),
                symbol("library.v1.Text"),
                symbol("google.rpc.RetryInfo"),
                symbol("grpc.health.v1.Health"),
                MessageRequest::AllExtensionNumbersOfType("library.v1.Text".to_owned()),
            ];
            let asked = asked.map(|message_request| ServerReflectionRequest {
                host: "here".to_owned(),
                message_request: Some(message_request),
            });
            let mut answers = ServerReflectionClient::new(server.channel().await)
                .server_reflection_info(stream::iter(asked.clone()))
                .await
                .unwrap()
                .into_inner();
            let mut summaries = Vec::new();
            for asked in asked {
                let answer = answers.message().await.unwrap().expect("an answer to each request");
                assert_eq!((answer.valid_host.as_str(), answer.original_request), ("here", Some(asked)));
                summaries.push(match answer.message_response.unwrap() {
                    MessageResponse::FileDescriptorResponse(files) => {
                        let file = &files.file_descriptor_proto[0][..];
                        FileDescriptorProto::decode(file).unwrap().name().to_owned()
                    }
                    MessageResponse::ListServicesResponse(listed) => {
                        let names = listed.service.into_iter().map(|service| service.name);
                        names.collect::<Vec<_>>().join(" ")
                    }
                    MessageResponse::AllExtensionNumbersResponse(numbers) => {
                        format!("{} {:?}", numbers.base_type_name, numbers.extension_number)
                    }
                    MessageResponse::ErrorResponse(error) => {
                        format!("{:?}: {}", Code::from(error.error_code), error.error_message)
                    }
                });
            }
            assert!(answers.message().await.unwrap().is_none());
            assert_eq!(
                summaries,
                [
                    "library.v1.LibraryService grpc.health.v1.Health grpc.reflection.v1.ServerReflection \
                     grpc.reflection.v1alpha.ServerReflection",
                    "NotFound: library.v1.Nothing is not known here",
                    "library/v1/library.proto",
                    "NotFound: library/v1/nothing.proto is not known here",
                    "library/v1/library.proto",
                    "error_details.proto",
                    "health.proto",
                    "library.v1.Text []",
                ]
            );
            server.lifecycle.shutdown(SOON).await;
        }
    )+ };
}

reflection! {
    reflection_answers_what_is_not_known_and_goes_on: v1;
    the_older_version_of_reflection_does_so_too: v1alpha;
}
