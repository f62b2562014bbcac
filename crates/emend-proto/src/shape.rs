//! Counts the repeated elements of a request: the repeated fields of messages and of those nested in them, read from
//! the descriptor set.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use prost::{
    Message as _,
    encoding::{WireType, decode_key, decode_varint},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::DESCRIPTOR_SET;

/// prost's own recursion limit.
const DEPTH: usize = 100;

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(DESCRIPTOR_SET)
        .expect("invariant: the descriptor set is built with this crate");
    Shapes::of(&set)
});

/// The shapes of all messages.
struct Shapes {
    messages: HashMap<String, Shape>,
    /// The input messages of all methods.
    requests: HashSet<String>,
}

/// The fields of a message that are repeated or are messages.
type Shape = HashMap<u32, Field>;

struct Field {
    many: bool,
    /// A varint type, so that one packed field may hold many.
    varint: bool,
    /// The name of its message type.
    message: Option<String>,
}

impl Shapes {
    fn of(set: &FileDescriptorSet) -> Self {
        let mut shapes = Self {
            messages: HashMap::new(),
            requests: HashSet::new(),
        };
        for file in &set.file {
            for message in &file.message_type {
                shapes.add(file.package(), message);
            }
            let methods = file.service.iter().flat_map(|service| &service.method);
            shapes
                .requests
                .extend(methods.map(|method| full_name(method.input_type())));
        }
        shapes
    }

    fn add(&mut self, within: &str, message: &DescriptorProto) {
        let name = format!("{within}.{}", message.name());
        for nested in &message.nested_type {
            self.add(&name, nested);
        }
        let fields = message.field.iter().filter_map(field).collect();
        self.messages.insert(name, fields);
    }
}

fn field(field: &FieldDescriptorProto) -> Option<(u32, Field)> {
    let many = field.label() == Label::Repeated;
    let message = (field.r#type() == Type::Message).then(|| full_name(field.type_name()));
    if !many && message.is_none() {
        return None;
    }
    let varint = !matches!(
        field.r#type(),
        Type::Message
            | Type::Group
            | Type::String
            | Type::Bytes
            | Type::Double
            | Type::Float
            | Type::Fixed32
            | Type::Fixed64
            | Type::Sfixed32
            | Type::Sfixed64
    );
    let number = u32::try_from(field.number()).ok()?;
    let field = Field {
        many,
        varint,
        message,
    };
    Some((number, field))
}

/// Names in descriptors have a leading dot.
fn full_name(name: &str) -> String {
    name.trim_start_matches('.').to_owned()
}

/// Whether methods take messages with this name. The name alone decides, so that malformed input does not cause the
/// descriptors to be decoded.
pub(crate) fn is_request(name: &str) -> bool {
    name.ends_with("Request")
}

/// Counts the repeated-field elements and map entries of an encoded request with this name, nested ones included. Stops
/// once the count exceeds `limit`; 0 if the message is not a request. Malformed input is counted as far as it can be
/// read.
pub(crate) fn elements(name: &str, bytes: &[u8], limit: usize) -> usize {
    let mut counting = Counting {
        shapes: &SHAPES,
        count: 0,
        limit,
    };
    if counting.shapes.requests.contains(name) {
        counting.message(name, bytes, DEPTH);
    }
    counting.count
}

struct Counting<'a> {
    shapes: &'a Shapes,
    count: usize,
    limit: usize,
}

impl Counting<'_> {
    /// `None` if the message is incomplete or has too many elements.
    fn message(&mut self, name: &str, mut bytes: &[u8], depth: usize) -> Option<()> {
        let shapes = self.shapes;
        let shape = shapes.messages.get(name)?;
        while !bytes.is_empty() {
            let (number, kind) = decode_key(&mut bytes).ok()?;
            let length = match kind {
                WireType::Varint => {
                    decode_varint(&mut bytes).ok()?;
                    0
                }
                WireType::SixtyFourBit => 8,
                WireType::LengthDelimited => usize::try_from(decode_varint(&mut bytes).ok()?).ok()?,
                WireType::ThirtyTwoBit => 4,
                WireType::StartGroup | WireType::EndGroup => 0,
            };
            let (content, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            let Some(field) = shape.get(&number) else {
                continue;
            };
            if field.many && field.varint && kind == WireType::LengthDelimited {
                // The last byte of each varint is the one without this bit.
                self.add(content.iter().filter(|byte| **byte < 0x80).count())?;
            } else if field.many {
                self.add(1)?;
            }
            if let Some(message) = &field.message
                && kind == WireType::LengthDelimited
                && depth > 0
            {
                self.message(message, content, depth - 1)?;
            }
        }
        Some(())
    }

    fn add(&mut self, elements: usize) -> Option<()> {
        self.count += elements;
        (self.count <= self.limit).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_recognised_by_their_names() {
        assert!(SHAPES.requests.len() > 20);
        for name in SHAPES.messages.keys() {
            assert_eq!(is_request(name), SHAPES.requests.contains(name), "{name}");
        }
    }
}
