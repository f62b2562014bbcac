//! Candidates, as the tools answer with them.

use emend_proto::{
    common::v1::Actor,
    learning::v1::{Candidate, CandidateStatus, GetCandidateResponse},
};
use serde_json::{Value, json};

use crate::{view, words};

/// Candidates, each with what is known of it.
pub(in super::super) fn page(page: &[GetCandidateResponse]) -> Value {
    let candidates: Vec<Value> = page.iter().map(reviewed).collect();
    let message = match &candidates[..] {
        [] => "Nothing was found.".to_owned(),
        [_] => "1 candidate.".to_owned(),
        several => format!("{} candidates.", several.len()),
    };
    json!({"message": message, "candidates": candidates})
}

/// The same as the answer of a tool, which names the next page.
pub(in super::super) fn listed(page: &[GetCandidateResponse], next_page_token: &str) -> Value {
    let mut object = self::page(page);
    if !next_page_token.is_empty() {
        let message = object["message"].as_str().unwrap_or_default();
        let more = format!("{message} There are more: call again with `next_page_token` as `page_token`.");
        object["message"] = more.into();
    }
    object["next_page_token"] = next_page_token.into();
    object
}

/// How many votes of a candidate are told.
const VOTES: usize = 20;

/// A candidate with its newest votes, and what became of it.
pub(super) fn reviewed(answer: &GetCandidateResponse) -> Value {
    let mut object = candidate(&answer.candidate.clone().unwrap_or_default());
    let votes = answer.votes.iter().take(VOTES).map(|vote| {
        let said = answer
            .feedback
            .iter()
            .find(|feedback| feedback.feedback_id == vote.feedback_id);
        json!({
            "reporter": vote.reporter_id,
            "caller": vote.caller,
            "at": view::time(vote.received_at.as_ref()),
            "system_choice": said.map(|said| said.system_choice.as_str()),
            "explanation": said.map(|said| said.reason.as_str()),
            "context": said.map(|said| &said.context),
        })
    });
    object["votes"] = votes.collect();
    object["votes_not_shown"] = answer.votes.len().saturating_sub(VOTES).into();
    let history = answer.history.iter().map(|transition| {
        let actor = transition.actor.clone().unwrap_or_default();
        json!({
            "from": words::status_name(transition.from),
            "to": words::status_name(transition.to),
            "cause": words::cause_name(transition.cause),
            "by": who(&actor),
            "reason": transition.reason,
            "at": view::time(transition.at.as_ref()),
            "revision": transition.revision,
        })
    });
    object["history"] = history.collect();
    let approval = answer
        .candidate
        .as_ref()
        .and_then(|candidate| candidate.first_approval.as_ref());
    object["first_approval"] = approval.map_or(Value::Null, |approval| {
        json!({
            "by": approval.actor.as_ref().map(view::actor),
            "reason": approval.reason,
            "at": view::time(approval.approved_at.as_ref()),
        })
    });
    let ruling = answer
        .candidate
        .as_ref()
        .and_then(|candidate| candidate.ruling.as_ref());
    object["ruling"] = ruling.map_or(Value::Null, |ruling| {
        json!({"effective": ruling.effective, "sender_roles": ruling.sender_roles, "order": ruling.accept_order})
    });
    object
}

/// A candidate after a person's decision.
pub(in super::super) fn decided(decided: Option<&Candidate>, revision: i64) -> Value {
    let decided = decided.cloned().unwrap_or_default();
    let mut object = candidate(&decided);
    object["message"] = format!(
        "The candidate is now {}{}.",
        words::status_name(decided.status).replace('_', " "),
        match revision {
            0 if decided.status_reason == "SECOND_REVIEWER" => {
                ": it was approved once, and another reviewer has to approve it, too".to_owned()
            }
            0 => "; nothing changed for search nodes".to_owned(),
            revision => format!(" as of revision {revision}"),
        }
    )
    .into();
    object["revision"] = revision.into();
    object
}

/// The person on whose behalf somebody acted, otherwise the caller itself.
fn who(actor: &Actor) -> &str {
    if actor.on_behalf_of.is_empty() {
        &actor.caller
    } else {
        &actor.on_behalf_of
    }
}

/// Who decided it; nobody where it still waits, whoever gave the vote that it waits with.
fn decider(candidate: &Candidate) -> &str {
    let is_open = matches!(
        CandidateStatus::try_from(candidate.status),
        Ok(CandidateStatus::Pending | CandidateStatus::AwaitingReview)
    );
    let decided_by = candidate.decided_by.as_ref().filter(|_| !is_open);
    decided_by.map_or("", who)
}

fn candidate(candidate: &Candidate) -> Value {
    let key = candidate.key.clone().unwrap_or_default();
    let redacted = candidate
        .proposal
        .as_ref()
        .map(|proposal| proposal.redacted_count);
    json!({
        "candidate_id": candidate.candidate_id,
        "type": words::kind_name(key.kind),
        "phrase": key.key,
        "written_as": candidate.value.as_ref().map_or("", |value| value.display.as_str()),
        "maps_to": view::maps_to(candidate.value.as_ref()),
        "scope": if key.user_id.is_empty() { "global" } else { "user" },
        "user_id": key.user_id,
        "status": words::status_name(candidate.status),
        "status_reason": candidate.status_reason,
        "risk_level": words::risk_name(candidate.risk_level),
        "occurrence_count": candidate.occurrence_count,
        "reporter_count": candidate.reporter_count,
        "net_confirmations": candidate.net_confirmations,
        "threshold": candidate.threshold,
        "confirmations_needed": candidate.confirmations_needed,
        "pinned": candidate.contest_pinned,
        "decided_by": decider(candidate),
        "decision_reason": candidate.decision_reason,
        "redacted_count": redacted,
        "etag": candidate.etag,
        "proposed_at": view::time(candidate.created_at.as_ref()),
    })
}
