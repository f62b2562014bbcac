//! How queries of each type are searched: what is in force, setting it, and returning to the defaults.

use askama::Template;
use emend_core::{Invalid, Kind, Learned, search::Tuning};
use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceValue},
    learning::v1::{DeleteResourceRequest, GetResourceRequest, ListResourcesRequest, PutResourceRequest},
};
use http::StatusCode;
use tonic::{Code, Status};

use super::tabs;
use crate::{
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{learned, links, tabs::Tab},
    text::{self, Moment, moment},
    told::Told,
    typed,
};

const PAGE: i32 = 100;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_tuning.html")]
struct Shown {
    page: Page,
    tabs: Vec<Tab>,
    rows: Vec<Row>,
    chosen: Option<Chosen>,
    may_set: bool,
    may_delete: bool,
    first: Option<String>,
    next: Option<String>,
}

/// A type that has a tuning of its own.
#[derive(Debug)]
struct Row {
    query_type: String,
    href: String,
    words: String,
    revision: i64,
    at: Moment,
}

/// The type that is looked at.
#[derive(Debug)]
struct Chosen {
    query_type: String,
    is_default: bool,
    /// What a node searches with, a setting for each part.
    settings: Vec<(String, String)>,
    life: String,
    revision: i64,
    etag: String,
    form: Form,
}

/// A tuning as the fields of its form.
#[derive(Debug, PartialEq)]
struct Form {
    top_k: String,
    min_score: String,
    confidences: String,
    weights: String,
    namespaces: String,
    retry: String,
    suggestion: String,
}

impl Form {
    fn of(tuning: &Tuning) -> Self {
        let lines = |lines: Vec<String>| lines.join("\n");
        let named = |(name, number): (&str, f64)| format!("{name}={number}");
        let steps: Vec<String> = tuning.retry().iter().map(ToString::to_string).collect();
        Self {
            top_k: tuning.top_k().to_string(),
            min_score: tuning.min_score().to_string(),
            confidences: lines(tuning.confidences().map(named).collect()),
            weights: lines(tuning.weights().map(named).collect()),
            namespaces: lines(tuning.namespaces().to_vec()),
            retry: if steps.is_empty() {
                "none".to_owned()
            } else {
                lines(steps)
            },
            suggestion: tuning.suggestion().to_owned(),
        }
    }

    fn sent(fields: &Fields) -> Self {
        let field = |name| fields.get(name).to_owned();
        Self {
            top_k: field("top_k"),
            min_score: field("min_score"),
            confidences: field("confidences"),
            weights: field("weights"),
            namespaces: field("namespaces"),
            retry: field("retry"),
            suggestion: field("suggestion"),
        }
    }

    /// As the line that files and command lines have; what is left empty has its default.
    fn line(&self) -> String {
        let lines = |text: &str, prefix: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(|line| format!("{prefix}{line}")).collect()
        };
        let mut settings = lines(&self.top_k, "top_k=");
        settings.extend(lines(&self.min_score, "min_score="));
        settings.extend(lines(&self.confidences, "confidence."));
        settings.extend(lines(&self.weights, "weight."));
        let namespaces = lines(&self.namespaces, "").join(",");
        settings.extend(lines(&namespaces, "namespaces="));
        settings.extend(lines(&self.retry, "retry="));
        settings.extend(lines(&self.suggestion, "suggestion="));
        settings.join(" ")
    }

    fn tuning(&self) -> Result<Tuning, Status> {
        let line = self.line();
        if line.is_empty() {
            return Ok(Tuning::default());
        }
        Tuning::parse(&line).map_err(|Invalid(why)| emend_base::Error::invalid("tuning", why).into())
    }
}

/// The tuning that a resource holds.
fn of_resource(resource: &Resource) -> Option<Tuning> {
    match text::learned(resource.value.as_ref())? {
        Learned::SearchTuning(set) => Some(Tuning::clone(set?.tuning())),
        _ => None,
    }
}

/// A tuning in parts: names as files have them, and values.
pub(super) fn settings(tuning: &Tuning) -> Vec<(String, String)> {
    let line = tuning.to_string();
    let (settings, suggestion) = match line.split_once(" suggestion=") {
        Some((settings, suggestion)) => (settings.to_owned(), Some(suggestion.to_owned())),
        None => (line, None),
    };
    let pair = |setting: &str| {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        (name.to_owned(), value.to_owned())
    };
    let suggestion = suggestion.map(|text| ("suggestion".to_owned(), text));
    settings.split(' ').map(pair).chain(suggestion).collect()
}

fn key(visitor: &Visitor, query_type: &str) -> ResourceKey {
    ResourceKey {
        namespace: visitor.namespace.clone(),
        kind: Kind::SearchTuning.number(),
        key: query_type.to_owned(),
        ..ResourceKey::default()
    }
}

