//! Every method of both services, by the descriptors of the wire contract.

use std::sync::LazyLock;

use bytes::Bytes;
use emend_base::Entropy;
use emend_client::Effect;
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor,
    ReflectMessage as _, Value,
};
use tonic::Code;

use crate::{Error, json};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(emend_proto::DESCRIPTOR_SET)
        .expect("invariant: the descriptors are compiled protos")
});

/// Methods that only read begin so.
const READING: [&str; 7] = ["Export", "Get", "List", "Preview", "Rank", "Resolve", "Watch"];
/// Methods that may be called twice with one request: their requests have an id, or they are documented to be idempotent.
const CHANGING_ONCE: [&str; 9] = [
    "BatchSubmitFeedback",
    "DeleteEvidence",
    "RecordQuery",
    "RedactFeedback",
    "RedactReporter",
    "RetractFeedback",
    "SubmitFeedback",
    "UpdateFeedbackLabels",
    "UpsertEvidence",
];
/// The field that makes a call idempotent.
const REQUEST_ID: &str = "request_id";

/// How the fields of answers are named. Requests may use either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldNames {
    /// As the protos have them.
    SnakeCase,
    /// As proto3's JSON mapping has them.
    CamelCase,
}

/// A method of a service.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    descriptor: MethodDescriptor,
    pub(crate) path: PathAndQuery,
    pub(crate) effect: Effect,
}

impl Method {
    /// A method by its service and name, for example `FeedbackService/GetFeedback`, with the service's package or without.
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        let unknown = || {
            let message = format!(
                "there is no method {name:?}: it must be SERVICE/METHOD, as in FeedbackService/GetFeedback"
            );
            Error::new(Code::Unimplemented, "NO_SUCH_METHOD", message)
        };
        let (service, method) = name.trim_start_matches('/').split_once('/').ok_or_else(unknown)?;
        let found = POOL
            .services()
            .filter(|known| known.full_name() == service || known.name() == service)
            .find_map(|known| known.methods().find(|known| known.name() == method))
            .ok_or_else(unknown)?;
        let path = format!("/{}/{}", found.parent_service().full_name(), found.name());
        Ok(Self {
            effect: effect(found.name()),
            path: path.parse().map_err(|_| unknown())?,
            descriptor: found,
        })
    }

    /// Whether it answers with a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.descriptor.is_server_streaming()
    }

    /// Whether it takes a stream of requests.
    pub(crate) fn is_upload(&self) -> bool {
        self.descriptor.is_client_streaming()
    }

    /// A request from its JSON, encoded; request ids that are absent are made.
    pub(crate) fn request(&self, json: &str, entropy: &Entropy) -> Result<Bytes, Error> {
        let mut request = parse(self.descriptor.input(), json)?;
        identify(&mut request, entropy);
        Ok(request.encode_to_vec().into())
    }

    /// An answer as JSON.
    pub(crate) fn answer(&self, encoded: Bytes, names: FieldNames) -> Result<String, Error> {
        let answer = DynamicMessage::decode(self.descriptor.output(), encoded).map_err(|error| {
            Error::new(
                Code::Internal,
                "UNREADABLE_ANSWER",
                format!("the server's answer can't be read: {error}"),
            )
        })?;
        Ok(json::message(&answer, names).to_string())
    }
}

/// A message of the contract from its JSON.
pub(crate) fn message(full_name: &str, json: &str) -> Result<DynamicMessage, Error> {
    let kind = POOL
        .get_message_by_name(full_name)
        .expect("invariant: the contract has this message");
    parse(kind, json)
}

fn parse(kind: MessageDescriptor, json: &str) -> Result<DynamicMessage, Error> {
    let name = kind.name().to_owned();
    let mut reader = serde_json::Deserializer::from_str(json);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(kind, &mut reader, &options)
        .map_err(|error| Error::of_field(&name, error.to_string()))
}

