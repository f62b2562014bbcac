//! Who did something.

use emend_core::Caller;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The authenticated client.
    pub caller: Caller,
    /// On whose behalf, as the caller asserts; may be empty.
    pub on_behalf_of: String,
}

impl Actor {
    /// A client acting for itself.
    pub fn caller(caller: Caller) -> Self {
        Self {
            caller,
            on_behalf_of: String::new(),
        }
    }
}
