//! A service that only tests have, with methods of each type.

use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    ServiceDescriptorProto, field_descriptor_proto,
};
use tonic::{
    IntoRequest, Response, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel,
};
use tonic_prost::ProstCodec;

pub(crate) const SERVICE: &str = "library.v1.LibraryService";
/// Streams its responses.
pub(crate) const FOLLOW: &str = "/library.v1.LibraryService/Follow";
/// Streams its requests.
pub(crate) const IMPORT: &str = "/library.v1.LibraryService/Import";
pub(crate) const LIST: &str = "/library.v1.LibraryService/List";
pub(crate) const REPORT: &str = "/library.v1.LibraryService/Report";

/// What every method takes and returns.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }
}

/// The encoded descriptors.
pub(crate) fn descriptors() -> &'static [u8] {
    let method = |path: &str, client_streaming: bool, server_streaming: bool| MethodDescriptorProto {
        name: path.rsplit('/').next().map(str::to_owned),
        input_type: Some(".library.v1.Text".to_owned()),
        output_type: Some(".library.v1.Text".to_owned()),
        client_streaming: Some(client_streaming),
        server_streaming: Some(server_streaming),
        ..MethodDescriptorProto::default()
    };
    let text = FieldDescriptorProto {
        name: Some("text".to_owned()),
        number: Some(1),
        label: Some(field_descriptor_proto::Label::Optional.into()),
        r#type: Some(field_descriptor_proto::Type::String.into()),
        ..FieldDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("library/v1/library.proto".to_owned()),
        package: Some("library.v1".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("Text".to_owned()),
            field: vec![text],
            ..DescriptorProto::default()
        }],
        service: vec![ServiceDescriptorProto {
            name: Some("LibraryService".to_owned()),
            method: vec![
                method(FOLLOW, false, true),
                method(IMPORT, true, false),
                method(LIST, false, false),
                method(REPORT, false, false),
            ],
            ..ServiceDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec().leak()
}

/// Calls a method that takes and returns one message.
pub(crate) async fn call(
    channel: Channel,
    path: &'static str,
    request: impl IntoRequest<Text>,
) -> Result<Response<Text>, Status> {
    let (mut grpc, codec) = (Grpc::new(channel), ProstCodec::<Text, Text>::default());
    ready(&mut grpc).await?;
    grpc.unary(request.into_request(), PathAndQuery::from_static(path), codec)
        .await
}

/// As generated clients do it.
async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    grpc.ready()
        .await
        .map_err(|error| Status::unknown(format!("Service was not ready: {error}")))
}
