//! How phrases of a kind that nobody corrected are answered: a resource of its own, so that nodes have it, shown and set with the
//! kind's policy.

use std::path::Path;

use emend_core::{Kind, Learned, NearLookup, NearMethod};
use emend_proto::{
    common::v1::{NearLookupValue, ResourceKey, resource_value::Value},
    learning::v1::{GetResourceRequest, Policy},
};
use tonic::Code;

use crate::{
    commands::{Decision, resources},
    context::Context,
    failure::{Failure, Result},
    view,
};

/// What is to be changed of it.
#[expect(clippy::struct_field_names, reason = "named as the options are")]
#[derive(Debug, Clone, clap::Args)]
pub(super) struct NearArgs {
    /// The confidence from which on phrases that nobody corrected are answered by similar ones, 0.0 to 1.0
    #[arg(long, value_name = "CONFIDENCE")]
    near_min_confidence: Option<f64>,
    /// How such answers are found
    #[arg(long, value_enum)]
    near_method: Option<MethodName>,
    /// The vectors that nodes add: their hash, or a directory with them, of which it is made; `none`: no vectors
    #[arg(long, value_name = "HASH|DIR")]
    near_vectors: Option<String>,
}

/// How near answers are found.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum MethodName {
    /// By words and parts of words
    Lexical,
    /// Not at all
    Off,
}

impl NearArgs {
    /// Whether anything is to be changed.
    pub(super) fn is_given(&self) -> bool {
        self.near_min_confidence.is_some() || self.near_method.is_some() || self.near_vectors.is_some()
    }

    fn applied_to(&self, before: &NearLookup) -> Result<NearLookup> {
        let method = self.near_method.map(|method| match method {
            MethodName::Lexical => NearMethod::Lexical,
            MethodName::Off => NearMethod::Off,
        });
        let of_directory = match self.near_vectors.as_deref().map(Path::new) {
            Some(directory) if directory.is_dir() => Some(
                emend_vectors::read(directory)
                    .map_err(|error| Failure::usage(format!("--near-vectors {error}")))?,
            ),
            _ => None,
        };
        let vectors = match (&of_directory, self.near_vectors.as_deref()) {
            (Some(vectors), _) => vectors.hash(),
            (None, None) => before.vectors(),
            (None, Some("none")) => "",
            (None, Some(hash)) => hash,
        };
        let confidence = self
            .near_min_confidence
            .unwrap_or_else(|| before.min_confidence());
        let changed = NearLookup::new(Some(confidence), method.or(Some(before.method())), vectors);
        changed.map_err(|violations| Failure::usage(format!("--near-…: {violations}")))
    }
}

fn is_looked_up(kind: i32) -> bool {
    Kind::from_number(kind).is_some_and(|kind| kind.rules().is_answer)
}

/// How phrases of a kind that nobody corrected are answered; `None` where no phrase is looked up as one.
pub(super) async fn get(context: &Context, kind: i32) -> Result<Option<NearLookup>> {
    if !is_looked_up(kind) {
        return Ok(None);
    }
    let kind = Kind::from_number(kind).map_or("", Kind::name);
    let request = GetResourceRequest {
        key: Some(ResourceKey {
            namespace: context.namespace(),
            kind: Kind::NearLookup.number(),
            key: kind.to_owned(),
            ..ResourceKey::default()
        }),
        min_revision: 0,
    };
    let mut client = context.resources().await?;
    match client.get_resource(context.request(request)).await {
        Ok(answer) => {
            let resource = answer.into_inner().resource.unwrap_or_default();
            Ok(Some(match view::learned(resource.value.as_ref()) {
                Some(Learned::NearLookup(Some(near))) => near,
                _ => NearLookup::default(),
            }))
        }
        Err(status) if status.code() == Code::NotFound => Ok(Some(NearLookup::default())),
        Err(status) => Err(status.into()),
    }
}

/// How they would be answered after these changes.
pub(super) async fn changed(context: &Context, kind: i32, changes: &NearArgs) -> Result<NearLookup> {
    let before = get(context, kind).await?;
    let before = before.ok_or_else(|| {
        Failure::usage("--near-… is for kinds that phrases are looked up as: invocation_phrase, entity_alias")
    })?;
    changes.applied_to(&before)
}

/// Sets it.
pub(super) async fn set(context: &Context, kind: i32, changes: &NearArgs, decision: &Decision) -> Result {
    let near = changed(context, kind, changes).await?;
    let name = Kind::from_number(kind).map_or("", Kind::name);
    let mut request = resources::put_request(
        context.namespace(),
        name.to_owned(),
        &Learned::NearLookup(Some(near)),
    );
    request.reason.clone_from(&decision.reason);
    request.on_behalf_of.clone_from(&decision.by);
    let mut client = context.resources().await?;
    client.put_resource(context.request(request)).await?;
    Ok(())
}

/// Its message.
pub(super) fn message(near: NearLookup) -> Option<NearLookupValue> {
    match emend_wire::kinds::value(&Learned::NearLookup(Some(near))) {
        Value::NearLookup(message) => Some(message),
        _ => None,
    }
}

/// A policy as JSON, with how phrases that nobody corrected are answered.
pub(super) fn json(policy: &Policy, near: Option<&NearLookup>) -> serde_json::Value {
    let mut json = view::message(policy);
    if let Some(near) = near.cloned().and_then(message) {
        json["near"] = view::message(&near);
    }
    json
}

/// Its rows for people.
pub(super) fn rows(near: Option<&NearLookup>) -> Vec<(&'static str, String)> {
    let Some(near) = near else { return Vec::new() };
    let vectors = if near.vectors().is_empty() {
        "none"
    } else {
        near.vectors()
    };
    vec![
        ("near min confidence", near.min_confidence().to_string()),
        ("near method", near.method().name().to_owned()),
        ("near vectors", vectors.to_owned()),
    ]
}
