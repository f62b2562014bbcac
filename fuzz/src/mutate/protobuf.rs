//! Mutates protobuf messages by field and corrects every length, so that a change deep within a message reaches the
//! code that parses it. It knows the encoding, but not what any field means.

use rand::{RngExt as _, rngs::StdRng};

use super::{change_text, number};

/// Deeper messages are left alone; prost's own limit is a hundred.
const DEPTH: usize = 110;

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    number: u64,
    value: Value,
}

/// The message with one change. Input that is not a message is changed as bytes.
pub(super) fn changed(rng: &mut StdRng, message: &[u8], other: &[u8]) -> Vec<u8> {
    changed_within(rng, message, other, 0)
}

fn changed_within(rng: &mut StdRng, message: &[u8], other: &[u8], depth: usize) -> Vec<u8> {
    let Some(mut fields) = parse(message) else {
        let mut bytes = message.to_vec();
        super::change_anything(rng, &mut bytes, other);
        return bytes;
    };
    if fields.is_empty() || rng.random_ratio(1, 12) {
        let new = new_field(rng, other);
        let at = rng.random_range(0..=fields.len());
        fields.insert(at, new);
        return encode(&fields);
    }
    let at = rng.random_range(0..fields.len());
    match rng.random_range(0..12) {
        0 => {
            fields.remove(at);
        }
        1 => {
            let times = [1, 2, 33, 300][rng.random_range(0..4)];
            let again = fields[at].clone();
            fields.extend(std::iter::repeat_n(again, times));
        }
        2 => {
            let to = rng.random_range(0..fields.len());
            fields.swap(at, to);
        }
        3 => fields[at].number = rng.random_range(1..=20),
        4 => {
            // Nest the message in itself repeatedly.
            let number = fields[at].number;
            let mut nested = message.to_vec();
            for _ in 0..rng.random_range(1..DEPTH) {
                nested = encode(&[Field {
                    number,
                    value: Value::Bytes(nested),
                }]);
            }
            return nested;
        }
        _ => {
            let value = &mut fields[at].value;
            match value {
                Value::Varint(varint) => *varint = number(rng),
                Value::Fixed64(bytes) => *bytes = number(rng).to_le_bytes(),
                Value::Fixed32(bytes) => bytes.copy_from_slice(&number(rng).to_le_bytes()[..4]),
                Value::Bytes(bytes) => {
                    let is_message = depth < DEPTH && !bytes.is_empty() && parse(bytes).is_some();
                    if is_message && rng.random_ratio(4, 5) {
                        *bytes = changed_within(rng, bytes, other, depth + 1);
                    } else {
                        change_text(rng, bytes, other);
                        if rng.random_ratio(9, 10) {
                            *bytes = String::from_utf8_lossy(bytes).into_owned().into_bytes();
                        }
                    }
                }
            }
        }
    }
    encode(&fields)
}

/// A field of the other message, or one with a random number and value.
fn new_field(rng: &mut StdRng, other: &[u8]) -> Field {
    let others = parse(other).unwrap_or_default();
    if !others.is_empty() && rng.random_ratio(2, 3) {
        return others[rng.random_range(0..others.len())].clone();
    }
    let mut bytes = Vec::new();
    change_text(rng, &mut bytes, other);
    Field {
        number: rng.random_range(1..=20),
        value: match rng.random_range(0..4) {
            0 => Value::Varint(number(rng)),
            1 => Value::Fixed64(number(rng).to_le_bytes()),
            2 => Value::Fixed32([0xff; 4]),
            _ => Value::Bytes(bytes),
        },
    }
}

fn parse(mut message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut message)?),
            1 => {
                let (bytes, rest) = message.split_first_chunk()?;
                message = rest;
                Value::Fixed64(*bytes)
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Value::Bytes(bytes.to_vec())
            }
            5 => {
                let (bytes, rest) = message.split_first_chunk()?;
                message = rest;
                Value::Fixed32(*bytes)
            }
            _ => return None,
        };
        fields.push(Field {
            number: tag >> 3,
            value,
        });
    }
    Some(fields)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn encode(fields: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for Field { number, value } in fields {
        let tag = |wire_type: u64| number << 3 | wire_type;
        match value {
            Value::Varint(value) => {
                put_varint(&mut message, tag(0));
                put_varint(&mut message, *value);
            }
            Value::Fixed64(bytes) => {
                put_varint(&mut message, tag(1));
                message.extend_from_slice(bytes);
            }
            Value::Bytes(bytes) => {
                put_varint(&mut message, tag(2));
                put_varint(&mut message, bytes.len() as u64);
                message.extend_from_slice(bytes);
            }
            Value::Fixed32(bytes) => {
                put_varint(&mut message, tag(5));
                message.extend_from_slice(bytes);
            }
        }
    }
    message
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    message.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{Correction, VerbCorrection, correction::Correction as Oneof};
    use prost::Message as _;
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn messages_are_split_into_fields_and_reassembled() {
        let verb = VerbCorrection {
            original_input: "set up a CSA".into(),
            system_choice: "a".repeat(300),
            correct_choice: "create_csa".into(),
        };
        let bytes = Correction {
            correction: Some(Oneof::Verb(verb)),
        }
        .encode_to_vec();
        let fields = parse(&bytes).unwrap();
        assert_eq!(fields.len(), 1);
        assert_eq!(encode(&fields), bytes);
        assert_eq!(parse(&[0xff; 12]), None);
    }

    #[test]
    fn most_mutations_of_a_message_can_be_decoded() {
        let bytes = Correction {
            correction: Some(Oneof::Verb(VerbCorrection {
                original_input: "set up a CSA".into(),
                correct_choice: "create_csa".into(),
                ..Default::default()
            })),
        }
        .encode_to_vec();
        let mut rng = StdRng::seed_from_u64(1);
        let readable = (0..1_000)
            .filter(|_| Correction::decode(changed(&mut rng, &bytes, &bytes).as_slice()).is_ok())
            .count();
        assert!(readable > 800, "{readable} of 1,000");
    }
}
