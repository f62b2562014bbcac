//! What the tools answer: flat objects with names in snake case.

use std::fmt::Write as _;

use emend_core::Learned;
use emend_proto::{
    common::v1::{Outcome, RiskLevel},
    feedback::v1::Feedback,
    learning::v1::{Candidate, ListCandidatesResponse, MatchSource, ResolveResponse},
};
use serde_json::{Value, json};

use crate::{view, words};

/// What `intent_resolve` asks the assistant to show when it may be wrong.
const FEEDBACK_HINT: &str = "If this isn't what you meant, say so.";

/// The reason of an outcome that is not known yet.
const NOT_EVALUATED: &str = "NOT_EVALUATED";

/// Who the voter is, as far as the call and the command line say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voter {
    /// A reporter or a session.
    Named,
    /// Neither: all such votes of this caller count as one.
    Unnamed,
}

/// A correction that was just recorded.
pub(super) fn recorded(feedback: &Feedback, voter: Voter) -> Value {
    let mut object = result_of(feedback);
    object["recorded"] = true.into();
    if voter == Voter::Unnamed {
        let message = object["message"].as_str().unwrap_or_default();
        object["message"] = format!(
            "{message} Neither a reporter nor a session is named: all votes like this one count once, together."
        )
        .into();
    }
    object
}

/// A decision about evidence that was just recorded, and its effect.
pub(super) fn decision_recorded(feedback: &Feedback) -> Value {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    json!({
        "recorded": true,
        "was_new": outcome.was_new,
        "state": words::outcome_name(outcome.state),
        "reason": outcome.reason,
        "revision": outcome.revision,
        "message": message(&outcome),
        "decision_reason": outcome.decision_reason,
        "event_id": feedback.feedback_id,
    })
}

/// A correction that was just taken back.
pub(super) fn retracted(feedback: &Feedback) -> Value {
    let mut object = result_of(feedback);
    object["retracted"] = true.into();
    object
}

/// What a stored correction came to.
fn result_of(feedback: &Feedback) -> Value {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    let learned = outcome.what_was_learned.as_ref().map(|learned| {
        json!({
            "input": learned.input,
            "maps_to": learned.maps_to,
            "type": words::kind_name(learned.kind),
        })
    });
    let evaluated = outcome.evaluated_at.is_some() && outcome.reason != NOT_EVALUATED;
    let (threshold_applied, auto_applied) = applied_by(&outcome);
    json!({
        "evaluated": evaluated,
        "state": words::outcome_name(outcome.state),
        "reason": outcome.reason,
        "was_new": outcome.was_new,
        "occurrence_count": outcome.occurrence_count,
        "reporter_count": outcome.reporter_count,
        "confirmations_needed": outcome.confirmations_needed,
        "risk_level": words::risk_name(outcome.risk_level),
        "threshold_applied": threshold_applied,
        "auto_applied": auto_applied,
        "what_was_learned": learned,
        "message": message(&outcome),
        "decision_reason": outcome.decision_reason,
        "feedback_id": feedback.feedback_id,
        "request_id": feedback.request_id,
        "candidate_id": outcome.candidate_id,
        "revision": outcome.revision,
    })
}

fn message(outcome: &Outcome) -> &str {
    match outcome.message.as_str() {
        "" => "Stored; not evaluated yet.",
        message => message,
    }
}

/// Whether this correction applied the value by reaching the threshold, and whether it applied it at once.
fn applied_by(outcome: &Outcome) -> (bool, bool) {
    let low = outcome.risk_level == RiskLevel::Low as i32;
    (outcome.auto_applied && !low, outcome.auto_applied && low)
}

/// A page of candidates.
pub(super) fn page(page: &ListCandidatesResponse) -> Value {
    let candidates: Vec<Value> = page.candidates.iter().map(candidate).collect();
    let count = match &candidates[..] {
        [] => "Nothing was found".to_owned(),
        [_] => "1 candidate".to_owned(),
        several => format!("{} candidates", several.len()),
    };
    let more = match &*page.next_page_token {
        "" => ".",
        _ => "; there are more: call again with `next_page_token` as `page_token`.",
    };
    json!({
        "message": count + more,
        "candidates": candidates,
        "next_page_token": page.next_page_token,
    })
}

