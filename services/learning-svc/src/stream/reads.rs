//! `GetResource`, `ListResources` and `Resolve`: answered from one immutable state, without the database.
//!
//! It knows requests and responses, and must know nothing of transport or of how resources come about.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

use emend_base::Error;
use emend_core::{
    Invalid, Kind, Namespace, NormalizedKey, ResourceKey, Revision, Scope, UserId, Violations,
    kinds::parse_choice,
    lookup::{self, Match},
    normalize::{MAX_KEY_CHARS, normalize},
    violation::bounded_prose,
};
use emend_proto::{
    common::v1::{self as common, resource_value::Value},
    learning::v1 as pb,
};
use emend_store::{CorruptRow, StoreError};
use emend_wire::{
    page::{self, QueryHash},
    parse,
    render::timestamp_from_micros,
};
use prost::Message as _;
use tokio::time::Instant;

use super::{
    Stream,
    state::{Entry, ReplicaState},
};
use crate::app::etag;

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;
const MAX_KINDS: usize = 64;
const MAX_BACKEND_CANDIDATES: usize = 100;

/// One resource.
pub async fn get_resource(
    stream: &Stream,
    request: pb::GetResourceRequest,
    deadline: Option<Instant>,
) -> Result<pb::GetResourceResponse, Error> {
    let mut violations = Violations::new();
    let key = violations.part("key", parse::resource_key(request.key.as_ref()));
    let min_revision = violations.check("min_revision", parse::revision(request.min_revision));
    let (key, min_revision) = violations.finish((|| Some((key?, min_revision?)))())?;
    let state = stream.wait_for(min_revision.0, deadline).await?;
    let ResourceKey {
        namespace,
        kind,
        key: text,
        qualifier,
        ..
    } = &key;
    let entry = state
        .get(
            namespace.as_str(),
            kind.number(),
            text.as_str(),
            qualifier,
            key.user_id(),
        )
        .ok_or_else(|| Error::not_found("resource", format!("{namespace}/{kind}/{text}/{qualifier}")))?;
    Ok(pb::GetResourceResponse {
        resource: Some(resource(entry)?),
    })
}

/// A page of a namespace's resources, in the order kind, key, qualifier.
pub async fn list_resources(
    stream: &Stream,
    request: pb::ListResourcesRequest,
    deadline: Option<Instant>,
) -> Result<pb::ListResourcesResponse, Error> {
    let list = parse_list(request)?;
    let state = stream.wait_for(list.min_revision, deadline).await?;
    let mut kinds = state.kinds(list.namespace.as_str(), !list.user_id.is_empty());
    if !list.kinds.is_empty() {
        kinds.retain(|kind| list.kinds.contains(kind));
    }
    let mut resources = Vec::new();
    let mut room = page::PageBudget::default();
    let mut more = false;
    'kinds: for kind in kinds {
        let (from, included) = match &list.after {
            Some(after) if kind < after.kind => continue,
            Some(after) if kind == after.kind => ((after.key.as_str(), after.qualifier.as_str()), false),
            _ => ((list.prefix.as_str(), ""), true),
        };
        for entry in state.of_kind(list.namespace.as_str(), kind, &list.user_id, from, included) {
            if !entry.key.starts_with(&list.prefix) {
                break;
            }
            if resources.len() == list.limit {
                more = true;
                break 'kinds;
            }
            let resource = resource(entry)?;
            if !room.take(&resource) {
                more = true;
                break 'kinds;
            }
            resources.push(resource);
        }
    }
    let next_page_token = match resources.last() {
        Some(end) if more => token(list.hash, end),
        _ => String::new(),
    };
    Ok(pb::ListResourcesResponse {
        resources,
        next_page_token,
        revision: state.revision(),
    })
}

