//! Get and list: answered from one immutable state, without the database.

use emend_base::Error;
use emend_core::{Namespace, ResourceKey};
use emend_stream::state::{Entry, ReplicaState};

/// The entry of one key; `NOT_FOUND` if nothing is learned for it.
pub fn get<'a>(state: &'a ReplicaState, key: &ResourceKey) -> Result<&'a Entry, Error> {
    let ResourceKey {
        namespace,
        kind,
        key: text,
        qualifier,
        ..
    } = key;
    let entry = state.get(
        namespace.as_str(),
        kind.number(),
        text.as_str(),
        qualifier,
        key.user_id(),
    );
    entry
        .map(AsRef::as_ref)
        .ok_or_else(|| Error::not_found("resource", format!("{namespace}/{kind}/{text}/{qualifier}")))
}

/// Which resources to list.
#[derive(Debug)]
pub struct ListQuery {
    /// The search application.
    pub namespace: Namespace,
    /// Only these kinds, by number; empty for all.
    pub kinds: Vec<i32>,
    /// Only keys that begin with this.
    pub prefix: String,
    /// That user's own; empty for the global ones.
    pub user_id: String,
    /// At most this many.
    pub limit: usize,
    /// Only what follows this in the list.
    pub after: Option<Position>,
}

/// The position of a resource in a list.
#[derive(Debug)]
pub struct Position {
    /// Its kind, by number.
    pub kind: i32,
    /// Its normalised key.
    pub key: String,
    /// Its qualifier, or empty.
    pub qualifier: String,
}

/// How many resources of the kinds of a list are one user's own, of all users together.
pub fn user_scoped_count(state: &ReplicaState, query: &ListQuery) -> usize {
    let namespace = query.namespace.as_str();
    let kinds = state.kinds(namespace, true).into_iter();
    kinds
        .filter(|kind| query.kinds.is_empty() || query.kinds.contains(kind))
        .map(|kind| state.count(namespace, kind, true))
        .sum()
}

/// Passes entries to `take` in the order kind, key, qualifier, until it answers that the page is full. Returns whether
/// there are more than it took.
pub fn list<E>(
    state: &ReplicaState,
    query: &ListQuery,
    mut take: impl FnMut(&Entry) -> Result<bool, E>,
) -> Result<bool, E> {
    let mut kinds = state.kinds(query.namespace.as_str(), !query.user_id.is_empty());
    if !query.kinds.is_empty() {
        kinds.retain(|kind| query.kinds.contains(kind));
    }
    let mut taken = 0;
    for kind in kinds {
        let (from, included) = match &query.after {
            Some(after) if kind < after.kind => continue,
            Some(after) if kind == after.kind => ((after.key.as_str(), after.qualifier.as_str()), false),
            _ => ((query.prefix.as_str(), ""), true),
        };
        for entry in state.of_kind(query.namespace.as_str(), kind, &query.user_id, from, included) {
            if !entry.key.starts_with(&query.prefix) {
                break;
            }
            if taken == query.limit || !take(entry)? {
                return Ok(true);
            }
            taken += 1;
        }
    }
    Ok(false)
}
