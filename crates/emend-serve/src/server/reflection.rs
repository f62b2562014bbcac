//! Server reflection, v1 and v1alpha: what the served protos are, for clients that do not have them.
//!
//! A name that is not known is answered within the stream, as the protocol has it, and what is asked next is answered
//! too: a client asks for one name after the other in one stream.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use prost::{DecodeError, Message as _};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::pb::{v1, v1alpha};

/// The services that answer reflection.
pub(super) const SERVICES: [&str; 2] = [
    v1::server_reflection_server::SERVICE_NAME,
    v1alpha::server_reflection_server::SERVICE_NAME,
];

/// Answers reflection. Clones share what is described.
#[derive(Debug, Clone)]
pub(super) struct Reflection(Arc<Described>);

/// A `google.protobuf.FileDescriptorSet` whose files stay encoded: options that this program does not know are kept.
#[derive(Clone, PartialEq, prost::Message)]
struct EncodedFiles {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// What the described files define, by full names.
#[derive(Debug, Default)]
struct Described {
    services: Vec<String>,
    /// Each file, encoded.
    files: HashMap<String, Vec<u8>>,
    /// The file of each symbol.
    symbols: HashMap<String, String>,
    /// The file of each extension of a message, by its number.
    extensions: HashMap<String, BTreeMap<i32, String>>,
}

/// What a client wants to know.
enum Query {
    File(String),
    Symbol(String),
    Extension(String, i32),
    ExtensionNumbers(String),
    Services,
    /// Nothing that this version knows.
    Unknown,
}

/// What it is told.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    File(Vec<u8>),
    Numbers(String, Vec<i32>),
    Services(Vec<String>),
    Error(Code, String),
}

impl Reflection {
    /// Of these services, and of the files in these encoded descriptor sets; of files with one name the first counts.
    pub(super) fn of(sets: &[&[u8]], services: Vec<String>) -> Result<Self, DecodeError> {
        let mut described = Described {
            services,
            ..Described::default()
        };
        for set in sets {
            for encoded in EncodedFiles::decode(*set)?.file {
                let file = FileDescriptorProto::decode(&*encoded)?;
                if !described.files.contains_key(file.name()) {
                    described.add(&file);
                    described.files.insert(file.name().to_owned(), encoded);
                }
            }
        }
        Ok(Self(Arc::new(described)))
    }
}

impl Described {
    fn add(&mut self, file: &FileDescriptorProto) {
        let (scope, name) = (file.package(), file.name());
        for message in &file.message_type {
            self.add_message(scope, message, name);
        }
        for enumeration in &file.enum_type {
            self.add_enum(scope, enumeration, name);
        }
        for extension in &file.extension {
            self.add_extension(scope, extension, name);
        }
        for service in &file.service {
            let full = self.add_symbol(scope, service.name(), name);
            for method in &service.method {
                self.add_symbol(&full, method.name(), name);
            }
        }
    }

    fn add_symbol(&mut self, scope: &str, name: &str, file: &str) -> String {
        let full = match scope {
            "" => name.to_owned(),
            scope => format!("{scope}.{name}"),
        };
        self.symbols.insert(full.clone(), file.to_owned());
        full
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto, file: &str) {
        let full = self.add_symbol(scope, message.name(), file);
        for field in &message.field {
            self.add_symbol(&full, field.name(), file);
        }
        for oneof in &message.oneof_decl {
            self.add_symbol(&full, oneof.name(), file);
        }
        for extension in &message.extension {
            self.add_extension(&full, extension, file);
        }
        for enumeration in &message.enum_type {
            self.add_enum(&full, enumeration, file);
        }
        for nested in &message.nested_type {
            self.add_message(&full, nested, file);
        }
    }

    /// The values of an enum are in the scope that the enum is in.
    fn add_enum(&mut self, scope: &str, enumeration: &EnumDescriptorProto, file: &str) {
        self.add_symbol(scope, enumeration.name(), file);
        for value in &enumeration.value {
            self.add_symbol(scope, value.name(), file);
        }
    }

