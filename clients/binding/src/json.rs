//! Messages of the wire contract as JSON: proto3's mapping, with every scalar present even at its default, 64-bit integers as
//! numbers (none exceeds 2^53; the fixed64 fields are hashes, and strings), and the status of one item of a batch as an error
//! is: code, message, reason, violations.

use emend_base::status::{Explained, from_item_status};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, SerializeOptions, Value as Field,
};
use serde_json::{Map, Value};

use crate::{Error, FieldNames};

/// A message as JSON.
pub(crate) fn message(message: &DynamicMessage, names: FieldNames) -> Value {
    let kind = message.descriptor();
    if kind.full_name() == "emend.common.v1.ItemStatus" {
        return status(message);
    }
    if kind.full_name().starts_with("google.protobuf.") {
        let options = SerializeOptions::new();
        return message
            .serialize_with_options(serde_json::value::Serializer, &options)
            .unwrap_or(Value::Null);
    }
    let mut shown = Map::new();
    for field in kind.fields() {
        if message.has_field(&field) || !field.supports_presence() {
            let name = match names {
                FieldNames::SnakeCase => field.name(),
                FieldNames::CamelCase => field.json_name(),
            };
            shown.insert(name.to_owned(), value(&field, &message.get_field(&field), names));
        }
    }
    shown.into()
}

/// The status of one item; null: it is fine.
fn status(message: &DynamicMessage) -> Value {
    let status = message.transcode_to().ok().as_ref().and_then(from_item_status);
    status.map_or(Value::Null, |status| {
        serde_json::to_value(Error::from(&Explained::from(&status))).unwrap_or(Value::Null)
    })
}

fn value(field: &FieldDescriptor, value: &Field, names: FieldNames) -> Value {
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
        Field::Message(value) => message(value, names),
        Field::List(values) => values
            .iter()
            .map(|item| self::value(field, item, names))
            .collect(),
        Field::Map(values) => {
            let Kind::Message(entry) = field.kind() else {
                return Value::Null;
            };
            let of_value = entry.map_entry_value_field();
            let entries = values
                .iter()
                .map(|(name, item)| (key(name), self::value(&of_value, item, names)));
            Value::Object(entries.collect())
        }
    }
}

fn key(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}
