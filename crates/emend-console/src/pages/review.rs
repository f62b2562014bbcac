//! The one queue of all kinds: what waits for a person, and deciding it.

mod detail;
mod preview;
pub(crate) mod talk;

use askama::Template;
use axum::response::IntoResponse as _;
use emend_proto::learning::v1::{
    AcquireReviewLeaseRequest, ApproveCandidateRequest, ApproveCandidateResponse,
    BatchApproveCandidatesRequest, BatchRejectCandidatesRequest, Candidate, CandidateOrder, CandidateStatus,
    ListCandidatesRequest, ListCandidatesResponse, RejectCandidateRequest, ReleaseReviewLeaseRequest,
    ReviewLease, ReviewResult,
};
use http::StatusCode;
use tonic::{Code, Status};

use self::detail::Detail;
pub(crate) use self::detail::{DiffLine, diff};
use self::preview::{Judged, judged};
use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, kind_numbers, kinds, links},
    text::{self, Language, Moment, moment},
    told::{self, Told},
};

const PAGE: i32 = 30;
/// The reason of what one reviewer approved, where it takes two.
const SECOND_REVIEWER: &str = "SECOND_REVIEWER";

/// The page.
#[derive(Debug, Template)]
#[template(path = "review.html")]
struct Review {
    page: Page,
    kinds: Vec<Choice>,
    statuses: Vec<Choice>,
    orders: Vec<Choice>,
    text: String,
    entries: Vec<Entry>,
    detail: Option<Detail>,
    failure: Option<Failure>,
    may_decide: bool,
    first: Option<String>,
    next_page: Option<String>,
    /// The filters, as forms carry them.
    filters: String,
    previous: Option<String>,
    next: Option<String>,
    /// The item after this one; empty if there is none.
    next_id: String,
    is_filtered: bool,
    /// Whether the queue has several statuses.
    shows_status: bool,
    /// The page from which it was opened.
    back: Option<(String, &'static str)>,
    /// What it says where a text was not looked for in all candidates.
    unsearched: Option<String>,
    /// Where the item is tried on recorded queries.
    attempt: String,
}

/// A line of the queue.
#[derive(Debug)]
struct Entry {
    id: String,
    href: String,
    kind: String,
    input: String,
    arrow: String,
    value: String,
    votes: i64,
    needed: i32,
    risk: &'static str,
    status: &'static str,
    at: Moment,
    holder: Option<String>,
    /// Somebody was asked about it and has not answered.
    is_asked: bool,
    /// One reviewer approved it, where it takes two.
    is_approved_once: bool,
    is_open: bool,
}

/// What somebody typed into a form that was refused.
#[derive(Debug, Clone, Default)]
struct Typed {
    value: String,
    reason: String,
    comment: String,
    asked: String,
    judged: String,
}

/// The fields that are filters of the queue, not its state.
fn filters(fields: &Fields) -> Fields {
    fields.without(&[
        "item",
        "preview",
        "left",
        told::FIELD,
        "page",
        "form_token",
        "etag",
        "return",
        "next",
        "reason",
        "comment",
        "asked",
        "value",
        "candidate",
        "accept_redacted",
        "decision",
        "judged",
    ])
}

/// Whether the one who looks has it open.
fn is_own(visitor: &Visitor, lease: &ReviewLease) -> bool {
    let actor = lease.actor.clone().unwrap_or_default();
    if visitor.access.authenticated {
        actor.caller == visitor.access.caller && actor.on_behalf_of.is_empty()
    } else {
        actor.on_behalf_of == visitor.on_behalf_of()
    }
}

/// Who else has it open.
fn holder(visitor: &Visitor, lease: Option<&ReviewLease>) -> Option<String> {
    let lease = lease.filter(|lease| !is_own(visitor, lease))?;
    Some(visitor.language.actor(lease.actor.as_ref()))
}

/// Shows the queue, and the item that is open.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let tried = fields.has("preview").then(Vec::new);
    render(visitor, fields, None, &Typed::default(), tried).await
}

