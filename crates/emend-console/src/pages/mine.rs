//! Each reviewer's own page: what others ask, what needs a second reviewer, what they wait for, and what they decided today.

use askama::Template;
use emend_proto::learning::v1::{
    Candidate, CandidateOrigin, CandidateStatus, ListCandidatesRequest, SecondOpinionFilter,
};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};

use crate::{
    failure::Refused,
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::log::can_revert_key,
    text::{self, Moment, moment},
};

/// Lines of each list at most.
const LINES: i32 = 30;

/// The page.
#[derive(Debug, Template)]
#[template(path = "mine.html")]
struct Mine {
    page: Page,
    lists: Vec<List>,
}

/// One of its lists.
#[derive(Debug)]
struct List {
    title: &'static str,
    /// What it says where there is nothing.
    none: &'static str,
    lines: Vec<Line>,
    has_more: bool,
}

/// A candidate in a list.
#[derive(Debug)]
struct Line {
    href: String,
    kind: String,
    input: String,
    arrow: String,
    value: String,
    status: &'static str,
    /// What somebody asked or said about it; may be empty.
    said: String,
    /// Where it is reverted, if it can be.
    revert: Option<String>,
    at: Moment,
}

async fn list(
    visitor: &Visitor,
    (title, none): (&'static str, &'static str),
    request: ListCandidatesRequest,
) -> Result<List, Refused> {
    let request = ListCandidatesRequest {
        namespace: visitor.namespace.clone(),
        page_size: LINES,
        ..request
    };
    let mut candidates = visitor.services.candidates();
    let answer = candidates.list_candidates(visitor.services.call(request)).await?;
    let answer = answer.into_inner();
    Ok(List {
        title,
        none,
        lines: answer
            .candidates
            .iter()
            .map(|candidate| line(visitor, candidate))
            .collect(),
        has_more: !answer.next_page_token.is_empty(),
    })
}

/// Where what a candidate changed is reverted, once seen what that touches; none where nothing of it is in force.
fn revert(visitor: &Visitor, candidate: &Candidate) -> Option<String> {
    let may = can_revert_key(visitor, candidate.key.as_ref()?);
    let is_alone = candidate.origin() != CandidateOrigin::Import;
    let applies = candidate.status() == CandidateStatus::Applied && candidate.applied_revision > 0;
    (may && applies && is_alone).then(|| {
        let number = candidate.applied_revision.to_string();
        visitor.and_back(&visitor.within(Part::Log, &[&number, "revert"], &Fields::default()))
    })
}

fn line(visitor: &Visitor, candidate: &Candidate) -> Line {
    let value = candidate.value.as_ref();
    let fields = Fields::default()
        .with("item", &candidate.candidate_id)
        .with("status", "any");
    let said = match (&candidate.second_opinion, &candidate.first_approval) {
        (Some(question), _) => format!(
            "{}: {}",
            visitor.language.actor(question.actor.as_ref()),
            question.comment
        ),
        (None, Some(first)) => match visitor.language {
            text::Language::English => {
                format!("approved by {}", visitor.language.actor(first.actor.as_ref()))
            }
            text::Language::Japanese => format!("承認: {}", visitor.language.actor(first.actor.as_ref())),
        },
        (None, None) => candidate.decision_reason.clone(),
    };
    Line {
        href: visitor.and_back(&visitor.to(Part::Review, &fields)),
        kind: visitor
            .language
            .kind(candidate.key.as_ref().map_or(0, |key| key.kind)),
        input: text::shortened(&text::display(candidate.key.as_ref(), value), 120),
        arrow: text::arrow(value),
        value: text::shortened(&text::value_line(visitor.language, value), 120),
        status: visitor.language.status(candidate.status),
        said: text::shortened(&said, 200),
        revert: revert(visitor, candidate),
        at: moment(candidate.updated_at.as_ref()),
    }
}

/// Shows the lists of whoever looks.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let me = visitor.name();
    let asks = |asked: &str, asked_by: &str| ListCandidatesRequest {
        second_opinion: Some(SecondOpinionFilter {
            asked: asked.to_owned(),
            asked_by: asked_by.to_owned(),
        }),
        ..ListCandidatesRequest::default()
    };
    let t = |english: &'static str, japanese: &'static str| visitor.language.t(english, japanese);
    let asked = (
        t("Others ask you", "意見を求められている項目"),
        t("Nobody waits for your answer.", "回答待ちの質問はありません。"),
    );
    let second = (
        t("Waiting for a second reviewer", "2人目の承認待ち"),
        t(
            "Nothing waits for a second approval.",
            "2人目の承認を待つ項目はありません。",
        ),
    );
    let asking = (
        t("You asked", "自分が質問した項目"),
        t(
            "You wait for nobody's answer.",
            "回答を待っている質問はありません。",
        ),
    );
    let decided = (
        t(
            "You decided or wrote about in the last 24 hours",
            "24時間以内に自分が判断・コメントした項目",
        ),
        t(
            "Nothing yet: what waits is on Review.",
            "まだありません。待ちの項目は「レビュー」にあります。",
        ),
    );
    let since = visitor
        .console
        .clock
        .now()
        .checked_sub(SignedDuration::from_hours(24));
    let since = since.unwrap_or(Timestamp::UNIX_EPOCH);
    let decisions = ListCandidatesRequest {
        decided_by: me.clone(),
        decided_after: Some(emend_wire::render::timestamp(since)),
        ..ListCandidatesRequest::default()
    };
    let approved_once = ListCandidatesRequest {
        needs_second_reviewer: true,
        ..ListCandidatesRequest::default()
    };
    let (asked, second, asking, decided) = tokio::try_join!(
        list(visitor, asked, asks(&me, "")),
        list(visitor, second, approved_once),
        list(visitor, asking, asks("", &me)),
        list(visitor, decided, decisions),
    )?;
    let page = Mine {
        page: visitor.page(Part::Mine, t("Mine", "自分の担当"), fields),
        lists: vec![asked, second, asking, decided],
    };
    Ok(html(StatusCode::OK, &page))
}
