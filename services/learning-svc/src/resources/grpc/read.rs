//! `GetResource`, `ListResources` and `Resolve` on the wire: requests into queries, entries into resources.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

use emend_base::Error;
use emend_core::{
    Invalid, Kind, Namespace, NormalizedKey, Revision, UserId, Violations, kinds::Form,
    normalize::parse_choice,
};
use emend_proto::{common::v1 as common, learning::v1 as pb};
use emend_stream::state::Entry;
use emend_wire::{
    page::{self, QueryHash},
    parse,
    render::{self, timestamp_from_micros},
};
use prost::Message as _;
use tokio::time::Instant;

use crate::{
    etag,
    lookups::{
        NearModels,
        exact::{self, ResolveQuery},
        near,
    },
    resources::read::{self, ListQuery, Position},
    stream::{Stream, corrupt},
};

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;
const MAX_KINDS: usize = 64;
const MAX_BACKEND_CANDIDATES: usize = 100;

/// One resource.
pub(super) async fn get_resource(
    stream: &Stream,
    request: pb::GetResourceRequest,
    deadline: Option<Instant>,
) -> Result<pb::GetResourceResponse, Error> {
    let mut violations = Violations::new();
    let key = violations.part("key", parse::resource_key(request.key.as_ref()));
    let min_revision = violations.check("min_revision", parse::revision(request.min_revision));
    let (key, min_revision) = violations.finish((|| Some((key?, min_revision?)))())?;
    let state = stream.wait_for(min_revision.0, deadline).await?;
    Ok(pb::GetResourceResponse {
        resource: Some(resource(read::get(&state, &key)?)?),
    })
}

/// A page of a namespace's resources, in the order kind, key, qualifier.
pub(super) async fn list_resources(
    stream: &Stream,
    request: pb::ListResourcesRequest,
    deadline: Option<Instant>,
) -> Result<pb::ListResourcesResponse, Error> {
    let (query, hash, min_revision) = parse_list(request)?;
    let state = stream.wait_for(min_revision.0, deadline).await?;
    let mut resources = Vec::new();
    let mut budget = page::PageBudget::default();
    let more = read::list(&state, &query, |entry| {
        let resource = resource(entry)?;
        let fits = budget.take(&resource);
        if fits {
            resources.push(resource);
        }
        Ok::<_, Error>(fits)
    })?;
    let next_page_token = match resources.last() {
        Some(end) if more => token(hash, end),
        _ => String::new(),
    };
    Ok(pb::ListResourcesResponse {
        resources,
        next_page_token,
        revision: state.revision(),
        user_scoped_count: i64::try_from(read::user_scoped_count(&state, &query)).unwrap_or(i64::MAX),
    })
}

/// What a node would answer for a phrase.
pub(super) async fn resolve(
    stream: &Stream,
    models: &NearModels,
    request: pb::ResolveRequest,
    deadline: Option<Instant>,
) -> Result<pb::ResolveResponse, Error> {
    let (query, min_revision) = parse_resolve(&request)?;
    let state = stream.wait_for(min_revision.0, deadline).await?;
    let answer = exact::resolve(&state, &query)?;
    let (near, near_status) = if request.near {
        models.resolve(&state, &query, &answer).await?
    } else {
        (None, pb::NearStatus::Unspecified)
    };
    Ok(pb::ResolveResponse {
        near: near.map(near::message),
        near_status: near_status.into(),
        r#match: answer.found.map(|found| pb::Match {
            value: found.value,
            score: 1.0,
            source: pb::MatchSource::Learned.into(),
            revision: found.revision.0,
            scope: render::scope(found.scope).into(),
        }),
        match_prohibited: answer.found_prohibited,
        feedback_hint: answer.feedback_hint,
        normalized_phrase: query.phrase.as_str().to_owned(),
        revision: state.revision(),
        prohibited: answer.prohibited,
    })
}

fn parse_list(mut request: pb::ListResourcesRequest) -> Result<(ListQuery, QueryHash, Revision), Error> {
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
            format!(
                "must have at most {MAX_KINDS} entries, has {}",
                request.kinds.len()
            ),
        );
    } else {
        parse::kinds("kinds", &request.kinds, &mut violations);
    }
    let prefix = violations.check("key_prefix", form_of(&request.kinds).prefix(&request.key_prefix));
    let user_id = violations.check("user_id", optional_user(&request.user_id));
    let min_revision = violations.check("min_revision", parse::revision(request.min_revision));
    let parsed = (|| {
        let query = ListQuery {
            namespace: namespace?,
            kinds: request.kinds,
            prefix: prefix?,
            user_id: user_id?,
            limit: usize::try_from(limit?).ok()?,
            after: after?.map(|key| Position {
                kind: key.kind,
                key: key.key,
                qualifier: key.qualifier,
            }),
        };
        Some((query, hash, min_revision?))
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
        .map_err(|_| Invalid::new("is not a page token of this list"))
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

/// The form of these kinds' keys; that of phrases where they differ, or none is named.
fn form_of(kinds: &[i32]) -> Form {
    let mut forms = kinds
        .iter()
        .map(|number| Kind::from_number(*number).map_or(Form::Phrase, |kind| kind.rules().key));
    let first = forms.next().unwrap_or(Form::Phrase);
    if forms.all(|form| form == first) {
        first
    } else {
        Form::Phrase
    }
}

fn optional_user(raw: &str) -> Result<String, Invalid> {
    if raw.is_empty() {
        return Ok(String::new());
    }
    UserId::parse(raw).map(|user| user.as_str().to_owned())
}

fn parse_resolve(request: &pb::ResolveRequest) -> Result<(ResolveQuery, Revision), Error> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let kind = violations.check(
        "kind",
        parse::kind(request.kind).and_then(|kind| {
            if kind.rules().is_answer {
                return Ok(kind);
            }
            let answers = Kind::ALL.into_iter().filter(|kind| kind.rules().is_answer);
            let names: Vec<_> = answers.map(|kind| kind.name().to_uppercase()).collect();
            Err(Invalid::new(format!("must be {}", names.join(" or "))))
        }),
    );
    let phrase = violations.check("phrase", NormalizedKey::parse(&request.phrase));
    let user_id = violations.check("user_id", optional_user(&request.user_id));
    let count = request.backend_candidates.len();
    if count > MAX_BACKEND_CANDIDATES {
        violations.add(
            "backend_candidates",
            format!("must have at most {MAX_BACKEND_CANDIDATES} entries, has {count}"),
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
        let query = ResolveQuery {
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
    let mut value =
        common::ResourceValue::decode(bytes).map_err(|error| corrupt(entry, &error.to_string()))?;
    if value.display.is_empty() {
        entry.key.as_ref().clone_into(&mut value.display);
    }
    Ok(value)
}