/// Tries the item on what was searched, and on the judged queries that were typed. Nothing of it is kept.
pub(crate) async fn attempt(visitor: &Visitor, fields: &Fields) -> Answer {
    let typed = fields.text("judged");
    match judged(visitor.language, typed) {
        Ok(judged) => {
            let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
            let typed = Typed {
                judged: typed.to_owned(),
                ..Typed::default()
            };
            render(
                visitor,
                &kept.with("item", &visitor.item),
                None,
                &typed,
                Some(judged),
            )
            .await
        }
        Err(status) => again(visitor, fields, status).await,
    }
}

async fn list(visitor: &Visitor, fields: &Fields) -> Result<ListCandidatesResponse, Refused> {
    let statuses = match fields.get("status") {
        "any" => Vec::new(),
        name => {
            let status =
                CandidateStatus::from_str_name(&format!("CANDIDATE_STATUS_{}", name.to_ascii_uppercase()));
            vec![status.unwrap_or(CandidateStatus::AwaitingReview) as i32]
        }
    };
    let order = match fields.get("order") {
        "oldest" => CandidateOrder::OldestFirst,
        "votes" => CandidateOrder::MostVotes,
        "controversy" => CandidateOrder::MostControversial,
        _ => CandidateOrder::NewestFirst,
    };
    // The other two orders are of what waits.
    let is_waiting = statuses == [CandidateStatus::AwaitingReview as i32];
    let order = match order {
        CandidateOrder::MostVotes | CandidateOrder::MostControversial if !is_waiting => {
            CandidateOrder::NewestFirst
        }
        order => order,
    };
    let request = ListCandidatesRequest {
        namespace: visitor.namespace.clone(),
        kinds: kind_numbers(fields),
        statuses,
        order: order as i32,
        text: fields.get("text").to_owned(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListCandidatesRequest::default()
    };
    let answer = visitor
        .services
        .candidates()
        .list_candidates(visitor.services.call(request))
        .await?;
    Ok(answer.into_inner())
}

/// The page; with what the open item would change where it is `tried`, on these judged queries, too.
async fn render(
    visitor: &Visitor,
    fields: &Fields,
    failure: Option<Failure>,
    typed: &Typed,
    tried: Option<Vec<Judged>>,
) -> Answer {
    release(visitor, fields.get("left")).await;
    let ListCandidatesResponse {
        candidates,
        next_page_token: next_token,
        searched_count,
    } = list(visitor, fields).await?;
    let wanted = match fields.get("item") {
        // Nothing chosen: the first that nobody else has open.
        "" => candidates
            .iter()
            .find(|candidate| holder(visitor, candidate.lease.as_ref()).is_none())
            .or(candidates.first())
            .map(|candidate| candidate.candidate_id.clone()),
        item => Some(item.to_owned()),
    };
    let mut page = visitor.page(Part::Review, visitor.t("Review", "レビュー"), fields);
    let address = visitor.to(Part::Review, &Fields::default());
    let mut failure = failure;
    let detail = match &wanted {
        Some(id) => match detail::read(visitor, id, typed, tried).await {
            Ok(mut detail) => {
                if let Some(status) = detail.refusal.take() {
                    failure.get_or_insert_with(|| visitor.failure(&status));
                }
                Some(detail)
            }
            Err(status) if status.code() == Code::NotFound || status.code() == Code::InvalidArgument => {
                failure.get_or_insert_with(|| visitor.failure(&status));
                None
            }
            Err(status) => return Err(status.into()),
        },
        None => None,
    };
    let kept = filters(fields).with("page", fields.get("page"));
    let open = wanted.unwrap_or_default();
    // Shown anew, the page has the same item: not whichever is first then.
    page.here = format!("{address}{}", kept.with("item", &open).query());
    let link = |candidate: &Candidate| {
        let fields = kept.with("item", &candidate.candidate_id).with("left", &open);
        format!("{address}{}", fields.query())
    };
    let position = candidates
        .iter()
        .position(|candidate| candidate.candidate_id == open);
    let after = position.map_or(0, |at| at + 1);
    let is_free = |candidate: &&Candidate| holder(visitor, candidate.lease.as_ref()).is_none();
    let next = candidates.iter().skip(after).find(is_free);
    let previous = candidates.iter().take(position.unwrap_or(0)).rev().find(is_free);
    let chosen = kind_numbers(fields);
    let statuses = [
        ("awaiting_review", CandidateStatus::AwaitingReview),
        ("pending", CandidateStatus::Pending),
        ("applied", CandidateStatus::Applied),
        ("rejected", CandidateStatus::Rejected),
        ("superseded", CandidateStatus::Superseded),
        ("withdrawn", CandidateStatus::Withdrawn),
    ];
    let statuses = statuses
        .into_iter()
        .map(|(value, status)| {
            choice(
                value,
                visitor.language.status(status as i32),
                fields.get("status"),
            )
        })
        .chain([choice(
            "any",
            visitor.t("any status", "すべて"),
            fields.get("status"),
        )])
        .collect();
    let orders = [
        ("newest", visitor.t("newest first", "新しい順")),
        ("oldest", visitor.t("oldest first", "古い順")),
        ("votes", visitor.t("most votes", "票の多い順")),
        (
            "controversy",
            visitor.t("most controversial", "意見の割れている順"),
        ),
    ];
    let orders = orders
        .into_iter()
        .map(|(value, label)| choice(value, label, fields.get("order")))
        .collect();
    let (first, next_page) = links(&address, &kept, &next_token);
    let status = failure.as_ref().map_or(StatusCode::OK, |failure| failure.status);
    let next_id = next.map(|next| next.candidate_id.clone()).unwrap_or_default();
    let next = next.map(link);
    let review = Review {
        kinds: kinds(&page, &chosen),
        statuses,
        orders,
        text: fields.get("text").to_owned(),
        may_decide: visitor.may("learning.v1.CandidateService/ApproveCandidate"),
        first,
        next_page,
        filters: kept.query(),
        previous: previous.map(link),
        next,
        next_id,
        is_filtered: !kept.without(&["back"]).pairs().is_empty(),
        back: visitor.back(fields),
        unsearched: (searched_count > 0 && !next_token.is_empty()).then(|| match visitor.language {
            Language::English => {
                format!("{searched_count} items were searched for this page: the next one searches on.")
            }
            Language::Japanese => {
                format!("このページでは {searched_count} 件を検索しました。「次へ」で続きを検索します。")
            }
        }),
        shows_status: fields.get("status") == "any",
        attempt: format!(
            "{address}{}#preview",
            kept.with("item", &open).with("preview", "1").query()
        ),
        entries: candidates
            .iter()
            .map(|candidate| entry(visitor, candidate, link(candidate), &open))
            .collect(),
        detail,
        failure,
        page,
    };
    Ok(html(status, &review))
}

fn choice(value: &str, label: &str, chosen: &str) -> Choice {
    Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen: value == chosen,
    }
}

