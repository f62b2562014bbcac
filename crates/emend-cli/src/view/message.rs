//! Any message as JSON, by its descriptor, and where what is shown differs from the message.

use std::sync::LazyLock;

use emend_base::status::{Explained, code_name, from_item_status};
use emend_core::ratings::RatingClass;
use emend_proto::common::v1::{ResourceValue, resource_value::Value as Learned};
use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _,
    Value as Field,
};
use serde_json::{Map, Value, json};

use super::{learned, span, time};
use crate::failure::explained_to_json;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(emend_proto::DESCRIPTOR_SET)
        .expect("invariant: the descriptors are compiled protos")
});

/// Messages that show what is absent as null.
const WITH_NULLS: [&str; 9] = [
    "NearLookupValue",
    "QueryInteraction",
    "RatedValue",
    "RatingShare",
    "RevertLeft",
    "SearchRatingState",
    "SearchTuningValue",
    "StatsCompared",
    "TuningCorrection",
];

/// A message as JSON.
pub fn message<M: Message + Name>(message: &M) -> Value {
    let kind = POOL.get_message_by_name(&M::full_name());
    let kind = kind.expect("invariant: every message of the contract has a descriptor");
    let message = DynamicMessage::decode(kind, &*message.encode_to_vec());
    object(&message.expect("invariant: what was encoded can be decoded"))
}

fn object(message: &DynamicMessage) -> Value {
    let kind = message.descriptor();
    match kind.name() {
        "Timestamp" => return time(message.transcode_to().ok().as_ref()),
        "Duration" => return span(message.transcode_to().ok().as_ref()),
        "ItemStatus" => {
            let status = message.transcode_to().ok().as_ref().and_then(from_item_status);
            return status.map_or(Value::Null, |status| explained_to_json(&Explained::from(&status)));
        }
        "Correction" if message.fields().next().is_none() => return Value::Null,
        "NearLookupValue" | "SearchTuningValue"
            if message.get_field_by_name("cleared").as_deref() == Some(&Field::Bool(true)) =>
        {
            return json!({"cleared": true});
        }
        _ => {}
    }
    let with_nulls = WITH_NULLS.contains(&kind.name());
    let mut shown = Map::new();
    for field in kind.fields() {
        let Some(name) = name(&kind, &field) else { continue };
        let is_there = message.has_field(&field) || !field.supports_presence();
        let value = if is_there {
            value(&kind, &field, &message.get_field(&field))
        } else {
            Value::Null
        };
        let is_choice = field
            .containing_oneof()
            .is_some_and(|choice| !choice.is_synthetic());
        if !value.is_null() || (with_nulls && !is_choice) {
            shown.insert(name.to_owned(), value);
        }
    }
    if kind.name() == "ResourceValue"
        && let Ok(value) = message.transcode_to()
    {
        show_learned(&value, &mut shown);
    }
    shown.into()
}

/// A field's name as it is shown; `None`: the field is not shown.
fn name<'f>(kind: &MessageDescriptor, field: &'f FieldDescriptor) -> Option<&'f str> {
    match (kind.name(), field.name()) {
        ("ReviewResult", "status") => Some("error"),
        ("RevertRevisionResponse", "revision") => Some("lastRevision"),
        ("Candidate", "ruling")
        | ("NodeInfo", "transient")
        | ("QueryInteraction", "query_id")
        | ("Revision", "changes_continue")
        | ("RevisionChange", "after_checksum" | "value_dropped")
        | ("NearLookupValue" | "SearchTuningValue", "cleared") => None,
        _ => Some(field.json_name()),
    }
}

/// A field's value; null: it is left out.
fn value(kind: &MessageDescriptor, field: &FieldDescriptor, value: &Field) -> Value {
    match (kind.name(), field.name(), value) {
        ("DeadLetter", "code", Field::I32(code)) => code_name((*code).into()).into(),
        ("RatedValue", "counts_as", Field::EnumNumber(number)) => {
            RatingClass::from_number(*number).map(RatingClass::name).into()
        }
        ("Settings", "max_queries", Field::I32(0)) => Value::Null,
        _ => plain(field, value),
    }
}

/// A value as it is everywhere but in what [`value`] lists.
fn plain(field: &FieldDescriptor, value: &Field) -> Value {
    match value {
        Field::Bool(value) => (*value).into(),
        Field::I32(value) => (*value).into(),
        Field::I64(value) => (*value).into(),
        Field::U32(value) => (*value).into(),
        Field::U64(hash) if field.kind() == Kind::Fixed64 => hash.to_string().into(),
        Field::U64(value) => (*value).into(),
        Field::F32(value) => (*value).into(),
        Field::F64(value) => (*value).into(),
        Field::String(value) => value.as_str().into(),
        Field::Bytes(value) => value.to_vec().into(),
        Field::EnumNumber(number) => {
            let Kind::Enum(kind) = field.kind() else {
                return Value::Null;
            };
            kind.get_value(*number)
                .map_or_else(|| (*number).into(), |value| value.name().into())
        }
        Field::Message(value) => object(value),
        Field::List(values) => values.iter().map(|value| plain(field, value)).collect(),
        Field::Map(values) => {
            let entries = values
                .iter()
                .filter_map(|(name, value)| Some((name.as_str()?.to_owned(), plain(field, value))));
            Value::Object(entries.collect())
        }
    }
}

/// Shows the fields of what was learned by the names and words that every kind of value has.
fn show_learned(value: &ResourceValue, shown: &mut Map<String, Value>) {
    use Learned::{FewShotSet, NearLookup, Profile, Prompt, SearchTuning};
    if let Some(FewShotSet(_) | NearLookup(_) | Prompt(_) | Profile(_) | SearchTuning(_)) = &value.value {
        return;
    }
    shown.retain(|name, _| ["display", "normalizationVersion"].contains(&name.as_str()));
    if let Some(learned) = learned(Some(value)) {
        let fields = learned.fields().into_iter();
        let fields = fields.map(|field| (camel_case(field.name), field.text.into_owned().into()));
        shown.insert(camel_case(learned.kind().name()), Value::Object(fields.collect()));
    }
}

/// A name of the wire contract as JSON has it.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(usize::from(!word.is_empty()));
        name + &initial.to_ascii_uppercase() + rest
    })
}
