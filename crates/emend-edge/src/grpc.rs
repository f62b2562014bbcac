//! The same look-ups over gRPC. Questions and answers have the fields that they have in JSON, so that each is read and written by
//! its one type.

use std::{sync::Arc, sync::LazyLock, time::Duration};

use emend_base::error::{DOMAIN, item_status};
use emend_binding::Error;
use emend_client::{Namespace, Violations};
use emend_proto::edge::{
    DESCRIPTOR_SET,
    v1::{Answer, LookUpRequest, LookUpResponse, Question, answer, look_up_service_server::LookUpService},
};
use emend_serve::auth::{self, Call, Namespaces, Reaches, Role, Rule, rule};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde::Serialize;
use serde_json::{Map, Value};
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{
    caller::Caller,
    fields::{LONGEST, PATIENCE},
    lookups::{self, Lookup, Visitor},
    routes::{MOST, Shared, revision},
};

/// Who may call what.
pub(crate) const RULES: [Rule; 1] = [rule(
    "/emend.edge.v1.LookUpService/LookUp",
    Role::Subscriber,
    Reaches::One,
)];

struct Messages;

emend_serve::addresses! {
    Messages;
    LookUpRequest => |it| Namespaces::One(&it.namespace);
}

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(DESCRIPTOR_SET).expect("invariant: the descriptors are compiled protos")
});

/// Implements `emend.edge.v1.LookUpService`.
#[derive(Debug, Clone)]
pub(crate) struct LookUps(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl LookUpService for LookUps {
    async fn look_up(&self, request: Request<LookUpRequest>) -> Result<Response<LookUpResponse>, Status> {
        let Call { access, message } = auth::open::<Messages, _>(request)?;
        let within = checked(&message).map_err(emend_base::Error::from)?;
        let LookUpRequest {
            namespace,
            questions,
            min_revision,
            ..
        } = message;
        let (shared, caller) = (&self.0, Caller::with(access));
        shared
            .followed
            .check(&namespace)
            .map_err(|error| status_of(&error))?;
        if min_revision > 0 {
            let waiting = shared.node.wait_for_revision(min_revision, within);
            waiting.await.map_err(|error| status_of(&error))?;
        }
        let revision = revision(&shared.node).map_err(|error| status_of(&error))?;
        let answers = questions
            .into_iter()
            .map(|question| answered(shared, &caller, &namespace, &question));
        Ok(Response::new(LookUpResponse {
            revision,
            answers: answers.collect(),
        }))
    }
}

/// How long the revision is waited for, or every field that is wrong.
fn checked(request: &LookUpRequest) -> Result<Duration, Violations> {
    let mut violations = Violations::new();
    violations.check("namespace", Namespace::parse(&request.namespace));
    let count = request.questions.len();
    if count == 0 || count > MOST {
        violations.add("questions", format!("must be 1 to {MOST}, are {count}"));
    }
    if request.min_revision < 0 {
        let why = format!("must be at least 0, is {}", request.min_revision);
        violations.add("min_revision", why);
    }
    let within = match request.timeout {
        None => Some(Duration::from_secs_f64(PATIENCE)),
        Some(timeout) => {
            let within = Duration::try_from(timeout).ok();
            let within = within.filter(|within| within.as_secs_f64() <= LONGEST);
            if within.is_none() {
                violations.add("timeout", format!("must be 0 to {LONGEST} s"));
            }
            within
        }
    };
    violations.finish(within)
}

fn answered(shared: &Shared, caller: &Caller, namespace: &str, question: &Question) -> Answer {
    let answer = asked(question)
        .and_then(|(name, asked)| {
            let mut answering = Answering {
                shared,
                caller,
                namespace,
                name: &name,
                asked,
                answer: None,
            };
            lookups::each(&mut answering);
            let unknown = || Err(Error::of_field("question", format!("{name} is unknown")));
            answering
                .answer
                .unwrap_or_else(unknown)
                .map(|answer| (name, answer))
        })
        .and_then(|(name, answer)| written(name, answer));
    answer.unwrap_or_else(|error| Answer {
        answer: Some(answer::Answer::Error(item_status(&status_of(&error)))),
    })
}

/// The look-up that a question names, with what it takes.
fn asked(question: &Question) -> Result<(String, Value), Error> {
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false);
    let json = dynamic(question).and_then(|message| {
        let written = message.serialize_with_options(serde_json::value::Serializer, &options);
        written.map_err(|error| defect(&error))
    })?;
    let Value::Object(fields) = json else {
        return Err(Error::of_field("question", "must be given"));
    };
    let named = fields.into_iter().next();
    named.ok_or_else(|| Error::of_field("question", "must be given"))
}

/// An answer with these fields.
fn written(name: String, answer: Value) -> Result<Answer, Error> {
    let fields = Value::Object(Map::from_iter([(name, answer)]));
    let message = descriptor("Answer").and_then(|descriptor| {
        DynamicMessage::deserialize(descriptor, fields).map_err(|error| defect(&error))
    })?;
    Answer::decode(&*message.encode_to_vec()).map_err(|error| defect(&error))
}

