//! What of a request there can be many: the repeated fields of messages and of all that is within them, read from the
//! descriptor set. It must know nothing of what the messages mean.

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

/// prost goes no deeper.
const DEPTH: usize = 100;

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(DESCRIPTOR_SET)
        .expect("invariant: the descriptor set is built with this crate");
    Shapes::of(&set)
});

/// Of all messages.
struct Shapes {
    messages: HashMap<String, Shape>,
    /// The messages with which methods are called.
    requests: HashSet<String>,
}

/// Of one message: its fields of which there can be many, and those that are messages.
type Shape = HashMap<u32, Field>;

struct Field {
    many: bool,
    /// A number of variable length, so that of many all may come in one field.
    varint: bool,
    /// The message that it is.
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

/// Descriptors write names with a dot before them.
fn full_name(name: &str) -> String {
    name.trim_start_matches('.').to_owned()
}

/// Whether methods are called with messages of that name, by which it can be told alone: so whoever sends what is no
/// protobuf does not have all descriptors decoded for it.
pub(crate) fn is_request(name: &str) -> bool {
    name.ends_with("Request")
}

/// How many elements repeated fields and maps have in an encoded request of that name, those within others included, counted
/// up to one beyond `limit`; of what is no request, none. What is no protobuf is counted as far as it can be read.
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
    /// None where it is not whole, or there are too many.
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
                // The last byte of each is the one without this bit.
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
    fn requests_are_told_by_their_names() {
        assert!(SHAPES.requests.len() > 20);
        for name in SHAPES.messages.keys() {
            assert_eq!(is_request(name), SHAPES.requests.contains(name), "{name}");
        }
    }
}
