//! One target: its ratings by version, its examples and its prompt as an AI gets them, and putting a prompt.

use std::collections::HashMap;

use askama::Template;
use emend_core::{
    Example, Kind, Learned, Prompt,
    kinds::{PRODUCTION, Variable},
};
use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceValue},
    learning::v1::{
        GetResourceRequest, ListPromptVersionsRequest, OutputVersionStats, PutResourceRequest,
        RenderPromptRequest,
    },
};
use http::StatusCode;
use tonic::{Code, Status};

use super::{State, address, state, tabs, targets};
use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, chart::Shares, tabs::Tab},
    text::{self, Moment, moment},
    told::Told,
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "target.html")]
struct Shown {
    page: Page,
    tabs: Vec<Tab>,
    name: String,
    shares: Shares,
    since_current: Shares,
    current: i32,
    state: State,
    versions: Vec<Version>,
    label: String,
    labels: Vec<Choice>,
    user: String,
    rendered: Option<Rendered>,
    /// Why it can't be rendered.
    refused: Option<Failure>,
    good: Vec<Example>,
    bad: Vec<Example>,
    /// The text that is current; empty if none is.
    text: String,
    etag: String,
    history: String,
    rate: String,
    may_generate: bool,
    may_put: bool,
    may_for_users: bool,
}

/// The ratings of what one version made.
#[derive(Debug)]
struct Version {
    name: String,
    shares: Shares,
    first: Moment,
    last: Moment,
}

/// The prompt as it is sent.
#[derive(Debug)]
struct Rendered {
    text: String,
    version: i32,
    good: i32,
    bad: i32,
    revision: i64,
}

impl From<&OutputVersionStats> for Version {
    fn from(stats: &OutputVersionStats) -> Self {
        Self {
            name: stats.prompt_version.clone(),
            shares: Shares {
                good: stats.good,
                neutral: stats.neutral,
                bad: stats.bad,
            },
            first: moment(stats.first_rated_at.as_ref()),
            last: moment(stats.last_rated_at.as_ref()),
        }
    }
}

fn key(visitor: &Visitor, kind: Kind, target: &str, label: &str) -> ResourceKey {
    ResourceKey {
        namespace: visitor.namespace.clone(),
        kind: kind.number(),
        key: target.to_owned(),
        qualifier: label.to_owned(),
        ..ResourceKey::default()
    }
}

