//! The stored form of learned values: the encoded `ResourceValue`. Checksums cover exactly these bytes.

use bytes::Bytes;
use emend_core::{Invalid, ResourceValue};
use emend_proto::common::v1 as pb;
use prost::Message as _;

use crate::{kinds, render};

/// Encodes a value. Deterministic: fields in numeric order, no maps.
pub fn encode(value: &ResourceValue) -> Bytes {
    render::resource_value(value).encode_to_vec().into()
}

/// Decodes a value. A value that this version cannot use is invalid.
pub fn decode(bytes: &[u8]) -> Result<ResourceValue, Invalid> {
    let message =
        pb::ResourceValue::decode(bytes).map_err(|error| Invalid::new(format!("is not a value: {error}")))?;
    let Some(value) = message.value else {
        return Err(Invalid::new("has no value that this version knows"));
    };
    let learned = kinds::learned(&value).map_err(|violations| Invalid::new(violations.to_string()))?;
    let normalization_version = u32::try_from(message.normalization_version).map_err(|_| {
        Invalid::new(format!(
            "has a bad normalisation version {}",
            message.normalization_version
        ))
    })?;
    Ok(ResourceValue {
        display: message.display,
        normalization_version,
        learned,
    })
}

#[cfg(test)]
mod tests {
    use emend_core::{Kind, Learned};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_survive_a_round_trip(display in "\\PC{1,20}", choice in "[a-z]{1,10}", kind in 0..Kind::ALL.len()) {
            let kind = Kind::ALL[kind];
            let choice = if kind == Kind::DomainRule { "unblock:low".to_owned() } else { choice };
            let value = ResourceValue::new(display, Learned::of(kind, choice).unwrap());
            prop_assert_eq!(decode(&encode(&value)).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&bytes);
        }
    }
}