fn effect(name: &str) -> Effect {
    if READING.iter().any(|beginning| name.starts_with(beginning)) {
        Effect::Reads
    } else if CHANGING_ONCE.contains(&name) {
        Effect::ChangesOnce
    } else {
        Effect::Changes
    }
}

/// Gives a request, and each request in it, an id if it may have one and has none.
fn identify(request: &mut DynamicMessage, entropy: &Entropy) {
    let kind = request.descriptor();
    for field in kind.fields() {
        if field.name() == REQUEST_ID && field.kind() == Kind::String && !request.has_field(&field) {
            request.set_field(&field, Value::String(entropy.uuid_v4().to_string()));
        } else if field.is_list()
            && matches!(field.kind(), Kind::Message(_))
            && let Value::List(items) = request.get_field_mut(&field)
        {
            for item in items {
                if let Value::Message(item) = item
                    && item.descriptor().get_field_by_name(REQUEST_ID).is_some()
                {
                    identify(item, entropy);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// What a request becomes on its way, as it would be shown.
    fn sent(method: &str, request: &str) -> Result<Json, Error> {
        let method = Method::named(method)?;
        let encoded = method.request(request, &Entropy::seeded(1))?;
        let decoded = DynamicMessage::decode(method.descriptor.input(), encoded).expect("it was encoded");
        Ok(json::message(&decoded, FieldNames::SnakeCase))
    }

    #[test]
    fn every_request_that_may_be_repeated_has_an_id() {
        let one = sent("FeedbackService/SubmitFeedback", "{}").unwrap();
        assert_eq!(one["request_id"].as_str().map(str::len), Some(36), "{one}");
        let own = sent("FeedbackService/SubmitFeedback", r#"{"requestId": "mine"}"#).unwrap();
        assert_eq!(own["request_id"], "mine");
        let batch = r#"{"requests": [{"request_id": "mine"}, {}]}"#;
        let batch = sent("emend.feedback.v1.FeedbackService/BatchSubmitFeedback", batch).unwrap();
        assert_eq!(batch["requests"][0]["request_id"], "mine");
        assert_eq!(
            batch["requests"][1]["request_id"].as_str().map(str::len),
            Some(36)
        );
    }

    #[test]
    fn methods_and_fields_that_do_not_exist_are_named() {
        let error = sent("FeedbackService/Nonsense", "{}").unwrap_err();
        assert_eq!(
            (error.code, error.reason.as_deref()),
            ("UNIMPLEMENTED", Some("NO_SUCH_METHOD"))
        );
        let error = sent("FeedbackService/GetFeedback", r#"{"feedback": "x"}"#).unwrap_err();
        assert_eq!(error.code, "INVALID_ARGUMENT");
        assert!(
            error.text.contains("GetFeedbackRequest") && error.text.contains("feedback"),
            "{error}"
        );
    }

    #[test]
    fn every_method_that_changes_something_once_exists() {
        let names: Vec<String> = POOL
            .services()
            .flat_map(|service| {
                service
                    .methods()
                    .map(|method| method.name().to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        for name in CHANGING_ONCE {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert_eq!(effect("ListFeedback"), Effect::Reads);
        assert_eq!(effect("ApproveCandidate"), Effect::Changes);
    }

    #[test]
    fn an_item_of_a_batch_that_failed_is_shown_as_an_error() {
        let method = Method::named("FeedbackService/BatchSubmitFeedback").unwrap();
        let answer = message(
            "emend.feedback.v1.BatchSubmitFeedbackResponse",
            r#"{"results": [{"status": {"code": 3, "message": "no"}}]}"#,
        )
        .unwrap();
        let shown = method
            .answer(answer.encode_to_vec().into(), FieldNames::CamelCase)
            .unwrap();
        let shown: Json = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["results"][0]["status"]["code"], "INVALID_ARGUMENT");
        assert_eq!(shown["results"][0]["status"]["violations"], json!([]));
    }
}
