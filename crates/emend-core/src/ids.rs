//! Ids as types, built only by parsing: every id that exists is valid.

use std::{fmt, sync::Arc};

use uuid::Uuid;

use crate::violation::{Invalid, bounded_text};

/// A string that exists only if it is valid. Cloning is cheap.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $parse:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses it. The error names the bound.
            pub fn parse(raw: &str) -> Result<Self, Invalid> {
                let parse: fn(&str) -> Result<String, Invalid> = $parse;
                parse(raw).map(|text| Self(text.into()))
            }

            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &self.0)
            }
        }
    };
}

text_id!(
    /// One search application: 1 to 63 characters of `[a-z0-9-]`, beginning and ending with a letter or digit.
    Namespace,
    |raw| {
        const FORM: &str = "must be 1 to 63 characters of [a-z0-9-], beginning and ending with a letter or digit";
        let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let bytes = raw.as_bytes();
        let valid = (1..=63).contains(&bytes.len())
            && bytes.iter().all(|&c| alphanumeric(c) || c == b'-')
            && alphanumeric(bytes[0])
            && alphanumeric(bytes[bytes.len() - 1]);
        if valid { Ok(raw.to_owned()) } else { Err(Invalid::new(FORM)) }
    }
);

text_id!(
    /// The authenticated client that sent something: 1 to 256 characters.
    Caller,
    |raw| bounded_text(raw, 1, 256)
);

text_id!(
    /// The person or agent behind a correction, as the caller asserts it: 1 to 128 characters, not beginning with `erased:`.
    ReporterId,
    |raw| {
        if raw.starts_with(ERASED) {
            return Err(Invalid::new("must not begin with erased:, which is reserved for pseudonyms of erased users"));
        }
        bounded_text(raw, 1, 128)
    }
);

text_id!(
    /// The user whose own preference a resource is: 1 to 128 characters.
    UserId,
    |raw| bounded_text(raw, 1, 128)
);

text_id!(
    /// Makes a submission idempotent: a UUID or 1 to 64 characters of `[A-Za-z0-9._-]`.
    RequestId,
    |raw| {
        if (1..=64).contains(&raw.len()) && raw.bytes().all(is_token) {
            Ok(raw.to_owned())
        } else {
            Err(Invalid::new("must be a UUID or 1 to 64 characters of [A-Za-z0-9._-]"))
        }
    }
);

text_id!(
    /// A search that a backend ran, by the backend's own id: 1 to 128 characters.
    QueryId,
    |raw| bounded_text(raw, 1, 128)
);

text_id!(
    /// A search node: 1 to 128 characters of `[A-Za-z0-9._:-]`.
    NodeId,
    |raw| {
        if (1..=128).contains(&raw.len()) && raw.bytes().all(|c| is_token(c) || c == b':') {
            Ok(raw.to_owned())
        } else {
            Err(Invalid::new("must be 1 to 128 characters of [A-Za-z0-9._:-]"))
        }
    }
);

fn is_token(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-')
}

impl Caller {
    /// The caller when authentication is off.
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }

    /// Emend's own background work.
    pub fn system() -> Self {
        Self("system".into())
    }
}

/// Begins the pseudonym that takes the place of an erased user's id.
const ERASED: &str = "erased:";

impl UserId {
    /// The pseudonym of an erased user, in that form alone: no other id begins like it.
    pub fn erased(pseudonym: Uuid) -> Self {
        Self(format!("{ERASED}{pseudonym}").into())
    }

    /// Whether it is the pseudonym of an erased user.
    pub fn is_erased(&self) -> bool {
        self.0.starts_with(ERASED)
    }
}

impl From<&ReporterId> for UserId {
    /// A reporter's own preferences are kept under the reporter's id.
    fn from(reporter: &ReporterId) -> Self {
        Self(Arc::clone(&reporter.0))
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Parses the hyphenated form.
            pub fn parse(raw: &str) -> Result<Self, Invalid> {
                Uuid::try_parse(raw)
                    .ok()
                    .filter(|id| raw.len() == 36 && !id.is_nil())
                    .map(Self)
                    .ok_or_else(|| Invalid::new("must be a UUID such as 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

uuid_id!(
    /// A stored correction.
    FeedbackId
);
impl FeedbackId {
    /// Of no feedback: what concerns a reporter as a whole has this id. It is never parsed.
    pub const fn none() -> Self {
        Self(Uuid::nil())
    }
}

uuid_id!(
    /// Something that happened to a feedback item.
    EventId
);
uuid_id!(
    /// A contest. Derived from its resource key, so that all replicas agree on it.
    ContestId
);
uuid_id!(
    /// A candidate. Derived from its contest and value, so that all replicas agree on it.
    CandidateId
);
uuid_id!(
    /// Groups the revisions of one import or bulk action.
    OperationId
);
uuid_id!(
    /// An epoch of the revision log.
    Epoch
);
uuid_id!(
    /// An installation of Emend: minted once, when its databases are created, and kept by backups and new epochs.
    InstallationId
);

/// A position in the revision log; 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub i64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Decides which of two corrections is newer. Assigned by the feedback database, never by a process clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AcceptOrder(pub i64);

impl fmt::Display for AcceptOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Joins fields unambiguously: each is preceded by its length (u32 little-endian).
pub(crate) fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 4).sum());
    for part in parts {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_a_single_valid_form() {
        for good in ["a", "fund-admin", "0", &"x".repeat(63)] {
            assert!(Namespace::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", " a", "ä", &"x".repeat(64)] {
            assert!(Namespace::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn uuids_are_accepted_in_the_hyphenated_form_only() {
        assert!(FeedbackId::parse("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10").is_ok());
        for bad in [
            "",
            "0192d3c57a0e7b519c553d5f0a4e8f10",
            "00000000-0000-0000-0000-000000000000",
            "x",
        ] {
            assert!(FeedbackId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn request_ids_are_tokens() {
        assert!(RequestId::parse("a.B_9-").is_ok());
        for bad in ["", "a b", "ä", &"x".repeat(65)] {
            assert!(RequestId::parse(bad).is_err(), "{bad}");
        }
    }
}
