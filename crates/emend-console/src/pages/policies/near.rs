//! How phrases of a kind that nobody corrected are answered: a resource, so that nodes have it, shown and set with the policy of the
//! kind.

use emend_base::Error;
use emend_core::{Kind, Learned, NearLookup, NearMethod, Violations};
use emend_proto::{
    common::v1::{ResourceKey, ResourceValue},
    learning::v1::{GetResourceRequest, PutResourceRequest},
};
use tonic::{Code, Status};

use crate::{form::Fields, page::Visitor, text, typed};

/// The etag of a key that has no resource.
const NO_RESOURCE: &str = "0";

fn key(visitor: &Visitor, kind: Kind) -> ResourceKey {
    ResourceKey {
        namespace: visitor.namespace.clone(),
        kind: Kind::NearLookup.number(),
        key: kind.name().to_owned(),
        ..ResourceKey::default()
    }
}

/// How they are answered, and the etag of that; none where no phrase is looked up as one, or where the visitor may not read it.
pub(super) async fn read(visitor: &Visitor, kind: Kind) -> Result<Option<(NearLookup, String)>, Status> {
    if !kind.rules().is_answer || !visitor.may("learning.v1.ResourceService/GetResource") {
        return Ok(None);
    }
    let request = GetResourceRequest {
        key: Some(key(visitor, kind)),
        min_revision: 0,
    };
    let mut resources = visitor.services.resources();
    match resources.get_resource(visitor.services.call(request)).await {
        Ok(answer) => {
            let resource = answer.into_inner().resource.unwrap_or_default();
            let near = match text::learned(resource.value.as_ref()) {
                Some(Learned::NearLookup(Some(near))) => near,
                _ => NearLookup::default(),
            };
            Ok(Some((near, resource.etag)))
        }
        Err(status) if status.code() == Code::NotFound => {
            Ok(Some((NearLookup::default(), NO_RESOURCE.to_owned())))
        }
        Err(status) => Err(status),
    }
}

/// Sets what a form says.
pub(super) async fn set(visitor: &Visitor, kind: Kind, fields: &Fields) -> Result<(), Status> {
    let near = said(fields).map_err(Error::from)?;
    let request = PutResourceRequest {
        key: Some(key(visitor, kind)),
        value: Some(ResourceValue {
            value: Some(emend_wire::kinds::value(&Learned::NearLookup(Some(near)))),
            ..ResourceValue::default()
        }),
        etag: typed::etag(fields)?,
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut resources = visitor.services.resources();
    resources.put_resource(visitor.services.call(request)).await?;
    Ok(())
}

/// What a form says.
fn said(fields: &Fields) -> Result<NearLookup, Violations> {
    let mut violations = Violations::new();
    let confidence = fields.get("near.min_confidence").trim().parse::<f64>();
    let confidence = confidence.map_err(|_| emend_core::Invalid::new("must be a number from 0 to 1"));
    let confidence = violations.check("near.min_confidence", confidence);
    let method = fields.get("near.method");
    let known = NearMethod::ALL.into_iter().find(|(_, name)| *name == method);
    if known.is_none() {
        violations.add("near.method", "must be one of lexical, off");
    }
    let vectors = fields.get("near.vectors").trim();
    let near = NearLookup::new(confidence, known.map(|(method, _)| method), vectors);
    let near = violations.part("near", near);
    violations.finish(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_how_near_answers_are_given_or_names_what_is_wrong() {
        let near = said(&Fields::parse(
            b"near.min_confidence=0.9&near.method=off&near.vectors=",
        ));
        assert_eq!(
            near.unwrap().to_string(),
            "min_confidence=0.9 method=off vectors=none"
        );
        let wrong = said(&Fields::parse(
            b"near.min_confidence=much&near.method=magic&near.vectors=x",
        ));
        let named: Vec<String> = wrong
            .unwrap_err()
            .into_vec()
            .into_iter()
            .map(|it| it.field)
            .collect();
        assert_eq!(named, ["near.min_confidence", "near.method", "near.vectors"]);
    }
}