fn entry(visitor: &Visitor, candidate: &Candidate, href: String, open: &str) -> Entry {
    let value = candidate.value.as_ref();
    Entry {
        id: candidate.candidate_id.clone(),
        href,
        kind: visitor
            .language
            .kind(candidate.key.as_ref().map_or(0, |key| key.kind)),
        input: text::shortened(&text::display(candidate.key.as_ref(), value), 120),
        arrow: text::arrow(value),
        value: text::shortened(&text::value_line(visitor.language, value), 120),
        votes: candidate.reporter_count,
        needed: candidate.confirmations_needed,
        risk: visitor.language.risk(candidate.risk_level),
        status: visitor.language.status(candidate.status),
        at: moment(candidate.created_at.as_ref()),
        holder: holder(visitor, candidate.lease.as_ref()),
        is_asked: candidate.second_opinion.is_some(),
        is_approved_once: is_approved_once(candidate),
        is_open: candidate.candidate_id == open,
    }
}

/// Gives up an item that was left.
async fn release(visitor: &Visitor, candidate_id: &str) {
    if candidate_id.is_empty() || !visitor.may("learning.v1.CandidateService/ReleaseReviewLease") {
        return;
    }
    let request = ReleaseReviewLeaseRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: candidate_id.to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut candidates = visitor.services.candidates();
    if let Err(status) = candidates
        .release_review_lease(visitor.services.call(request))
        .await
    {
        // It ends by itself within a minute.
        tracing::debug!(%status, "a review lease was not given up");
    }
}

