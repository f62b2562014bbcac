//! Renders what several responses share.

use emend_proto::common::v1 as common;
use learning_store::actor::Actor;

/// Who did something.
pub(crate) fn actor(actor: &Actor) -> common::Actor {
    common::Actor {
        caller: actor.caller.to_string(),
        on_behalf_of: actor.on_behalf_of.clone(),
    }
}

/// A count that the wire knows as an int32.
pub(crate) fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
