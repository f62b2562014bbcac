//! What reviewers ask and tell each other about an item.

use emend_proto::learning::v1::{
    AskSecondOpinionRequest, Candidate, CandidateStatus, CommentOnCandidateRequest, GetCandidateResponse,
    ReviewComment,
};

use super::{Typed, after, again};
use crate::{
    form::Fields,
    page::{Answer, Visitor},
    text::{Language, Moment, moment},
    told::Told,
};

/// What reviewers said, and what the reader may say.
#[derive(Debug)]
pub(super) struct Talk {
    /// Who approved it as the first of two, and why.
    pub first_approval: Option<(String, String)>,
    pub comments: Vec<Comment>,
    pub may_ask: bool,
    pub may_comment: bool,
    pub typed_comment: String,
    pub typed_asked: String,
}

/// What a reviewer wrote for others.
#[derive(Debug)]
pub(super) struct Comment {
    pub who: String,
    pub text: String,
    pub asks: bool,
    pub asked: String,
    pub is_open: bool,
    pub at: Moment,
}

pub(super) fn talk(
    visitor: &Visitor,
    status: CandidateStatus,
    candidate: &Candidate,
    comments: Vec<ReviewComment>,
    typed: &Typed,
) -> Talk {
    let waits = status == CandidateStatus::AwaitingReview;
    let comments = comments.into_iter().map(|comment| Comment {
        who: visitor.language.actor(comment.actor.as_ref()),
        text: comment.comment,
        asks: comment.asks,
        asked: comment.asked,
        is_open: comment.open && waits,
        at: moment(comment.written_at.as_ref()),
    });
    Talk {
        first_approval: candidate
            .first_approval
            .as_ref()
            .map(|first| (visitor.language.actor(first.actor.as_ref()), first.reason.clone())),
        comments: comments.collect(),
        may_ask: waits && visitor.may("learning.v1.CandidateService/AskSecondOpinion"),
        may_comment: visitor.may("learning.v1.CandidateService/CommentOnCandidate"),
        typed_comment: typed.comment.clone(),
        typed_asked: typed.asked.clone(),
    }
}

/// The comments that are told, at most.
const NEWEST: usize = 4;

/// Who approved an item and what reviewers said of it last, a line for each.
pub(super) fn so_far(language: Language, details: &GetCandidateResponse) -> Vec<String> {
    let candidate = details.candidate.as_ref();
    let first = candidate.and_then(|candidate| candidate.first_approval.as_ref());
    let first = first.map(|first| {
        let who = language.actor(first.actor.as_ref());
        let approved = match language {
            Language::English => format!("{who} approved it"),
            Language::Japanese => format!("{who} が承認"),
        };
        match &*first.reason {
            "" => approved,
            reason => format!("{approved}: {reason}"),
        }
    });
    let before = details.comments.len().saturating_sub(NEWEST);
    let earlier = (before > 0).then(|| match language {
        Language::English if before == 1 => "1 comment before these".to_owned(),
        Language::English => format!("{before} comments before these"),
        Language::Japanese => format!("これより前のコメント {before} 件"),
    });
    let comments = details.comments[before..].iter().map(|comment| {
        let who = language.actor(comment.actor.as_ref());
        format!("{who}: {}", comment.comment)
    });
    first.into_iter().chain(earlier).chain(comments).collect()
}

/// Asks another reviewer about the item, and goes on to the next.
pub(crate) async fn ask(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = AskSecondOpinionRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        comment: fields.text("comment").to_owned(),
        asked: fields.get("asked").trim().to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut candidates = visitor.services.candidates();
    match candidates
        .ask_second_opinion(visitor.services.call(request))
        .await
    {
        Ok(_) => after(visitor, fields, Told::new("asked")),
        Err(status) => again(visitor, fields, status).await,
    }
}

/// Comments on the item, and shows it again.
pub(crate) async fn comment(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = CommentOnCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        comment: fields.text("comment").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut candidates = visitor.services.candidates();
    match candidates
        .comment_on_candidate(visitor.services.call(request))
        .await
    {
        Ok(_) => after(
            visitor,
            &fields.with("next", &visitor.item),
            Told::new("commented"),
        ),
        Err(status) => again(visitor, fields, status).await,
    }
}
