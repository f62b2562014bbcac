//! The labels of prompts.

use emend_core::{Kind, ResourceKey, kinds::PRODUCTION};
use emend_stream::state::ReplicaState;

/// What may not be meant by the label under which a prompt is made current: no other target has it, so that perhaps nobody follows
/// it. What is current of the same target says nothing: it may be there by the same mistake.
pub(crate) fn warning(state: &ReplicaState, key: &ResourceKey) -> Option<String> {
    let label = &*key.qualifier;
    if key.kind != Kind::Prompt || label == PRODUCTION {
        return None;
    }
    let mut prompts = state.of_kind(key.namespace.as_str(), Kind::Prompt.number(), "", ("", ""), true);
    if prompts.any(|prompt| &*prompt.qualifier == label && *prompt.key != *key.key.as_str()) {
        return None;
    }
    Some(format!(
        "no prompt of another target is current under the label {label:?}: only who asks for that label gets this one, and who \
         names none gets that of {PRODUCTION}"
    ))
}