/// What is in force for a type, as its resource; none where the defaults are.
pub(super) async fn in_force(
    visitor: &Visitor,
    query_type: &str,
) -> Result<Option<(Resource, Tuning)>, Status> {
    let request = visitor.services.call(GetResourceRequest {
        key: Some(key(visitor, query_type)),
        min_revision: 0,
    });
    match visitor.services.resources().get_resource(request).await {
        Ok(answer) => Ok(answer.into_inner().resource.and_then(|resource| {
            let tuning = of_resource(&resource)?;
            Some((resource, tuning))
        })),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

async fn chosen(visitor: &Visitor, query_type: &str) -> Result<Option<Chosen>, Status> {
    if query_type.is_empty() {
        return Ok(None);
    }
    let own = in_force(visitor, query_type).await?;
    let is_default = own.is_none();
    let (resource, tuning) = own.unwrap_or_default();
    Ok(Some(Chosen {
        query_type: query_type.to_owned(),
        is_default,
        settings: settings(&tuning),
        life: learned::address(visitor, &key(visitor, query_type)),
        revision: resource.revision,
        etag: if is_default { "0".to_owned() } else { resource.etag },
        form: Form::of(&tuning),
    }))
}

/// Lists the types that have a tuning of their own, and shows one.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.call(ListResourcesRequest {
        namespace: visitor.namespace.clone(),
        kinds: vec![Kind::SearchTuning.number()],
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListResourcesRequest::default()
    });
    let answer = visitor.services.resources().list_resources(request).await?;
    let answer = answer.into_inner();
    let here = |fields: &Fields| visitor.within(Part::Search, &["tuning"], fields);
    let (first, next) = links(&here(&Fields::default()), fields, &answer.next_page_token);
    let rows = answer.resources.iter().map(|resource| {
        let query_type = resource.key.clone().unwrap_or_default().key;
        Row {
            href: here(&fields.without(&TOLD).with("type", &query_type)),
            words: of_resource(resource).map_or_else(String::new, |tuning| tuning.to_string()),
            revision: resource.revision,
            at: moment(resource.committed_at.as_ref()),
            query_type,
        }
    });
    let shown = Shown {
        tabs: tabs(visitor, "tuning"),
        rows: rows.collect(),
        chosen: chosen(visitor, fields.get("type")).await?,
        may_set: visitor.may("learning.v1.ResourceService/PutResource"),
        may_delete: visitor.may("learning.v1.ResourceService/DeleteResource"),
        first,
        next,
        page: visitor.page(Part::Search, visitor.t("Tuning", "検索設定"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

fn gone_to(visitor: &Visitor, query_type: &str, done: &str, revision: i64) -> Answer {
    let told = visitor.telling(Told::set(done, revision).of(query_type));
    let told = told.with("type", query_type);
    visitor.go(&visitor.within(Part::Search, &["tuning"], &told))
}

/// Sets how queries of a type are searched.
pub(crate) async fn set(visitor: &Visitor, fields: &Fields) -> Answer {
    let query_type = fields.get("type");
    let tuning = Form::sent(fields).tuning()?;
    let request = visitor.services.call(PutResourceRequest {
        key: Some(key(visitor, query_type)),
        value: Some(ResourceValue {
            display: query_type.to_owned(),
            value: Some(emend_wire::kinds::value(&Learned::SearchTuning(Some(
                tuning.into(),
            )))),
            ..ResourceValue::default()
        }),
        etag: typed::etag(fields)?,
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    });
    let answer = visitor.services.resources().put_resource(request).await?;
    gone_to(visitor, query_type, "set", answer.into_inner().revision)
}

/// Returns to the defaults.
pub(crate) async fn delete(visitor: &Visitor, fields: &Fields) -> Answer {
    let query_type = fields.get("type");
    let request = visitor.services.call(DeleteResourceRequest {
        key: Some(key(visitor, query_type)),
        etag: typed::etag(fields)?,
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    });
    let answer = visitor.services.resources().delete_resource(request).await?;
    gone_to(visitor, query_type, "deleted", answer.into_inner().revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_back_as_the_tuning_it_was_made_of() {
        let line = "top_k=20 min_score=0.3 confidence.high=0.8 confidence.low=0.5 weight.keyword=0.7 namespaces=effects,faq \
                    retry=+combined,-0.1,top_k=20 retry=synonyms suggestion=Fewer words?";
        for line in [line, "retry=none"] {
            let tuning = Tuning::parse(line).unwrap();
            assert_eq!(Form::of(&tuning).tuning().unwrap(), tuning);
        }
        let empty = Form::sent(&Fields::default());
        assert_eq!(empty.tuning().unwrap(), Tuning::default());
        let wrong = Form::sent(&Fields::parse(b"top_k=1000"));
        assert!(wrong.tuning().unwrap_err().message().contains("top_k"));
    }
}