/// Shows others that the one who looks has an item open.
async fn acquire(visitor: &Visitor, candidate_id: &str) -> Result<(), Status> {
    let request = AcquireReviewLeaseRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: candidate_id.to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut candidates = visitor.services.candidates();
    candidates
        .acquire_review_lease(visitor.services.call(request))
        .await
        .map(drop)
}

/// Renews it, for a page that is still open.
pub(crate) async fn lease(visitor: &Visitor, _: &Fields) -> Answer {
    acquire(visitor, &visitor.item).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Where a decision leads: to the next item, with the same filters; after the last one, or the only one, back to the page from
/// which it was opened.
fn after(visitor: &Visitor, fields: &Fields, told: Told) -> Answer {
    let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
    let is_last = kept.get("status") == "any" || fields.get("next").is_empty();
    let is_decided = told.done() != "commented";
    let told = visitor.telling(told);
    if let Some((back, _)) = visitor.back(&kept).filter(|_| is_last && is_decided) {
        return visitor.go_back(&Fields::default().with("return", &back), &back, &told);
    }
    let kept = filters(&kept)
        .with("page", kept.get("page"))
        .with("item", fields.get("next"))
        .with(told::FIELD, told.get(told::FIELD));
    visitor.go(&visitor.to(Part::Review, &kept))
}

/// Shows the item again with what was typed, and says why nothing was done.
async fn again(visitor: &Visitor, fields: &Fields, status: Status) -> Answer {
    if status.code() == Code::Unauthenticated {
        return Err(status.into());
    }
    let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
    let kept = kept.with("item", &visitor.item);
    let typed = Typed {
        value: fields.text("value").to_owned(),
        reason: fields.text("reason").to_owned(),
        comment: fields.text("comment").to_owned(),
        asked: fields.text("asked").to_owned(),
        judged: fields.text("judged").to_owned(),
    };
    let failure = visitor.failure(&status);
    render(visitor, &kept, Some(failure), &typed, None).await
}

/// Approves the item, as proposed or as edited.
pub(crate) async fn approve(visitor: &Visitor, fields: &Fields) -> Answer {
    let edited_value = if fields.has("value") {
        match detail::edited(visitor, fields.text("value")).await {
            Ok(value) => value,
            Err(status) => return again(visitor, fields, status).await,
        }
    } else {
        None
    };
    let is_edited = edited_value.is_some();
    let request = ApproveCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        etag: fields.get("etag").to_owned(),
        reason: fields.get("reason").to_owned(),
        edited_value,
        on_behalf_of: visitor.on_behalf_of(),
        accept_redacted: fields.has("accept_redacted"),
    };
    let mut candidates = visitor.services.candidates();
    match candidates.approve_candidate(visitor.services.call(request)).await {
        Ok(answer) => {
            let told = approved(visitor, answer.into_inner(), is_edited).await?;
            after(visitor, fields, told)
        }
        Err(status) => again(visitor, fields, status).await,
    }
}

/// What an approval came to. Where it takes two reviewers, and this was the first, it says who said what so far.
pub(crate) async fn approved(
    visitor: &Visitor,
    answer: ApproveCandidateResponse,
    is_edited: bool,
) -> Result<Told, Status> {
    let candidate = answer.candidate.unwrap_or_default();
    let done = match (is_approved_once(&candidate), is_edited) {
        (true, _) => "approved-once",
        (false, true) => "edited",
        (false, false) => "approved",
    };
    let told = Told::decided(visitor, done, &candidate, answer.revision);
    if done != "approved-once" {
        return Ok(told);
    }
    let details = detail::get(visitor, &candidate.candidate_id).await?;
    Ok(told.saying(talk::so_far(visitor.language, &details)))
}

/// Whether it waits for the second of two reviewers.
fn is_approved_once(candidate: &Candidate) -> bool {
    candidate.status_reason == SECOND_REVIEWER
}

