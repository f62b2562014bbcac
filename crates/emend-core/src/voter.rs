//! Who votes: a reporter known by id, or a voter derived from the caller. Stored under a pseudonym.

use crate::ids::{Caller, Namespace, ReporterId, length_prefixed};

/// Identifies a voter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Voter {
    /// A reporter known by id; counts by itself.
    Reporter(ReporterId),
    /// Derived from a caller's session, or from the caller alone. The policy caps how many derived voters of one caller
    /// count.
    Derived {
        /// The authenticated client.
        caller: Caller,
        /// The session, if one was given.
        session: Option<String>,
    },
}

impl Voter {
    /// The reporter if known, else (caller, session), else the caller.
    pub fn new(reporter: Option<ReporterId>, caller: Caller, session: Option<String>) -> Self {
        match reporter {
            Some(reporter) => Self::Reporter(reporter),
            None => Self::Derived { caller, session },
        }
    }

    /// Whether the voter counts by itself.
    pub fn is_identified(&self) -> bool {
        matches!(self, Self::Reporter(_))
    }
}

/// A voter's pseudonym in one namespace. Ballots store it, so that erasing a reporter's name leaves the counts as they
/// are. It differs between namespaces, so that nobody can be tracked across them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VoterKey(pub uuid::Uuid);

/// The UUID namespace of voter keys (RFC 9562, version 5).
const VOTERS: uuid::Uuid = uuid::Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e02);

impl Voter {
    /// The pseudonym under which this voter's ballots are stored in `namespace`.
    pub fn key(&self, namespace: &Namespace) -> VoterKey {
        let namespace = namespace.as_str().as_bytes();
        let bytes = match self {
            Self::Reporter(reporter) => length_prefixed(&[namespace, b"r", reporter.as_str().as_bytes()]),
            Self::Derived {
                caller,
                session: Some(session),
            } => length_prefixed(&[namespace, b"s", caller.as_str().as_bytes(), session.as_bytes()]),
            Self::Derived {
                caller,
                session: None,
            } => length_prefixed(&[namespace, b"c", caller.as_str().as_bytes()]),
        };
        VoterKey(uuid::Uuid::new_v5(&VOTERS, &bytes))
    }
}