    fn add_extension(&mut self, scope: &str, extension: &FieldDescriptorProto, file: &str) {
        self.add_symbol(scope, extension.name(), file);
        let extendee = extension.extendee().trim_start_matches('.').to_owned();
        let numbers = self.extensions.entry(extendee).or_default();
        numbers.insert(extension.number(), file.to_owned());
    }

    fn answer(&self, query: Query) -> Answer {
        let not_found = |name: &str| Answer::Error(Code::NotFound, format!("{name} is not known here"));
        let file = |name: &String| self.files.get(name).cloned().map(Answer::File);
        match query {
            Query::File(name) => file(&name).unwrap_or_else(|| not_found(&name)),
            Query::Symbol(name) => {
                let found = self.symbols.get(name.trim_start_matches('.')).and_then(file);
                found.unwrap_or_else(|| not_found(&name))
            }
            Query::Extension(extendee, number) => {
                let numbers = self.extensions.get(&extendee);
                let found = numbers.and_then(|numbers| numbers.get(&number)).and_then(file);
                found.unwrap_or_else(|| not_found(&format!("extension {number} of {extendee}")))
            }
            Query::ExtensionNumbers(extendee) if self.symbols.contains_key(&extendee) => {
                let numbers = self.extensions.get(&extendee);
                let numbers = numbers.map(|numbers| numbers.keys().copied().collect());
                Answer::Numbers(extendee, numbers.unwrap_or_default())
            }
            Query::ExtensionNumbers(extendee) => not_found(&extendee),
            Query::Services => Answer::Services(self.services.clone()),
            Query::Unknown => Answer::Error(Code::InvalidArgument, "the request asks for nothing".to_owned()),
        }
    }
}

/// The two versions differ in nothing but their package.
macro_rules! answers {
    ($version:ident) => {
        #[tonic::async_trait]
        impl $version::server_reflection_server::ServerReflection for Reflection {
            type ServerReflectionInfoStream =
                BoxStream<'static, Result<$version::ServerReflectionResponse, Status>>;

            async fn server_reflection_info(
                &self,
                request: Request<Streaming<$version::ServerReflectionRequest>>,
            ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                use $version::{
                    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
                    ServerReflectionResponse, ServiceResponse, server_reflection_request::MessageRequest,
                    server_reflection_response::MessageResponse,
                };

                let Self(described) = self.clone();
                let answers = request.into_inner().map_ok(move |request| {
                    let query = match request.message_request.clone() {
                        Some(MessageRequest::FileByFilename(name)) => Query::File(name),
                        Some(MessageRequest::FileContainingSymbol(name)) => Query::Symbol(name),
                        Some(MessageRequest::FileContainingExtension(extension)) => {
                            Query::Extension(extension.containing_type, extension.extension_number)
                        }
                        Some(MessageRequest::AllExtensionNumbersOfType(name)) => {
                            Query::ExtensionNumbers(name)
                        }
                        Some(MessageRequest::ListServices(_)) => Query::Services,
                        None => Query::Unknown,
                    };
                    let answer = match described.answer(query) {
                        Answer::File(file) => {
                            MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
                                file_descriptor_proto: vec![file],
                            })
                        }
                        Answer::Numbers(base_type_name, extension_number) => {
                            MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                                base_type_name,
                                extension_number,
                            })
                        }
                        Answer::Services(names) => {
                            let service = names.into_iter().map(|name| ServiceResponse { name });
                            MessageResponse::ListServicesResponse(ListServiceResponse {
                                service: service.collect(),
                            })
                        }
                        Answer::Error(code, error_message) => MessageResponse::ErrorResponse(ErrorResponse {
                            error_code: code.into(),
                            error_message,
                        }),
                    };
                    ServerReflectionResponse {
                        valid_host: request.host.clone(),
                        original_request: Some(request),
                        message_response: Some(answer),
                    }
                });
                Ok(Response::new(answers.boxed()))
            }
        }
    };
}