/// Rejects the item.
pub(crate) async fn reject(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = RejectCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        etag: fields.get("etag").to_owned(),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut candidates = visitor.services.candidates();
    match candidates.reject_candidate(visitor.services.call(request)).await {
        Ok(answer) => {
            let answer = answer.into_inner();
            let candidate = answer.candidate.unwrap_or_default();
            let told = Told::decided(visitor, "rejected", &candidate, answer.revision);
            after(visitor, fields, told)
        }
        Err(status) => again(visitor, fields, status).await,
    }
}

/// What deciding several came to: how many, and how many of them wait for another reviewer.
fn several(language: Language, done: &str, results: &[ReviewResult]) -> Told {
    let candidates = results.iter().filter_map(|result| result.candidate.as_ref());
    let waiting = candidates.filter(|candidate| is_approved_once(candidate)).count();
    let count = |count: usize| match language {
        Language::English => format!("{count} {}", if count == 1 { "item" } else { "items" }),
        Language::Japanese => format!("{count} 件"),
    };
    if waiting == results.len() && waiting > 0 {
        return Told::new("approved-once").of(&count(waiting));
    }
    let told = Told::new(done).of(&count(results.len() - waiting));
    if waiting == 0 {
        return told;
    }
    told.saying([match language {
        Language::English => format!(
            "{waiting} more {} approved, and {} for 1 more reviewer",
            if waiting == 1 { "is" } else { "are" },
            if waiting == 1 { "waits" } else { "wait" },
        ),
        Language::Japanese => format!("ほかに {} は承認済みで、あと1人の承認が必要です", count(waiting)),
    }])
}

/// Approves or rejects those that are ticked, each by itself.
pub(crate) async fn decide_several(visitor: &Visitor, fields: &Fields) -> Answer {
    let ids = fields.filled("candidate");
    if ids.is_empty() {
        return Err(Refused::Failed(Failure::new(
            StatusCode::BAD_REQUEST,
            visitor.t("Nothing is ticked.", "項目が選択されていません。"),
        )));
    }
    let namespace = || visitor.namespace.clone();
    let mut candidates = visitor.services.candidates();
    let (done, results) = if fields.get("decision") == "reject" {
        let requests = ids
            .into_iter()
            .map(|candidate_id| RejectCandidateRequest {
                namespace: namespace(),
                candidate_id,
                reason: fields.get("reason").to_owned(),
                on_behalf_of: visitor.on_behalf_of(),
                ..RejectCandidateRequest::default()
            })
            .collect();
        let batch = visitor.services.call(BatchRejectCandidatesRequest { requests });
        (
            "rejected",
            candidates
                .batch_reject_candidates(batch)
                .await?
                .into_inner()
                .results,
        )
    } else {
        let requests = ids
            .into_iter()
            .map(|candidate_id| ApproveCandidateRequest {
                namespace: namespace(),
                candidate_id,
                reason: fields.get("reason").to_owned(),
                on_behalf_of: visitor.on_behalf_of(),
                ..ApproveCandidateRequest::default()
            })
            .collect();
        let batch = visitor.services.call(BatchApproveCandidatesRequest { requests });
        (
            "approved",
            candidates
                .batch_approve_candidates(batch)
                .await?
                .into_inner()
                .results,
        )
    };
    let refused: Vec<_> = results
        .iter()
        .filter_map(|result| result.status.as_ref())
        .filter(|status| status.code != 0)
        .map(|status| status.message.clone())
        .collect();
    if refused.is_empty() {
        return after(visitor, fields, several(visitor.language, done, &results));
    }
    let count = results.len();
    let mut failure = Failure::new(
        StatusCode::CONFLICT,
        match visitor.language {
            Language::English => format!("{} of {count} were not decided.", refused.len()),
            Language::Japanese => format!("{count} 件中 {} 件は処理できませんでした。", refused.len()),
        },
    );
    failure.details = refused;
    failure.details.truncate(10);
    let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
    render(visitor, &kept, Some(failure), &Typed::default(), None).await
}
