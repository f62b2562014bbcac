//! Decodes a resource's value, or says why this node cannot use it.
//!
//! A resource that a node cannot use never holds back the others: it is kept as received, counts in digests and is
//! reported, and the view answers as if nothing were learned for its key. An older value is not kept in its place,
//! because the server no longer holds it.

use std::fmt;

use emend_core::{Invalid, Kind, NORMALIZATION_VERSION, ResourceValue, digest::value_checksum};

use super::key::KeyParts;

/// Why a resource cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The value's bytes are not those the server stored.
    ChecksumMismatch {
        /// The checksum sent with it.
        stated: u64,
        /// The checksum of the bytes received.
        computed: u64,
    },
    /// The kind with this number is unknown to this version.
    UnknownKind(i32),
    /// The value cannot be decoded.
    Undecodable(String),
    /// The value is of another kind than the key.
    KindMismatch {
        /// The key's.
        key: Kind,
        /// The value's.
        value: Kind,
    },
    /// The key was normalised by a version unknown to this one, so no look-up would find it.
    UnknownNormalization(u32),
    /// The field of the value that says the key's qualifier disagrees with it.
    QualifierMismatch,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChecksumMismatch { stated, computed } => {
                write!(
                    f,
                    "the value's checksum is {computed:016x}, not {stated:016x} as stated"
                )
            }
            Self::UnknownKind(number) => write!(f, "kind {number} is not known to this version"),
            Self::Undecodable(why) => write!(f, "the value {why}"),
            Self::KindMismatch { key, value } => write!(f, "a key of kind {key} has a value of kind {value}"),
            Self::UnknownNormalization(version) => {
                write!(
                    f,
                    "the key was normalised by version {version}; this client knows {NORMALIZATION_VERSION}"
                )
            }
            Self::QualifierMismatch => f.write_str("the value is for a key with another qualifier"),
        }
    }
}

/// The value, if this node can use it. `stated` is the checksum that came with it.
pub(crate) fn decode(key: KeyParts<'_>, value: &[u8], stated: u64) -> Result<ResourceValue, Rejection> {
    let computed = value_checksum(value);
    if computed != stated {
        return Err(Rejection::ChecksumMismatch { stated, computed });
    }
    let kind = Kind::from_number(key.kind).ok_or(Rejection::UnknownKind(key.kind))?;
    let value = emend_wire::value::decode(value).map_err(|Invalid(why)| Rejection::Undecodable(why))?;
    if value.learned.kind() != kind {
        return Err(Rejection::KindMismatch {
            key: kind,
            value: value.learned.kind(),
        });
    }
    if value.normalization_version != kind.rules().key.normalization_version() {
        return Err(Rejection::UnknownNormalization(value.normalization_version));
    }
    let of_value = value.learned.qualifier_of_key().transpose();
    let of_value = of_value.map_err(|Invalid(why)| Rejection::Undecodable(why))?;
    // Where the value does not say it, it is one that this version knows.
    let expected = match (of_value, kind.rules().qualifier) {
        (None, Some(qualifier)) => qualifier.form.parse(key.qualifier).unwrap_or_default(),
        (of_value, _) => of_value.unwrap_or_default(),
    };
    if expected != key.qualifier {
        return Err(Rejection::QualifierMismatch);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use emend_core::Learned;

    use super::*;

    fn key(kind: i32, qualifier: &'static str) -> KeyParts<'static> {
        KeyParts {
            namespace: "fund-admin",
            kind,
            key: "set up a csa",
            qualifier,
            user_id: "",
        }
    }

    fn decoded(key: KeyParts<'_>, value: &ResourceValue) -> Result<ResourceValue, Rejection> {
        let bytes = emend_wire::value::encode(value);
        decode(key, &bytes, value_checksum(&bytes))
    }

    #[test]
    fn a_valid_resource_is_decoded() {
        let value = ResourceValue::new("Set up a CSA", Learned::Verb("create_csa".into()));
        assert_eq!(decoded(key(1, ""), &value), Ok(value));
    }

    #[test]
    fn each_rejection_says_what_is_wrong() {
        let verb = ResourceValue::new("Set up a CSA", Learned::Verb("create_csa".into()));
        let forbidden = ResourceValue::new("Set up a CSA", Learned::Forbidden("create_csa".into()));
        let newer = ResourceValue {
            normalization_version: 2,
            ..verb.clone()
        };
        assert_eq!(decoded(key(99, ""), &verb), Err(Rejection::UnknownKind(99)));
        assert!(matches!(
            decoded(key(2, ""), &verb),
            Err(Rejection::KindMismatch { .. })
        ));
        assert_eq!(
            decoded(key(1, ""), &newer),
            Err(Rejection::UnknownNormalization(2))
        );
        assert_eq!(
            decoded(key(3, "other"), &forbidden),
            Err(Rejection::QualifierMismatch)
        );
        assert!(matches!(
            decode(key(1, ""), b"x", 1),
            Err(Rejection::ChecksumMismatch { stated: 1, .. })
        ));
        assert!(matches!(
            decode(key(1, ""), b"\xff", value_checksum(b"\xff")),
            Err(Rejection::Undecodable(_))
        ));
    }
}