/// A candidate after a person's decision.
pub(super) fn decided(decided: Option<&Candidate>, revision: i64) -> Value {
    let decided = decided.cloned().unwrap_or_default();
    let mut object = candidate(&decided);
    object["message"] = format!(
        "{} is now {}{}.",
        in_normal_form(&decided),
        words::status_name(decided.status).replace('_', " "),
        match revision {
            0 => "; nothing changed for search nodes".to_owned(),
            revision => format!(" as of revision {revision}"),
        }
    )
    .into();
    object["revision"] = revision.into();
    object
}

/// What a candidate says, in words that are nobody's own.
fn in_normal_form(candidate: &Candidate) -> String {
    let key = candidate.key.clone().unwrap_or_default();
    let parsed = emend_wire::parse::resource_key(candidate.key.as_ref()).ok();
    match (view::learned(candidate.value.as_ref()), parsed) {
        (Some(Learned::Prompt(prompt)), _) => format!("Version {} of {}", prompt.version, key.key),
        (Some(Learned::ProfileEntry(_)), _) => format!("An entry of {}", key.key),
        (Some(learned), Some(parsed)) => view::pair(&key.key, &learned.in_normal_form(&parsed.qualifier)),
        _ => key.key,
    }
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
        "decided_by": candidate.decided_by.as_ref().map_or("", |actor| actor.on_behalf_of.as_str()),
        "decision_reason": candidate.decision_reason,
        "redacted_count": redacted,
        "etag": candidate.etag,
        "proposed_at": view::time(candidate.created_at.as_ref()),
    })
}

/// What was learned for a phrase.
pub(super) fn resolved(resolved: &ResolveResponse) -> Value {
    let found = resolved.r#match.as_ref();
    let source = found.map(|found| {
        let source = MatchSource::try_from(found.source).ok();
        words::short(
            source.map(|source| source.as_str_name()),
            "MATCH_SOURCE_",
            found.source,
        )
    });
    let phrase = &resolved.normalized_phrase;
    let mut message = match found {
        Some(found) => format!("“{phrase}” means “{}”.", found.value),
        None if resolved.match_prohibited => format!("What was learned for “{phrase}” is prohibited."),
        None => format!("Nothing was learned for “{phrase}”."),
    };
    if !resolved.prohibited.is_empty() {
        let _ = write!(message, " Never offer {}.", resolved.prohibited.join(", "));
    }
    json!({
        "message": message,
        "found": found.is_some(),
        "value": found.map(|found| found.value.as_str()),
        "score": found.map(|found| found.score),
        "source": source,
        "scope": found.map(|found| words::scope_name(found.scope)),
        "prohibited": resolved.prohibited,
        "match_prohibited": resolved.match_prohibited,
        "feedback_hint": resolved.feedback_hint.then_some(FEEDBACK_HINT),
        "normalized_phrase": resolved.normalized_phrase,
        "revision": resolved.revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(risk: RiskLevel, by_this_one: bool) -> (Value, Value) {
        let outcome = Outcome {
            risk_level: risk as i32,
            auto_applied: by_this_one,
            threshold_applied: 3,
            ..Outcome::default()
        };
        let feedback = Feedback {
            outcome: Some(outcome),
            ..Feedback::default()
        };
        let result = recorded(&feedback, Voter::Named);
        (
            result["threshold_applied"].clone(),
            result["auto_applied"].clone(),
        )
    }

    #[test]
    fn a_value_is_applied_at_once_or_by_the_threshold_and_only_by_one_correction() {
        let (yes, no) = (Value::from(true), Value::from(false));
        assert_eq!(applied(RiskLevel::Low, true), (no.clone(), yes.clone()));
        assert_eq!(applied(RiskLevel::Medium, true), (yes, no.clone()));
        assert_eq!(applied(RiskLevel::Medium, false), (no.clone(), no));
    }

    #[test]
    fn an_unnamed_voter_is_told_that_its_votes_count_once() {
        let message = |voter| recorded(&Feedback::default(), voter)["message"].to_string();
        assert!(message(Voter::Unnamed).contains("count once"));
        assert!(!message(Voter::Named).contains("count once"));
    }

    #[test]
    fn feedback_not_yet_evaluated_is_reported_as_recorded() {
        let result = recorded(&Feedback::default(), Voter::Named);
        assert_eq!(result["recorded"], true);
        assert_eq!(result["evaluated"], false);
        assert_eq!(result["message"], "Stored; not evaluated yet.");
    }
}
