//! What is settled for a namespace as a whole.

use super::{BlockingPolicy, Combining};

/// What is settled for a namespace as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NamespacePolicy {
    /// Increases by 1 with each change; 0 is the default policy.
    pub version: i64,
    /// What counts where several edges of a claim come from one source.
    pub combining: Combining,
    /// When the system blocks a domain for its rejected claims.
    pub blocking: BlockingPolicy,
}
