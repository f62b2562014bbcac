//! The stored form of learned values: the encoded `ResourceValue`. Checksums cover exactly these bytes.

use bytes::Bytes;
use emend_core::{Invalid, Kind, ResourceValue};
use emend_proto::common::v1::{self as pb, resource_value::Value};
use prost::Message as _;

use crate::render;

/// Encodes a value. Deterministic: fields in numeric order, no maps.
pub fn encode(value: &ResourceValue) -> Bytes {
    render::resource_value(value).encode_to_vec().into()
}

/// Decodes a value. A value that this version cannot use is invalid.
pub fn decode(bytes: &[u8]) -> Result<ResourceValue, Invalid> {
    let message =
        pb::ResourceValue::decode(bytes).map_err(|error| Invalid::new(format!("is not a value: {error}")))?;
    let (kind, choice) = match message.value {
        None => return Err(Invalid::new("has no value that this version knows")),
        Some(Value::InvocationPhrase(value)) => (Kind::InvocationPhrase, value.verb),
        Some(Value::EntityAlias(value)) => (Kind::EntityAlias, value.entity_id),
        Some(Value::Prohibition(value)) => (Kind::Prohibition, value.forbidden_choice),
    };
    let normalization_version = u32::try_from(message.normalization_version).map_err(|_| {
        Invalid::new(format!(
            "has a bad normalisation version {}",
            message.normalization_version
        ))
    })?;
    Ok(ResourceValue {
        display: message.display,
        normalization_version,
        learned: emend_core::Learned::of(kind, emend_core::kinds::parse_choice(&choice)?),
    })
}

#[cfg(test)]
mod tests {
    use emend_core::Learned;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_survive_a_round_trip(display in "\\PC{1,20}", choice in "[a-z]{1,10}", kind in 0usize..3) {
            let value = ResourceValue::new(display, Learned::of(Kind::ALL[kind], choice));
            prop_assert_eq!(decode(&encode(&value)).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&bytes);
        }
    }
}
