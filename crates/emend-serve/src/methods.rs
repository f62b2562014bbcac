//! Which methods stream their request or response, read from the protobuf descriptors, so that it can't be forgotten.

use std::{collections::HashMap, sync::Arc};

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The services that every server adds to its own.
const ALWAYS: [&[u8]; 3] = [
    tonic_health::pb::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
];

/// Which sides of a method are streams; the others are single messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) request_is_stream: bool,
    pub(crate) response_is_stream: bool,
}

impl Method {
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

/// The methods of one server, by their paths. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Methods(Arc<HashMap<String, Method>>);

impl Methods {
    /// Those of the services that these encoded descriptors describe, and of those that every server adds.
    ///
    /// # Panics
    /// If they are no descriptors.
    pub(crate) fn of(descriptors: &[u8]) -> Self {
        let files = ALWAYS.into_iter().chain([descriptors]).flat_map(|set| {
            let set = FileDescriptorSet::decode(set);
            set.expect("invariant: built with the code that serves it").file
        });
        Self(Arc::new(files.flat_map(methods).collect()))
    }

    /// The method at this path; for an unknown one, neither side is a stream.
    pub(crate) fn at(&self, path: &str) -> Method {
        self.0.get(path).copied().unwrap_or_default()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Method)> {
        self.0.iter().map(|(path, method)| (path.as_str(), *method))
    }
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
    use crate::library::{FOLLOW, IMPORT, LIST, descriptors};

    #[test]
    fn streams_are_those_that_the_protos_say_are_streams() {
        let methods = Methods::of(descriptors());
        for (path, kind) in [
            (FOLLOW, "server_stream"),
            (IMPORT, "client_stream"),
            (LIST, "unary"),
            ("/grpc.health.v1.Health/Check", "unary"),
            ("/grpc.health.v1.Health/Watch", "server_stream"),
            (
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                "bidi_stream",
            ),
            (
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                "bidi_stream",
            ),
        ] {
            assert!(methods.iter().any(|(known, _)| known == path), "{path}");
            assert_eq!(methods.at(path).kind(), kind, "{path}");
        }
        assert_eq!(methods.at("/library.v1.Unknown/Method"), Method::default());
    }
}