/// What a node would answer for a phrase.
pub async fn resolve(
    stream: &Stream,
    request: pb::ResolveRequest,
    deadline: Option<Instant>,
) -> Result<pb::ResolveResponse, Error> {
    let (query, min_revision) = parse_resolve(&request)?;
    let state = stream.wait_for(min_revision.0, deadline).await?;
    let own = find(&state, &query, query.user_id.as_str(), Scope::User)?;
    let everybodys = find(&state, &query, "", Scope::Global)?;
    let prohibited = prohibited(&state, &query);
    let is_prohibited = |value: &str| {
        prohibited
            .binary_search_by(|known| known.as_str().cmp(value))
            .is_ok()
    };
    let resolved = lookup::resolve(
        own.as_ref().map(Found::as_match),
        everybodys.as_ref().map(Found::as_match),
        is_prohibited,
    );
    let backend = query
        .backend
        .iter()
        .map(|(value, score)| (value.as_str(), *score));
    let feedback_hint = lookup::feedback_hint(&resolved, backend, is_prohibited);
    Ok(pb::ResolveResponse {
        r#match: resolved.found.map(|found| pb::Match {
            value: found.value.to_owned(),
            score: 1.0,
            source: pb::MatchSource::Learned.into(),
            revision: found.revision.0,
            scope: emend_wire::render::scope(found.scope).into(),
        }),
        match_prohibited: resolved.found_prohibited,
        feedback_hint,
        normalized_phrase: query.phrase.as_str().to_owned(),
        revision: state.revision(),
        prohibited,
    })
}

/// A parsed `ListResources`.
struct List {
    hash: QueryHash,
    namespace: Namespace,
    /// Numbers; empty for all.
    kinds: Vec<i32>,
    prefix: String,
    user_id: String,
    min_revision: i64,
    limit: usize,
    after: Option<common::ResourceKey>,
}

fn parse_list(mut request: pb::ListResourcesRequest) -> Result<List, Error> {
    let mut violations = Violations::new();
    let token = std::mem::take(&mut request.page_token);
    let limit = violations.check(
        "page_size",
        parse::page_size(std::mem::take(&mut request.page_size), DEFAULT_PAGE, MAX_PAGE),
    );
    let hash = QueryHash::of("ListResources", &request);
    let after = violations.check("page_token", position(hash, &token));
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    if request.kinds.len() > MAX_KINDS {
        violations.add(
            "kinds",
            format!("must be at most {MAX_KINDS}, has {}", request.kinds.len()),
        );
    } else {
        parse::kinds("kinds", &request.kinds, &mut violations);
    }
    let prefix = violations.check("key_prefix", key_prefix(&request.key_prefix));
    let user_id = violations.check("user_id", optional_user(&request.user_id));
    let min_revision = violations.check("min_revision", parse::revision(request.min_revision));
    let parsed = (|| {
        Some(List {
            hash,
            namespace: namespace?,
            kinds: request.kinds,
            prefix: prefix?,
            user_id: user_id?,
            min_revision: min_revision?.0,
            limit: usize::try_from(limit?).ok()?,
            after: after?,
        })
    })();
    Ok(violations.finish(parsed)?)
}

/// The key after which the next page begins.
fn position(hash: QueryHash, token: &str) -> Result<Option<common::ResourceKey>, Invalid> {
    let Some(position) = page::position(hash, token)? else {
        return Ok(None);
    };
    common::ResourceKey::decode(position.as_slice())
        .map(Some)
        .map_err(|_| Invalid::new("is not a token of this list"))
}

fn token(hash: QueryHash, last: &common::Resource) -> String {
    let key = last.key.as_ref().map(|key| common::ResourceKey {
        kind: key.kind,
        key: key.key.clone(),
        qualifier: key.qualifier.clone(),
        ..Default::default()
    });
    page::token(hash, &key.unwrap_or_default().encode_to_vec())
}

fn key_prefix(raw: &str) -> Result<String, Invalid> {
    Ok(normalize(&bounded_prose(raw, 0, MAX_KEY_CHARS)?))
}

fn optional_user(raw: &str) -> Result<String, Invalid> {
    if raw.is_empty() {
        return Ok(String::new());
    }
    UserId::parse(raw).map(|user| user.as_str().to_owned())
}

/// A parsed Resolve.
struct Query {
    namespace: Namespace,
    kind: Kind,
    phrase: NormalizedKey,
    /// Empty if only global resources apply.
    user_id: String,
    backend: Vec<(String, f64)>,
}

