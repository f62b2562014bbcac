//! Get, list and resolve: answered from one immutable state, without the database.

use emend_base::Error;
use emend_core::{
    Kind, Namespace, NormalizedKey, ResourceKey, Revision, Scope,
    lookup::{self, Match},
};
use emend_stream::state::{Entry, ReplicaState};
use emend_wire::value;

use crate::stream::corrupt;

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

/// A phrase to look up, and what the backend itself would answer.
#[derive(Debug)]
pub struct ResolveQuery {
    /// The search application.
    pub namespace: Namespace,
    /// What the phrase stands for.
    pub kind: Kind,
    /// The phrase.
    pub phrase: NormalizedKey,
    /// Empty if only global resources apply.
    pub user_id: String,
    /// The backend's own candidates with their scores, 0.0 to 1.0.
    pub backend: Vec<(String, f64)>,
}

/// What a node would answer.
#[derive(Debug)]
pub struct Answer {
    /// The learned value, unless it is prohibited.
    pub found: Option<Found>,
    /// Whether a learned value was left out because it is prohibited.
    pub found_prohibited: bool,
    /// Whether the backend should ask the user.
    pub feedback_hint: bool,
    /// The choices never to be offered; sorted, each once.
    pub prohibited: Vec<String>,
}

/// Looks a phrase up: the user's own value comes first, then the global one; prohibited choices never.
pub fn resolve(state: &ReplicaState, query: &ResolveQuery) -> Result<Answer, Error> {
    let own = find(state, query, query.user_id.as_str(), Scope::User)?;
    let global = find(state, query, "", Scope::Global)?;
    let prohibited = prohibited(state, query);
    let is_prohibited = |value: &str| {
        prohibited
            .binary_search_by(|known| known.as_str().cmp(value))
            .is_ok()
    };
    let resolved = lookup::resolve(
        own.as_ref().map(Found::as_match),
        global.as_ref().map(Found::as_match),
        is_prohibited,
    );
    let backend = query
        .backend
        .iter()
        .map(|(value, score)| (value.as_str(), *score));
    let feedback_hint = lookup::feedback_hint(&resolved, backend, is_prohibited);
    let found = resolved.found.map(|found| Found {
        value: found.value.to_owned(),
        revision: found.revision,
        scope: found.scope,
    });
    let found_prohibited = resolved.found_prohibited;
    Ok(Answer {
        found,
        found_prohibited,
        feedback_hint,
        prohibited,
    })
}

/// A learned value.
#[derive(Debug)]
pub struct Found {
    /// The value.
    pub value: String,
    /// The revision that taught it.
    pub revision: Revision,
    /// For whom it holds.
    pub scope: Scope,
}

impl Found {
    fn as_match(&self) -> Match<'_> {
        Match {
            value: &self.value,
            revision: self.revision,
            scope: self.scope,
        }
    }
}

fn find(
    state: &ReplicaState,
    query: &ResolveQuery,
    user_id: &str,
    scope: Scope,
) -> Result<Option<Found>, Error> {
    if scope == Scope::User && user_id.is_empty() {
        return Ok(None);
    }
    let namespace = query.namespace.as_str();
    let Some(entry) = state.get(namespace, query.kind.number(), query.phrase.as_str(), "", user_id) else {
        return Ok(None);
    };
    let bytes = entry.value.as_deref().unwrap_or_default();
    let value = value::decode(bytes).map_err(|invalid| corrupt(entry, &invalid.to_string()))?;
    if value.learned.kind() != query.kind {
        return Err(corrupt(entry, "is not of the resource's kind"));
    }
    Ok(Some(Found {
        value: value.learned.maps_to().to_owned(),
        revision: Revision(entry.revision),
        scope,
    }))
}

/// The choices prohibited for the phrase, globally or for this user; sorted, each once.
fn prohibited(state: &ReplicaState, query: &ResolveQuery) -> Vec<String> {
    let phrase = query.phrase.as_str();
    let of = |user_id| {
        let kind = Kind::Prohibition.number();
        state
            .of_kind(query.namespace.as_str(), kind, user_id, (phrase, ""), true)
            .take_while(|entry| &*entry.key == phrase)
            .map(|entry| entry.qualifier.as_ref().to_owned())
    };
    let mut choices: Vec<_> = of("").collect();
    if !query.user_id.is_empty() {
        choices.extend(of(query.user_id.as_str()));
    }
    choices.sort_unstable();
    choices.dedup();
    choices
}
