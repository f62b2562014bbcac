//! The ways a server can break the stream's protocol.
//!
//! It must know nothing of what is done about it.

/// A message that the protocol does not allow here. None of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The bytes are not a message of the stream.
    #[error("a message cannot be read: {0}")]
    Undecodable(String),
    /// The message is not allowed at this point.
    #[error("{0} was not to be expected here")]
    Unexpected(&'static str),
    /// The message contradicts itself.
    #[error("a bad {message}: {why}")]
    Malformed {
        /// Which.
        message: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The cursor is missing or does not fit this stream.
    #[error("{0} has no cursor, or one of another log, filter or revision")]
    ForeignCursor(&'static str),
    /// Revisions are missing between what is held and what arrived.
    #[error("an update begins at revision {from}, and this node is at {held}")]
    Gap {
        /// What is held.
        held: i64,
        /// Where the update begins.
        from: i64,
    },
    /// What arrived is not newer than what is held.
    #[error("revision {revision} came again or goes back: this node is at {held}")]
    NotNew {
        /// What is held.
        held: i64,
        /// The revision that arrived.
        revision: i64,
    },
    /// A snapshot's resource count differs from what it announced.
    #[error("a snapshot of {stated} resources has {came}")]
    Count {
        /// How many it announced.
        stated: usize,
        /// How many arrived.
        came: usize,
    },
}

impl ProtocolViolation {
    pub(crate) fn malformed(message: &'static str, why: &'static str) -> Self {
        Self::Malformed { message, why }
    }
}
