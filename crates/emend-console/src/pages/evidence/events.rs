//! What was done to domains, claims and edges.

use askama::Template;
use emend_core::Kind;
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{EvidenceElement, EvidenceEvent, ListEvidenceEventsRequest, evidence_element::Element},
};
use http::StatusCode;

use super::{claims, edges, tabs, words};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, links, tabs::Tab},
    text::{Moment, moment},
};

const PAGE: i32 = 50;

/// The page.
#[derive(Debug, Template)]
#[template(path = "events.html")]
struct Events {
    page: Page,
    tabs: Vec<Tab>,
    kinds: Vec<Choice>,
    target: String,
    task: String,
    caller: String,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
    is_filtered: bool,
}

/// An event.
#[derive(Debug)]
struct Row {
    action: &'static str,
    sort: String,
    target: String,
    /// Where it is shown; empty if nowhere.
    href: String,
    before: String,
    after: String,
    proposed: String,
    reason: String,
    who: String,
    task: String,
    revision: i64,
    at: Moment,
}

/// What was decided about: sort, name and address.
fn decided(visitor: &Visitor, key: &ResourceKey) -> (String, String, String) {
    let href = match Kind::from_number(key.kind) {
        Some(Kind::DomainRule) => visitor.to(Part::Evidence, &Fields::default().with("pattern", &key.key)),
        Some(Kind::ClaimState) => claims::address(visitor, &key.key),
        Some(Kind::EdgeLabel) => edges::address(visitor, &key.key),
        _ => String::new(),
    };
    (visitor.language.kind(key.kind), key.key.clone(), href)
}

/// What was replaced or deleted: sort, name and address.
fn changed(visitor: &Visitor, element: EvidenceElement) -> (String, String, String) {
    let (sort, id, href) = match element.element {
        None => ("", String::new(), String::new()),
        Some(Element::PageId(id)) => (visitor.t("Page", "ページ"), id, String::new()),
        Some(Element::FragmentId(id)) => (visitor.t("Fragment", "フラグメント"), id, String::new()),
        Some(Element::ClaimId(id)) => {
            let href = claims::address(visitor, &id);
            (visitor.t("Claim", "主張"), id, href)
        }
        Some(Element::EdgeId(id)) => {
            let href = edges::address(visitor, &id);
            (visitor.t("Edge", "エッジ"), id, href)
        }
    };
    (sort.to_owned(), id, href)
}

fn row(visitor: &Visitor, event: EvidenceEvent) -> Row {
    let kind = event.key.as_ref().and_then(|key| Kind::from_number(key.kind));
    let said = |word: String| match kind {
        Some(kind) => visitor.language.decision(kind, &word),
        None => word,
    };
    let (sort, target, href) = match (event.key, event.element) {
        (Some(key), _) => decided(visitor, &key),
        (None, element) => changed(visitor, element.unwrap_or_default()),
    };
    Row {
        action: words::action(visitor.language, event.action),
        sort,
        target,
        href,
        before: said(event.before),
        after: said(event.after),
        proposed: said(event.proposed),
        reason: event.reason,
        who: if event.reporter.is_empty() {
            visitor.language.actor(event.actor.as_ref())
        } else {
            let caller = event.actor.map(|actor| actor.caller).unwrap_or_default();
            visitor.language.person(&event.reporter, &caller)
        },
        task: event.task_id,
        revision: event.revision,
        at: moment(event.at.as_ref()),
    }
}

/// Lists events.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (target, task, caller) = (fields.get("target"), fields.get("task"), fields.get("caller"));
    let kinds = [
        ("domain", Kind::DomainRule),
        ("claim", Kind::ClaimState),
        ("edge", Kind::EdgeLabel),
    ];
    let chosen = kinds.iter().find(|(name, _)| *name == fields.get("kind"));
    let (_, kind) = chosen.unwrap_or(&kinds[0]);
    let request = visitor.services.call(ListEvidenceEventsRequest {
        namespace: visitor.namespace.clone(),
        target: target.to_owned(),
        kind: if target.is_empty() { 0 } else { kind.number() },
        task_id: task.to_owned(),
        caller: caller.to_owned(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListEvidenceEventsRequest::default()
    });
    let answer = visitor.services.evidence().list_evidence_events(request).await?;
    let answer = answer.into_inner();
    let address = visitor.within(Part::Evidence, &["events"], &Fields::default());
    let (first, next) = links(&address, fields, &answer.next_page_token);
    let choices = kinds.iter().map(|(name, listed)| Choice {
        value: (*name).to_owned(),
        label: visitor.language.kind(listed.number()),
        is_chosen: listed == kind,
    });
    let rows = answer.events.into_iter();
    let shown = Events {
        tabs: tabs(visitor, "events"),
        kinds: choices.collect(),
        target: target.to_owned(),
        task: task.to_owned(),
        caller: caller.to_owned(),
        rows: rows.map(|event| row(visitor, event)).collect(),
        first,
        next,
        is_filtered: !target.is_empty() || !task.is_empty() || !caller.is_empty(),
        page: visitor.page(Part::Evidence, visitor.t("Events", "操作履歴"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}
