//! Revisions as they come, and reverting one.

pub(crate) mod revert;

use askama::Template;
use emend_core::{Kind, kinds::HUMAN};
use emend_proto::{
    common::v1::{Cause, ResourceKey},
    learning::v1::{ListRevisionsRequest, Revision, RevisionChange},
};
use http::StatusCode;

use crate::{
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{Choice, kind_numbers, kinds, links},
    text::{self, Moment, moment},
};

/// The method that reverts a revision.
const REVERT: &str = "learning.v1.ResourceService/RevertRevision";
const PAGE: i32 = 50;
/// How many changes of one revision are shown in full.
const CHANGES: usize = 20;

/// The page.
#[derive(Debug, Template)]
#[template(path = "log.html")]
struct Log {
    page: Page,
    kinds: Vec<Choice>,
    key: String,
    operation: String,
    revisions: Vec<Shown>,
    may_revert: bool,
    first: Option<String>,
    next: Option<String>,
    is_filtered: bool,
}

/// A revision.
#[derive(Debug)]
struct Shown {
    revision: i64,
    cause: &'static str,
    who: String,
    reason: String,
    at: Moment,
    operation: String,
    lines: Vec<Line>,
    /// How many changes are not shown.
    more: usize,
    can_revert: bool,
}

/// One change.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its revision.
    pub revision: i64,
    /// What kind of resource.
    pub kind: String,
    /// Where its life is told.
    pub href: String,
    /// The key.
    pub input: String,
    /// Between both.
    pub arrow: String,
    /// The value after it.
    pub value: String,
    /// The value before it; empty if there was none.
    pub before: String,
    /// Whether there is none after it.
    pub is_deleted: bool,
    /// Whether the value after it is kept no longer.
    pub is_dropped: bool,
    /// Why.
    pub cause: &'static str,
    /// Who.
    pub who: String,
    /// When.
    pub at: Moment,
}

/// The changes of a revision.
pub(crate) fn line(visitor: &Visitor, revision: &Revision) -> Vec<Line> {
    let (who, at) = (
        visitor.language.actor(revision.actor.as_ref()),
        moment(revision.committed_at.as_ref()),
    );
    let cause = visitor.language.cause(revision.cause);
    let changes = revision.changes.iter().map(|change| {
        let key = change.key.clone().unwrap_or_default();
        let known = change.after.as_ref().or(change.before.as_ref());
        let shown = |value| text::shortened(&text::value_line(visitor.language, value), 160);
        Line {
            revision: revision.revision,
            kind: visitor.language.kind(key.kind),
            input: text::shortened(&text::display(Some(&key), known), 160),
            arrow: text::arrow(known),
            value: if change.value_dropped {
                visitor
                    .t("a value that is no longer kept", "(当時の値は保存されていません)")
                    .to_owned()
            } else {
                shown(change.after.as_ref())
            },
            before: shown(change.before.as_ref()),
            is_deleted: change.after.is_none() && change.after_checksum == 0 && !change.value_dropped,
            is_dropped: change.value_dropped,
            href: super::learned::address(visitor, &key),
            cause,
            who: who.clone(),
            at: at.clone(),
        }
    });
    changes.collect()
}

/// Shows the log, newest first.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let chosen = kind_numbers(fields);
    let request = ListRevisionsRequest {
        namespace: visitor.namespace.clone(),
        kind: chosen.first().copied().unwrap_or_default(),
        key: fields.get("key").to_owned(),
        operation_id: fields.get("operation").to_owned(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        revision: 0,
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .list_revisions(visitor.services.call(request))
        .await?
        .into_inner();
    let page = visitor.page(Part::Log, visitor.t("Log", "履歴"), fields);
    let kept = fields.without(&TOLD);
    let (first, next) = links(
        &visitor.to(Part::Log, &Fields::default()),
        &kept,
        &answer.next_page_token,
    );
    let revisions = answer.revisions.iter().map(|revision| {
        let mut lines = line(visitor, revision);
        let more = lines.len().saturating_sub(CHANGES);
        lines.truncate(CHANGES);
        Shown {
            revision: revision.revision,
            cause: visitor.language.cause(revision.cause),
            who: visitor.language.actor(revision.actor.as_ref()),
            reason: revision.reason.clone(),
            at: moment(revision.committed_at.as_ref()),
            operation: revision.operation_id.clone(),
            lines,
            more,
            can_revert: can_revert(visitor, revision),
        }
    });
    let log = Log {
        kinds: kinds(&page, &chosen),
        key: fields.get("key").to_owned(),
        operation: fields.get("operation").to_owned(),
        revisions: revisions.collect(),
        may_revert: visitor.may(REVERT),
        first,
        next,
        is_filtered: !kept.without(&["page"]).query().is_empty(),
        page,
    };
    Ok(html(StatusCode::OK, &log))
}

/// Whether the reader can revert a revision, for all that is known of it.
pub(crate) fn can_revert(visitor: &Visitor, revision: &Revision) -> bool {
    let by_people = |change: &RevisionChange| {
        let key = change.key.clone().unwrap_or_default();
        can_revert_key(visitor, &key) && !change.changed_since
    };
    visitor.may(REVERT) && revision.cause() != Cause::Erasure && revision.changes.iter().all(by_people)
}

/// Whether the reader can revert what a key has: people decide it, and the reader may for its user.
pub(crate) fn can_revert_key(visitor: &Visitor, key: &ResourceKey) -> bool {
    let is_of_system = key.kind == Kind::DomainRule.number() && key.qualifier != HUMAN;
    let is_windowed = key.kind == Kind::FewShotSet.number();
    let may = key.user_id.is_empty() || visitor.access.may_for_users(REVERT);
    visitor.may(REVERT) && may && !is_of_system && !is_windowed
}

/// Whether a kind can be set and reverted by people.
pub(crate) fn is_settable(kind: i32) -> bool {
    Kind::from_number(kind).is_some_and(|kind| !matches!(kind, Kind::FewShotSet | Kind::Profile))
}
