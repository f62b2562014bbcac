//! Requests into what they ask for.

use emend_core::{Caller, CandidateId, Invalid, Namespace, ResourceKey, Revision, UserId, Violations};
use emend_proto::learning::v1 as pb;
use emend_wire::{
    kinds,
    page::{self, QueryHash},
    parse as wire,
};
use learning_store::actor::Actor;

use crate::{
    grpc::parse,
    outputs::{
        examples::ExampleFormat,
        improve::{label_or_default, prompt_key},
        rendered::Render,
        versions::UseVersion,
    },
};

/// Targets whose ratings are counted at once, by default and at most.
const STATS: (u32, u32) = (20, 50);
/// Inputs of a preview, by default and at most.
const PREVIEWED: (u32, u32) = (5, 20);

/// The prompt of a target under the label production.
pub(crate) fn target(namespace: &str, target: &str) -> Result<ResourceKey, Violations> {
    labelled(namespace, target, "")
}

fn labelled(namespace: &str, target: &str, label: &str) -> Result<ResourceKey, Violations> {
    prompt_key(namespace, target, label_or_default(label))
}

pub(crate) fn render(request: pb::RenderPromptRequest) -> Result<(Render, Revision), Violations> {
    let mut violations = Violations::new();
    let key = violations.part("", labelled(&request.namespace, &request.target, &request.label));
    let user_id = match request.user_id.as_str() {
        "" => Some(String::new()),
        user => violations
            .check("user_id", UserId::parse(user))
            .map(|user| user.as_str().to_owned()),
    };
    let language = match request.language {
        0 => Some(None),
        number => violations.check("language", kinds::language(number)).map(Some),
    };
    let min_revision = violations.check("min_revision", wire::revision(request.min_revision));
    let parsed = (|| {
        let of = Render {
            key: key?,
            variables: request.variables.into_iter().collect(),
            user_id: user_id?,
            language: language?,
        };
        Some((of, min_revision?))
    })();
    violations.finish(parsed)
}

pub(crate) fn stats_query(request: &pb::ListOutputStatsRequest) -> QueryHash {
    let without_page = pb::ListOutputStatsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListOutputStats", &without_page)
}

/// Whose targets, after which of them, and how many at most.
pub(crate) fn stats(
    request: &pb::ListOutputStatsRequest,
    query: QueryHash,
) -> Result<(Namespace, String, u32), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let limit = violations.check("page_size", wire::page_size(request.page_size, STATS.0, STATS.1));
    let after = page::position(query, &request.page_token).and_then(|after| {
        String::from_utf8(after.unwrap_or_default())
            .map_err(|_| Invalid::new("is not a page token of this list"))
    });
    let after = violations.check("page_token", after);
    violations.finish((|| Some((namespace?, after?, limit?)))())
}

pub(crate) fn versions_query(request: &pb::ListPromptVersionsRequest) -> QueryHash {
    let without_page = pb::ListPromptVersionsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListPromptVersions", &without_page)
}

/// Which versions to list.
#[derive(Debug)]
pub(crate) enum Versions {
    /// Those of a target with a number below `before`.
    Of { key: ResourceKey, before: Option<u32> },
    /// Those generated from ratings that were redacted, after a place in that list.
    Redacted {
        namespace: Namespace,
        key: Option<ResourceKey>,
        after: Option<i64>,
    },
}

pub(crate) fn versions(
    request: &pb::ListPromptVersionsRequest,
    query: QueryHash,
) -> Result<(Versions, u32), Violations> {
    let mut violations = Violations::new();
    let limit = violations.check("page_size", wire::page_size(request.page_size, 20, 100));
    let position = page::number_position(query, &request.page_token);
    let wanted = if request.only_redacted {
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let key = match (&namespace, request.target.as_str()) {
            (_, "") | (None, _) => Some(None),
            (Some(_), named) => violations.part("", target(&request.namespace, named)).map(Some),
        };
        let after = violations.check("page_token", position);
        (|| {
            Some(Versions::Redacted {
                namespace: namespace?,
                key: key?,
                after: after?,
            })
        })()
    } else {
        let key = violations.part("", target(&request.namespace, &request.target));
        let before = position.and_then(|before| {
            let bad = |_| Invalid::new("is not a page token of this list");
            before.map(u32::try_from).transpose().map_err(bad)
        });
        let before = violations.check("page_token", before);
        (|| {
            Some(Versions::Of {
                key: key?,
                before: before?,
            })
        })()
    };
    violations.finish(wanted.zip(limit))
}

pub(crate) fn preview(
    request: &pb::PreviewImprovementRequest,
) -> Result<(Namespace, CandidateId, u32), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
    let inputs = violations.check(
        "inputs",
        wire::page_size(request.inputs, PREVIEWED.0, PREVIEWED.1),
    );
    violations.finish((|| Some((namespace?, candidate?, inputs?)))())
}

pub(crate) fn generate(
    caller: &Caller,
    request: &pb::GenerateImprovementRequest,
) -> Result<(ResourceKey, Actor), Violations> {
    let mut violations = Violations::new();
    let key = violations.part("", labelled(&request.namespace, &request.target, &request.label));
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    violations.finish(key.zip(actor))
}

pub(crate) fn use_version(
    caller: &Caller,
    request: &pb::UsePromptVersionRequest,
) -> Result<UseVersion, Violations> {
    let mut violations = Violations::new();
    let key = violations.part("", labelled(&request.namespace, &request.target, &request.label));
    let version = u32::try_from(request.version).ok().filter(|version| *version > 0);
    if version.is_none() {
        violations.add("version", format!("must be 1 or more, is {}", request.version));
    }
    let reason = parse::reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let wanted = (|| {
        Some(UseVersion {
            key: key?,
            version: version?,
            reason: reason?,
            actor: actor?,
        })
    })();
    violations.finish(wanted)
}

pub(crate) fn export(
    request: &pb::ExportExamplesRequest,
) -> Result<(ResourceKey, ExampleFormat), Violations> {
    let mut violations = Violations::new();
    let key = violations.part("", labelled(&request.namespace, &request.target, &request.label));
    let format = match pb::ExampleFormat::try_from(request.format) {
        Ok(pb::ExampleFormat::Unspecified | pb::ExampleFormat::Chat) => Some(ExampleFormat::Chat),
        Ok(pb::ExampleFormat::Preference) => Some(ExampleFormat::Preference),
        Err(_) => {
            violations.add("format", format!("is not a known format: {}", request.format));
            None
        }
    };
    violations.finish(key.zip(format))
}
