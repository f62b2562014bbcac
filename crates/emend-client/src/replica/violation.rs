//! How a server can break the protocol of the stream.
//!
//! It must know nothing of what is done about it.

/// A message that the protocol does not allow here. Nothing of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The bytes are no message of the stream.
    #[error("a message cannot be read: {0}")]
    Undecodable(String),
    /// This message has no place here.
    #[error("{0} was not to be expected here")]
    Unexpected(&'static str),
    /// The message contradicts itself.
    #[error("a bad {message}: {why}")]
    Malformed {
        /// Which.
        message: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// The cursor is not of this stream.
    #[error("{0} has no cursor, or one of another log, filter or revision")]
    ForeignCursor(&'static str),
    /// Something is missing between what is held and what came.
    #[error("an update begins at revision {from}, and this node is at {held}")]
    Gap {
        /// What is held.
        held: i64,
        /// Where the update begins.
        from: i64,
    },
    /// What came had come before.
    #[error("revision {revision} came again or goes back: this node is at {held}")]
    NotNew {
        /// What is held.
        held: i64,
        /// What came.
        revision: i64,
    },
    /// A snapshot has not as many resources as it said.
    #[error("a snapshot of {stated} resources has {came}")]
    Count {
        /// How many it said.
        stated: usize,
        /// How many came.
        came: usize,
    },
}

impl ProtocolViolation {
    pub(crate) fn malformed(message: &'static str, why: &'static str) -> Self {
        Self::Malformed { message, why }
    }
}
