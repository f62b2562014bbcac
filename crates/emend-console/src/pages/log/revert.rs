//! Reverting a revision or a whole operation: first what it would touch, then doing it.

use askama::Template;
use emend_proto::learning::v1::{ListRevisionsRequest, RevertRevisionRequest, RevertRevisionResponse};
use http::StatusCode;
use tonic::{Code, Status};

use super::{Line, line};
use crate::{
    failure::Failure,
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::learned,
    text::{self, Language},
    told::Told,
};

/// How many changes are shown before somebody reverts them.
const SHOWN: usize = 100;
/// Why something is previewed; nobody reads it.
const PREVIEW: &str = "preview";

/// The page.
#[derive(Debug, Template)]
#[template(path = "revert.html")]
struct Preview {
    page: Page,
    title: String,
    /// Where it is confirmed.
    action: String,
    changes: Vec<Line>,
    more: usize,
    reverted: i64,
    already: i64,
    left_count: i64,
    left: Vec<Left>,
    /// Why it can't be reverted.
    refused: Option<Failure>,
    /// Where it leads back to, and what that is called.
    back: (String, &'static str),
}

/// A change that stays as it is.
#[derive(Debug)]
struct Left {
    href: String,
    key: String,
    why: String,
}

/// The number of the revision that the path names.
fn revision_of(visitor: &Visitor) -> Result<i64, Status> {
    let number = visitor.item.parse::<i64>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| emend_base::Error::invalid("revision", "must be 1 or more").into())
}

async fn ask(visitor: &Visitor, request: RevertRevisionRequest) -> Result<RevertRevisionResponse, Status> {
    let request = RevertRevisionRequest {
        namespace: visitor.namespace.clone(),
        on_behalf_of: visitor.on_behalf_of(),
        ..request
    };
    let mut resources = visitor.services.resources();
    // An operation may have many revisions, each of which is reverted by itself.
    let answer = resources
        .revert_revision(visitor.services.model_call(request))
        .await?;
    Ok(answer.into_inner())
}

/// The changes of the first revisions that a request lists.
async fn changes(visitor: &Visitor, request: ListRevisionsRequest) -> Result<Vec<Line>, Status> {
    if !visitor.may("learning.v1.ResourceService/ListRevisions") {
        return Ok(Vec::new());
    }
    let request = visitor.services.call(ListRevisionsRequest {
        namespace: visitor.namespace.clone(),
        page_size: 100,
        ..request
    });
    let answer = visitor.services.resources().list_revisions(request).await?;
    let revisions = answer.into_inner().revisions;
    Ok(revisions
        .iter()
        .flat_map(|revision| line(visitor, revision))
        .collect())
}

async fn shown(
    visitor: &Visitor,
    fields: &Fields,
    title: String,
    listed: ListRevisionsRequest,
    reverted: RevertRevisionRequest,
) -> Answer {
    let mut changes = changes(visitor, listed).await?;
    if changes.is_empty() && reverted.revision > 0 {
        return Err(Status::from(emend_base::Error::not_found("revision", visitor.item.clone())).into());
    }
    let (answer, refused) = match ask(visitor, reverted).await {
        Ok(answer) => (answer, None),
        Err(status) if status.code() == Code::FailedPrecondition => {
            (RevertRevisionResponse::default(), Some(visitor.failure(&status)))
        }
        Err(status) => return Err(status.into()),
    };
    let left = answer.left.iter().map(|left| {
        let key = left.key.clone().unwrap_or_default();
        Left {
            href: learned::address(visitor, &key),
            key: text::shortened(&key.key, 160),
            why: left.description.clone(),
        }
    });
    let more = changes.len().saturating_sub(SHOWN);
    changes.truncate(SHOWN);
    let preview = Preview {
        action: visitor.uri.path().to_owned(),
        changes,
        more,
        reverted: answer.reverted_count,
        already: answer.already_count,
        left_count: answer.left_count,
        left: left.collect(),
        refused,
        back: visitor.back(fields).unwrap_or_else(|| {
            (
                visitor.to(Part::Log, &Fields::default()),
                visitor.t("Log", "履歴"),
            )
        }),
        page: visitor.page(Part::Log, title.clone(), &Fields::default()),
        title,
    };
    Ok(html(StatusCode::OK, &preview))
}

/// Shows what reverting a revision would touch.
pub(crate) async fn preview(visitor: &Visitor, fields: &Fields) -> Answer {
    let revision = revision_of(visitor)?;
    let title = format!(
        "{} {revision}",
        visitor.t("Revert revision", "リビジョンの差し戻し:")
    );
    let listed = ListRevisionsRequest {
        revision,
        ..ListRevisionsRequest::default()
    };
    let reverted = RevertRevisionRequest {
        revision,
        reason: PREVIEW.to_owned(),
        preview: true,
        ..RevertRevisionRequest::default()
    };
    shown(visitor, fields, title, listed, reverted).await
}

/// Shows what reverting an operation would touch.
pub(crate) async fn preview_operation(visitor: &Visitor, fields: &Fields) -> Answer {
    let title = visitor.t("Revert the whole operation", "一括操作全体の差し戻し");
    let listed = ListRevisionsRequest {
        operation_id: visitor.item.clone(),
        ..ListRevisionsRequest::default()
    };
    let reverted = RevertRevisionRequest {
        operation_id: visitor.item.clone(),
        reason: PREVIEW.to_owned(),
        preview: true,
        ..RevertRevisionRequest::default()
    };
    shown(visitor, fields, title.to_owned(), listed, reverted).await
}

/// What was changed, in a few words.
fn what(language: Language, changes: &[Line]) -> String {
    let Some(first) = changes.first() else {
        return String::new();
    };
    match (language, changes.len() - 1) {
        (_, 0) => first.input.clone(),
        (Language::English, more) => format!("{} and {more} more", first.input),
        (Language::Japanese, more) => format!("{} ほか {more} 件", first.input),
    }
}

fn done(visitor: &Visitor, fields: &Fields, what: &str, revision: i64) -> Answer {
    let done = if revision == 0 { "nothing" } else { "reverted" };
    let told = visitor.telling(Told::new(done).of(what).at_revision(revision));
    visitor.go_back(fields, &visitor.to(Part::Log, &Fields::default()), &told)
}

/// Restores the state before a revision, as a new one.
pub(crate) async fn revert(visitor: &Visitor, fields: &Fields) -> Answer {
    let revision = revision_of(visitor)?;
    let request = RevertRevisionRequest {
        revision,
        reason: fields.get("reason").to_owned(),
        ..RevertRevisionRequest::default()
    };
    let answer = ask(visitor, request).await?;
    let listed = ListRevisionsRequest {
        revision,
        ..ListRevisionsRequest::default()
    };
    let changes = changes(visitor, listed).await?;
    done(
        visitor,
        fields,
        &what(visitor.language, &changes),
        answer.revision,
    )
}

/// Restores the state before an operation; what was changed since stays.
pub(crate) async fn revert_operation(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = RevertRevisionRequest {
        operation_id: visitor.item.clone(),
        reason: fields.get("reason").to_owned(),
        ..RevertRevisionRequest::default()
    };
    let answer = ask(visitor, request).await?;
    done(visitor, fields, "", answer.revision)
}
