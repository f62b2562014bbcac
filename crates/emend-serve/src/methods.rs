//! Which methods stream their request or response, read from the protobuf descriptors, so that it can't be forgotten.
//! It must know nothing of what the methods do.

use std::{collections::HashMap, sync::LazyLock};

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// Emend's services, and those that every server adds to its own.
const SETS: [&[u8]; 4] = [
    emend_proto::DESCRIPTOR_SET,
    tonic_health::pb::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
];

static METHODS: LazyLock<HashMap<String, Method>> = LazyLock::new(|| {
    let files = SETS.iter().flat_map(|set| {
        let set = FileDescriptorSet::decode(*set);
        set.expect("invariant: built with the code that serves it").file
    });
    files.flat_map(methods).collect()
});

/// Which sides of a method are streams; the others are single messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) request_is_stream: bool,
    pub(crate) response_is_stream: bool,
}

impl Method {
    /// The method at this path; for an unknown one, neither side is a stream.
    pub(crate) fn at(path: &str) -> Self {
        METHODS.get(path).copied().unwrap_or_default()
    }

    /// Its type, as gRPC metrics name it.
    pub(crate) const fn kind(self) -> &'static str {
        match (self.request_is_stream, self.response_is_stream) {
            (false, false) => "unary",
            (true, false) => "client_stream",
            (false, true) => "server_stream",
            (true, true) => "bidi_stream",
        }
    }
}

/// All methods, by their paths.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Method)> {
    METHODS.iter().map(|(path, method)| (path.as_str(), *method))
}

fn methods(file: prost_types::FileDescriptorProto) -> impl Iterator<Item = (String, Method)> {
    let package = file.package().to_owned();
    file.service.into_iter().flat_map(move |service| {
        let service_name = format!("/{package}.{}", service.name());
        service.method.into_iter().map(move |method| {
            let streams = Method {
                request_is_stream: method.client_streaming(),
                response_is_stream: method.server_streaming(),
            };
            (format!("{service_name}/{}", method.name()), streams)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_those_that_the_protos_say_are_streams() {
        let mut streams: Vec<_> = METHODS
            .iter()
            .filter(|(_, method)| **method != Method::default())
            .map(|(path, method)| (path.as_str(), method.request_is_stream, method.response_is_stream))
            .collect();
        streams.sort_unstable();
        assert_eq!(
            streams,
            [
                ("/emend.learning.v1.IngestService/Ingest", true, true),
                ("/emend.learning.v1.ResourceService/ImportResources", true, false),
                ("/emend.learning.v1.SubscriptionService/Subscribe", false, true),
                ("/grpc.health.v1.Health/Watch", false, true),
                (
                    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                    true,
                    true
                ),
                (
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                    true,
                    true
                ),
            ]
        );
        assert!(METHODS.contains_key("/emend.feedback.v1.FeedbackService/SubmitFeedback"));
        assert_eq!(Method::at("/emend.Unknown/Method"), Method::default());
    }
}