fn dynamic(question: &Question) -> Result<DynamicMessage, Error> {
    let descriptor = descriptor("Question")?;
    DynamicMessage::decode(descriptor, &*question.encode_to_vec()).map_err(|error| defect(&error))
}

fn descriptor(name: &str) -> Result<prost_reflect::MessageDescriptor, Error> {
    let found = POOL.get_message_by_name(&format!("emend.edge.v1.{name}"));
    found.ok_or_else(|| Error::new(Code::Internal, "INTERNAL", "the protos are incomplete"))
}

/// The protos and the types of the look-ups differ.
fn defect(error: &dyn std::error::Error) -> Error {
    tracing::error!(%error, "a look-up can't be read or written as its proto says");
    Error::new(Code::Internal, "INTERNAL", "internal error")
}

/// Answers the look-up of a name.
struct Answering<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    namespace: &'a str,
    /// With `_` where its name in addresses has `-`.
    name: &'a str,
    asked: Value,
    answer: Option<Result<Value, Error>>,
}

impl Visitor for Answering<'_> {
    fn visit<L: Lookup + 'static>(&mut self) {
        if L::NAME.replace('-', "_") != self.name {
            return;
        }
        let answer = self.shared.answer::<L>(self.caller, self.namespace, &self.asked);
        let json = |answer: L::Answer| {
            answer
                .serialize(serde_json::value::Serializer)
                .map_err(|error| defect(&error))
        };
        self.answer = Some(answer.and_then(json));
    }
}

/// An error as gRPC's callers are told it.
fn status_of(error: &Error) -> Status {
    let mut details = ErrorDetails::new();
    for violation in &error.violations {
        details.add_bad_request_violation(&violation.field, &violation.description);
    }
    if let Some(reason) = &error.reason {
        details.set_error_info(reason, DOMAIN, []);
    }
    let code = match error.code {
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "NOT_FOUND" => Code::NotFound,
        "PERMISSION_DENIED" => Code::PermissionDenied,
        "FAILED_PRECONDITION" => Code::FailedPrecondition,
        "DEADLINE_EXCEEDED" => Code::DeadlineExceeded,
        "UNAVAILABLE" => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::with_error_details(code, error.message.clone(), details)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost_reflect::{Kind, MessageDescriptor};
    use schemars::{
        JsonSchema,
        generate::{Contract, SchemaSettings},
    };

    use super::*;

    /// Compares the fields of a type with those of its message.
    fn compare(schema: &Value, message: &MessageDescriptor) {
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        let of_type: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        let names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
        let of_message: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(of_message, of_type, "{}", message.full_name());
        for field in message.fields() {
            let Kind::Message(inner) = field.kind() else {
                continue;
            };
            if field.is_map() || inner.package_name() != "emend.edge.v1" {
                continue;
            }
            let given = &fields[field.name()];
            let given = given.get("anyOf").map_or(given, |others| &others[0]);
            compare(given.get("items").unwrap_or(given), &inner);
        }
    }

    fn schema<T: JsonSchema>(contract: Contract) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.contract = contract;
        });
        settings.into_generator().into_root_schema_for::<T>().to_value()
    }

    struct Compared(BTreeSet<String>);

    impl Visitor for Compared {
        fn visit<L: Lookup + 'static>(&mut self) {
            let name = L::NAME.replace('-', "_");
            let kind = |message: &str| {
                let message = descriptor(message).unwrap();
                let field = message.get_field_by_name(&name).unwrap();
                match field.kind() {
                    Kind::Message(message) => message,
                    other => panic!("{name}: {other:?}"),
                }
            };
            compare(&schema::<L>(Contract::Deserialize), &kind("Question"));
            compare(&schema::<L::Answer>(Contract::Serialize), &kind("Answer"));
            self.0.insert(name);
        }
    }

    #[test]
    fn questions_and_answers_have_the_fields_that_they_have_in_json() {
        let mut compared = Compared(BTreeSet::new());
        lookups::each(&mut compared);
        let questions = descriptor("Question").unwrap();
        let questions: BTreeSet<String> = questions.fields().map(|field| field.name().to_owned()).collect();
        assert_eq!(questions, compared.0);
    }

    #[test]
    fn every_field_of_a_request_that_is_wrong_is_named() {
        let request = LookUpRequest {
            namespace: "No Name".into(),
            min_revision: -1,
            timeout: Some(prost_types::Duration {
                seconds: 61,
                nanos: 0,
            }),
            ..LookUpRequest::default()
        };
        let found = checked(&request).unwrap_err().into_vec();
        let fields: Vec<_> = found.iter().map(|violation| &*violation.field).collect();
        assert_eq!(fields, ["namespace", "questions", "min_revision", "timeout"]);
    }
}