fn parse_resolve(request: &pb::ResolveRequest) -> Result<(Query, Revision), Error> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let kind = violations.check(
        "kind",
        parse::kind(request.kind).and_then(|kind| match kind {
            Kind::InvocationPhrase | Kind::EntityAlias => Ok(kind),
            Kind::Prohibition => Err(Invalid::new("must be INVOCATION_PHRASE or ENTITY_ALIAS")),
        }),
    );
    let phrase = violations.check("phrase", NormalizedKey::parse(&request.phrase));
    let user_id = violations.check("user_id", optional_user(&request.user_id));
    let count = request.backend_candidates.len();
    if count > MAX_BACKEND_CANDIDATES {
        violations.add(
            "backend_candidates",
            format!("must be at most {MAX_BACKEND_CANDIDATES}, has {count}"),
        );
    }
    let mut backend = Vec::new();
    for (index, candidate) in request
        .backend_candidates
        .iter()
        .take(MAX_BACKEND_CANDIDATES)
        .enumerate()
    {
        let value = violations.check(
            &format!("backend_candidates[{index}].value"),
            parse_choice(&candidate.value),
        );
        if !(0.0..=1.0).contains(&candidate.score) {
            violations.add(
                format!("backend_candidates[{index}].score"),
                format!("must be 0.0 to 1.0, is {}", candidate.score),
            );
        }
        backend.extend(value.map(|value| (value, candidate.score)));
    }
    let min_revision = violations.check("min_revision", parse::revision(request.min_revision));
    let parsed = (|| {
        let query = Query {
            namespace: namespace?,
            kind: kind?,
            phrase: phrase?,
            user_id: user_id?,
            backend,
        };
        Some((query, min_revision?))
    })();
    Ok(violations.finish(parsed)?)
}

struct Found {
    value: String,
    revision: Revision,
    scope: Scope,
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

fn find(state: &ReplicaState, query: &Query, user_id: &str, scope: Scope) -> Result<Option<Found>, Error> {
    if scope == Scope::User && user_id.is_empty() {
        return Ok(None);
    }
    let namespace = query.namespace.as_str();
    let Some(entry) = state.get(namespace, query.kind.number(), query.phrase.as_str(), "", user_id) else {
        return Ok(None);
    };
    let value = match decode(entry)?.value {
        Some(Value::InvocationPhrase(value)) => value.verb,
        Some(Value::EntityAlias(value)) => value.entity_id,
        _ => return Err(corrupt(entry, "is not of the resource's kind")),
    };
    Ok(Some(Found {
        value,
        revision: Revision(entry.revision),
        scope,
    }))
}

/// The choices prohibited for the phrase, globally or for this user; sorted, each once.
fn prohibited(state: &ReplicaState, query: &Query) -> Vec<String> {
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

fn resource(entry: &Entry) -> Result<common::Resource, Error> {
    Ok(common::Resource {
        key: Some(common::ResourceKey {
            namespace: entry.group.namespace.as_ref().to_owned(),
            kind: entry.group.kind,
            key: entry.key.as_ref().to_owned(),
            qualifier: entry.qualifier.as_ref().to_owned(),
            user_id: entry.user_id.as_ref().to_owned(),
        }),
        revision: entry.revision,
        value: Some(decode(entry)?),
        value_checksum: entry.checksum,
        committed_at: Some(timestamp_from_micros(entry.committed_at)),
        etag: etag::of_revision(entry.revision),
    })
}

/// A value of a kind unknown to this version decodes to one without content.
fn decode(entry: &Entry) -> Result<common::ResourceValue, Error> {
    let bytes = entry.value.clone().unwrap_or_default();
    common::ResourceValue::decode(bytes).map_err(|error| corrupt(entry, &error.to_string()))
}

fn corrupt(entry: &Entry, reason: &str) -> Error {
    let id = format!("{}/{}/{}", entry.group.namespace, entry.group.kind, entry.key);
    StoreError::from(CorruptRow::new("resources", "value", id, reason)).into()
}