async fn resource(visitor: &Visitor, key: ResourceKey) -> Result<Option<Resource>, Status> {
    if !visitor.may("learning.v1.ResourceService/GetResource") {
        return Ok(None);
    }
    let request = visitor.services.call(GetResourceRequest {
        key: Some(key),
        min_revision: 0,
    });
    match visitor.services.resources().get_resource(request).await {
        Ok(answer) => Ok(answer.into_inner().resource),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

fn prompt_of(resource: Option<&Resource>) -> Option<Prompt> {
    match text::learned(resource?.value.as_ref())? {
        Learned::Prompt(prompt) => Some(prompt),
        _ => None,
    }
}

/// The prompt as an AI gets it; a variable that each call must fill stands as its own place.
async fn rendered(
    visitor: &Visitor,
    target: &str,
    label: &str,
    user: &str,
    prompt: Option<&Prompt>,
) -> Result<Option<Rendered>, Status> {
    let variables = prompt.map_or(&[][..], |prompt| prompt.variables());
    let variables: HashMap<_, _> = variables
        .iter()
        .filter(|variable| variable.default.is_none())
        .map(|variable| (variable.name.clone(), format!("{{{{{}}}}}", variable.name)))
        .collect();
    let request = visitor.services.call(RenderPromptRequest {
        namespace: visitor.namespace.clone(),
        target: target.to_owned(),
        label: label.to_owned(),
        variables,
        user_id: user.to_owned(),
        ..RenderPromptRequest::default()
    });
    match visitor.services.outputs().render_prompt(request).await {
        Ok(answer) => {
            let answer = answer.into_inner();
            Ok(Some(Rendered {
                text: answer.text,
                version: answer.version,
                good: answer.good_examples,
                bad: answer.bad_examples,
                revision: answer.revision,
            }))
        }
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

/// The labels under which versions of a target are current, the one that is chosen among them.
async fn labels(visitor: &Visitor, target: &str, chosen: &str) -> Result<Vec<String>, Status> {
    let mut labels = vec![PRODUCTION.to_owned(), chosen.to_owned()];
    if visitor.may("learning.v1.OutputService/ListPromptVersions") {
        let request = visitor.services.call(ListPromptVersionsRequest {
            namespace: visitor.namespace.clone(),
            target: target.to_owned(),
            page_size: 100,
            ..ListPromptVersionsRequest::default()
        });
        let answer = visitor.services.outputs().list_prompt_versions(request).await?;
        let versions = answer.into_inner().versions.into_iter();
        labels.extend(versions.flat_map(|version| version.labels));
    }
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

fn label_of(fields: &Fields) -> String {
    let label = fields.get("label");
    if label.is_empty() { PRODUCTION } else { label }.to_owned()
}

/// Shows a target.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let target = targets::read(visitor, fields.get("target")).await?;
    let name = &*target.name;
    let (label, user) = (label_of(fields), fields.get("user"));
    let current = resource(visitor, key(visitor, Kind::Prompt, name, &label)).await?;
    let prompt = prompt_of(current.as_ref());
    let (rendered, refused) = match rendered(visitor, name, &label, user, prompt.as_ref()).await {
        Ok(rendered) => (rendered, None),
        Err(status) if status.code() == Code::Unauthenticated => return Err(status.into()),
        Err(status) => (None, Some(visitor.failure(&status))),
    };
    let examples = resource(visitor, key(visitor, Kind::FewShotSet, name, "")).await?;
    let examples = examples.and_then(|resource| text::learned(resource.value.as_ref()));
    let (good, bad) = match examples {
        Some(Learned::FewShotSet(set)) => (set.good, set.bad),
        _ => Default::default(),
    };
    let only = Fields::default().with("target", name);
    let shown = Shown {
        tabs: tabs(visitor, ""),
        shares: target.shares(),
        since_current: target.since_current(),
        current: target.stats.current_version,
        state: state(visitor, name, &target.stats),
        versions: target.stats.versions.iter().map(Version::from).collect(),
        labels: super::choices(&labels(visitor, name, &label).await?, &label),
        label,
        user: user.to_owned(),
        rendered,
        refused,
        good,
        bad,
        text: prompt.map_or_else(String::new, |prompt| prompt.text().to_owned()),
        etag: current.map(|resource| resource.etag).unwrap_or_default(),
        history: visitor.within(Part::Outputs, &["history"], &only),
        rate: visitor.within(Part::Rate, &[name], &Fields::default()),
        may_generate: visitor.may("learning.v1.OutputService/GenerateImprovement"),
        may_put: visitor.may("learning.v1.ResourceService/PutResource"),
        may_for_users: visitor
            .access
            .may_for_users("learning.v1.OutputService/RenderPrompt"),
        page: visitor.page(Part::Outputs, target.name.clone(), fields),
        name: target.name,
    };
    Ok(html(StatusCode::OK, &shown))
}

/// The prompt that somebody wrote: each `{{name}}` in it is a variable, with the default that it had, and settings stay.
fn written(text: &str, before: Option<&Prompt>) -> Result<Prompt, Status> {
    let refused = |violations| Status::from(emend_base::Error::from(violations));
    let plain = Prompt::new(text, Vec::new(), Vec::new()).map_err(refused)?;
    let known = before.map_or(&[][..], Prompt::variables);
    let variables = plain.undeclared().into_iter().map(|name| {
        let known = known.iter().find(|variable| variable.name == name);
        Variable {
            name: name.to_owned(),
            default: known.and_then(|variable| variable.default.clone()),
        }
    });
    let settings = before.map_or(&[][..], Prompt::settings).to_vec();
    Prompt::new(text, variables.collect(), settings).map_err(refused)
}

/// Puts a version and makes it current.
pub(crate) async fn put(visitor: &Visitor, fields: &Fields) -> Answer {
    let (target, label) = (fields.get("target"), label_of(fields));
    let key = key(visitor, Kind::Prompt, target, &label);
    let before = resource(visitor, key.clone()).await?;
    let prompt = written(fields.text("text"), prompt_of(before.as_ref()).as_ref())?;
    if before.is_some() && fields.get("etag").is_empty() {
        return Err(Refused::Failed(Failure::new(
            StatusCode::CONFLICT,
            visitor.t(
                "Somebody has set a prompt under this label meanwhile: open it first.",
                "このラベルには別の人がプロンプトを設定しました。先に内容を確認してください。",
            ),
        )));
    }
    let request = PutResourceRequest {
        value: Some(ResourceValue {
            display: target.to_owned(),
            value: Some(emend_wire::kinds::value(&Learned::Prompt(prompt))),
            ..ResourceValue::default()
        }),
        key: Some(key),
        etag: fields.get("etag").to_owned(),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut resources = visitor.services.resources();
    let answer = resources.put_resource(visitor.services.call(request)).await?;
    let revision = answer.into_inner().revision;
    let told = Told::set("set", revision).of(&format!("{target} ({label})"));
    let told = visitor.telling(told).with("label", &label).query();
    visitor.go(&format!(
        "{}&{}",
        address(visitor, target),
        told.trim_start_matches('?')
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_written_prompt_are_variables_that_keep_their_defaults() {
        let before = Prompt::new(
            "{{tone}}",
            vec![Variable {
                name: "tone".into(),
                default: Some("calm".into()),
            }],
            Vec::new(),
        )
        .unwrap();
        let prompt = written("Say {{input}} in a {{ tone }} way.", Some(&before)).unwrap();
        let variables: Vec<_> = prompt
            .variables()
            .iter()
            .map(|variable| (&*variable.name, variable.default.as_deref()))
            .collect();
        assert_eq!(variables, [("input", None), ("tone", Some("calm"))]);
        assert!(written(" ", None).is_err());
    }
}
