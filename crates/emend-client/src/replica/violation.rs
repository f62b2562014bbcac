//! The ways a server can break the stream's protocol.

/// A message that the protocol does not allow here. None of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The bytes are not a message of the stream.
    #[error("a message cannot be read: {0}")]
    Undecodable(String),
    /// The message is not allowed at this point.
    #[error("{0} is not allowed at this point")]
    Unexpected(&'static str),
    /// The message contradicts itself.
    #[error("{message} is malformed: {why}")]
    Malformed {
        /// Which.
        message: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The cursor is missing or does not fit this stream.
    #[error("the cursor of {0} is missing, or of another epoch, filter or revision")]
    ForeignCursor(&'static str),
    /// Revisions are missing between what is held and what arrived.
    #[error("an update begins at revision {from}, but this node is at {held}")]
    Gap {
        /// What is held.
        held: i64,
        /// Where the update begins.
        from: i64,
    },
    /// What arrived is not newer than what is held.
    #[error("revision {revision} is not newer than this node's, {held}")]
    NotNew {
        /// What is held.
        held: i64,
        /// The revision that arrived.
        revision: i64,
    },
    /// A snapshot's resource count differs from what it announced.
    #[error("a snapshot that announced {stated} resources has {received}")]
    Count {
        /// How many it announced.
        stated: usize,
        /// How many arrived.
        received: usize,
    },
}

impl ProtocolViolation {
    pub(crate) fn malformed(message: &'static str, why: &'static str) -> Self {
        Self::Malformed { message, why }
    }
}
