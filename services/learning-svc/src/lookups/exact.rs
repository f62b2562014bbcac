//! What was learned for a phrase itself: answered from one immutable state, without the database.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{
    Kind, Learned, Namespace, NormalizedKey, ResourceKey, Revision, Scope,
    lookup::{self, Match},
};
use emend_stream::state::{Entry, ReplicaState};
use emend_wire::value;

use crate::stream::corrupt;

/// A phrase to look up, and what the backend itself would answer.
#[derive(Debug, Clone)]
pub(crate) struct ResolveQuery {
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

/// What would be learned at some keys; `None`: nothing any more.
pub(crate) type Changes = BTreeMap<ResourceKey, Option<Learned>>;

/// What a node would answer.
#[derive(Debug)]
pub(crate) struct Answer {
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
pub(crate) fn resolve(state: &ReplicaState, query: &ResolveQuery) -> Result<Answer, Error> {
    resolve_with(state, query, &Changes::new())
}

/// The same where these changes were made.
pub(crate) fn resolve_with(
    state: &ReplicaState,
    query: &ResolveQuery,
    changes: &Changes,
) -> Result<Answer, Error> {
    let own = find(state, query, changes, query.user_id.as_str(), Scope::User)?;
    let global = find(state, query, changes, "", Scope::Global)?;
    let prohibited = prohibited(state, query, changes);
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
pub(crate) struct Found {
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
    changes: &Changes,
    user_id: &str,
    scope: Scope,
) -> Result<Option<Found>, Error> {
    if scope == Scope::User && user_id.is_empty() {
        return Ok(None);
    }
    let here = changes.iter().find(|(key, _)| {
        key.kind == query.kind && key.key.as_str() == query.phrase.as_str() && key.user_id() == user_id
    });
    if let Some((_, learned)) = here {
        return Ok(learned.as_ref().map(|learned| Found {
            value: learned.maps_to().to_owned(),
            revision: Revision(state.revision()),
            scope,
        }));
    }
    let namespace = query.namespace.as_str();
    let Some(entry) = state.get(namespace, query.kind.number(), query.phrase.as_str(), "", user_id) else {
        return Ok(None);
    };
    Ok(Some(Found {
        value: learned(entry, query.kind)?.maps_to().to_owned(),
        revision: Revision(entry.revision),
        scope,
    }))
}

/// What an entry of that kind says.
pub(super) fn learned(entry: &Entry, kind: Kind) -> Result<Learned, Error> {
    let bytes = entry.value.as_deref().unwrap_or_default();
    let value = value::decode(bytes).map_err(|invalid| corrupt(entry, &invalid.to_string()))?;
    if value.learned.kind() != kind {
        return Err(corrupt(entry, "is not of the resource's kind"));
    }
    Ok(value.learned)
}

/// The choices prohibited for the phrase, globally or for this user; sorted, each once.
fn prohibited(state: &ReplicaState, query: &ResolveQuery, changes: &Changes) -> Vec<String> {
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
    let concerns = |key: &ResourceKey| {
        let is_theirs = key.user.is_none() || key.user_id() == query.user_id;
        key.kind == Kind::Prohibition && key.key.as_str() == phrase && is_theirs
    };
    for (key, learned) in changes.iter().filter(|(key, _)| concerns(key)) {
        match learned {
            Some(_) => choices.push(key.qualifier.clone()),
            None => choices.retain(|choice| *choice != key.qualifier),
        }
    }
    choices.sort_unstable();
    choices.dedup();
    choices
}