answers!(v1);
answers!(v1alpha);

#[cfg(test)]
mod tests {
    use prost_types::{
        EnumValueDescriptorProto, FileDescriptorSet, OneofDescriptorProto, descriptor_proto::ExtensionRange,
    };

    use super::*;

    fn named<T>(name: &str, make: impl Fn(Option<String>) -> T) -> T {
        make(Some(name.to_owned()))
    }

    /// A file with one of everything that has a name, beside what services and methods are tested with over a socket.
    fn described() -> Described {
        let field = |name: &str, extendee: Option<&str>| FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(100),
            extendee: extendee.map(str::to_owned),
            ..FieldDescriptorProto::default()
        };
        let inner = EnumDescriptorProto {
            value: vec![named("RED", |name| EnumValueDescriptorProto {
                name,
                ..EnumValueDescriptorProto::default()
            })],
            ..named("Colour", |name| EnumDescriptorProto {
                name,
                ..EnumDescriptorProto::default()
            })
        };
        let message = DescriptorProto {
            name: Some("Book".to_owned()),
            field: vec![field("title", None)],
            oneof_decl: vec![named("by", |name| OneofDescriptorProto {
                name,
                ..OneofDescriptorProto::default()
            })],
            nested_type: vec![named("Page", |name| DescriptorProto {
                name,
                ..DescriptorProto::default()
            })],
            enum_type: vec![inner],
            extension_range: vec![ExtensionRange {
                start: Some(100),
                end: Some(200),
                ..ExtensionRange::default()
            }],
            ..DescriptorProto::default()
        };
        let file = FileDescriptorProto {
            name: Some("books.proto".to_owned()),
            package: Some("books".to_owned()),
            message_type: vec![message],
            extension: vec![field("shelf", Some(".books.Book"))],
            ..FileDescriptorProto::default()
        };
        let set = FileDescriptorSet { file: vec![file] }.encode_to_vec();
        let Reflection(described) = Reflection::of(&[&set, &set], Vec::new()).expect("descriptors");
        Arc::try_unwrap(described).expect("one owner")
    }

    #[test]
    fn whatever_has_a_name_is_found_by_it() {
        let described = described();
        let file = || Answer::File(described.files["books.proto"].clone());
        for symbol in [
            "books.Book",
            ".books.Book",
            "books.Book.title",
            "books.Book.by",
            "books.Book.Page",
            "books.Book.Colour",
            "books.Book.RED",
            "books.shelf",
        ] {
            assert_eq!(
                described.answer(Query::Symbol(symbol.to_owned())),
                file(),
                "{symbol}"
            );
        }
        assert_eq!(described.answer(Query::File("books.proto".to_owned())), file());
        assert_eq!(
            described.answer(Query::Extension("books.Book".to_owned(), 100)),
            file()
        );
        assert_eq!(
            described.answer(Query::ExtensionNumbers("books.Book".to_owned())),
            Answer::Numbers("books.Book".to_owned(), vec![100])
        );
    }

    #[test]
    fn what_is_not_known_is_an_error_that_names_it() {
        let described = described();
        for (query, code, text) in [
            (
                Query::Symbol("books.Book.RED.more".to_owned()),
                Code::NotFound,
                "books.Book.RED.more",
            ),
            (Query::File("b.proto".to_owned()), Code::NotFound, "b.proto"),
            (
                Query::Extension("books.Book".to_owned(), 101),
                Code::NotFound,
                "extension 101 of books.Book",
            ),
            (
                Query::ExtensionNumbers("books.Shelf".to_owned()),
                Code::NotFound,
                "books.Shelf",
            ),
            (Query::Unknown, Code::InvalidArgument, "asks for nothing"),
        ] {
            let answer = described.answer(query);
            let Answer::Error(found, message) = &answer else {
                panic!("{answer:?}")
            };
            assert!(*found == code && message.contains(text), "{answer:?}");
        }
    }
}
