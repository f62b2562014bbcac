//! What the tools answer, as flat objects with names in snake case: here to what was said.

mod candidates;
mod lookups;

use emend_core::Kind;
use emend_proto::{
    common::v1::{Outcome, RiskLevel},
    feedback::v1::Feedback,
};
use serde_json::{Value, json};

pub(super) use self::{
    candidates::{decided, listed, page},
    lookups::{Explained, changed, explained, resolved},
};
use super::arguments::FeedbackType;
use crate::words;

/// The reason of an outcome that is not known yet.
const NOT_EVALUATED: &str = "NOT_EVALUATED";
/// The reason of an outcome whose claim or edge is not known.
const TARGET_NOT_FOUND: &str = "TARGET_NOT_FOUND";

/// As whom a correction votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Voter {
    /// As whom the call or the command line names, otherwise as the session.
    Named,
    /// As the caller of this name, whom the services do not let speak for others.
    Caller(String),
}

/// What a correction said, in its own words.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) input: String,
    pub(super) maps_to: String,
    pub(super) feedback_type: FeedbackType,
    /// Whether the call names a reporter.
    pub(super) names_reporter: bool,
    /// Whether it is learned for its reporter alone.
    pub(super) is_users_own: bool,
}

/// A correction that was just recorded.
pub(super) fn recorded(feedback: &Feedback, voter: &Voter, said: &Said) -> Value {
    let mut object = result_of(feedback);
    let outcome = feedback.outcome.clone().unwrap_or_default();
    let (threshold_applied, auto_applied) = applied_by(&outcome);
    object["recorded"] = true.into();
    object["was_new"] = outcome.was_new.into();
    object["occurrence_count"] = outcome.occurrence_count.into();
    object["learning_type"] = Kind::from(said.feedback_type).name().into();
    object["risk_level"] = words::risk_name(outcome.risk_level).into();
    object["threshold_applied"] = threshold_applied.into();
    object["auto_applied"] = auto_applied.into();
    object["request_id"] = feedback.request_id.clone().into();
    object["what_was_learned"] = json!({
        "input": said.input,
        "maps_to": said.maps_to,
        "type": said.feedback_type,
    });
    let mut message = object["message"].as_str().unwrap_or_default().to_owned();
    if said.is_users_own {
        message += " It is for its reporter alone: nobody else is answered so.";
    }
    if let Voter::Caller(caller) = voter
        && said.names_reporter
    {
        message = format!(
            "{message} It counts as the vote of {caller}: its grants lack act_for_users, so the reporter named does not vote."
        );
    }
    object["message"] = message.into();
    object
}

/// A decision about evidence that was just recorded, and its effect.
pub(super) fn decision_recorded(feedback: &Feedback, target: Option<&str>) -> Value {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    let known = outcome.reason != TARGET_NOT_FOUND;
    let unknown = match target {
        Some(target) if !known => format!("The {target} is not known: check its id. "),
        _ => String::new(),
    };
    json!({
        "recorded": true,
        "evaluated": is_evaluated(&outcome),
        "known": known,
        "was_new": outcome.was_new,
        "state": words::outcome_name(outcome.state),
        "reason": outcome.reason,
        "revision": outcome.revision,
        "message": unknown + message(&outcome),
        "decision_reason": outcome.decision_reason,
        "event_id": feedback.feedback_id,
        "request_id": feedback.request_id,
    })
}

/// A rating that was just recorded.
pub(super) fn rated(feedback: &Feedback) -> Value {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    json!({
        "recorded": true,
        "evaluated": is_evaluated(&outcome),
        "state": words::outcome_name(outcome.state),
        "reason": outcome.reason,
        "message": message(&outcome),
        "feedback_id": feedback.feedback_id,
        "request_id": feedback.request_id,
        "revision": outcome.revision,
    })
}

/// A correction that was just taken back: whether its value still applies (`None`: nobody may say), and why.
pub(super) fn retracted(feedback: &Feedback, still_applies: Option<bool>, why: &str) -> Value {
    let mut object = result_of(feedback);
    let applies = match still_applies {
        Some(true) => "The value still applies",
        Some(false) => "The value does not apply",
        None => "Whether the value still applies is not known",
    };
    object["message"] = format!("Taken back. {applies}: {why}.").into();
    object["retracted"] = true.into();
    object["still_applies"] = still_applies.into();
    object["why"] = why.into();
    object
}

/// What a stored correction came to.
fn result_of(feedback: &Feedback) -> Value {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    json!({
        "evaluated": is_evaluated(&outcome),
        "state": words::outcome_name(outcome.state),
        "reason": outcome.reason,
        "reporter_count": outcome.reporter_count,
        "confirmations_needed": outcome.confirmations_needed,
        "message": message(&outcome),
        "decision_reason": outcome.decision_reason,
        "feedback_id": feedback.feedback_id,
        "candidate_id": outcome.candidate_id,
        "revision": outcome.revision,
    })
}

fn is_evaluated(outcome: &Outcome) -> bool {
    outcome.evaluated_at.is_some() && outcome.reason != NOT_EVALUATED
}

fn message(outcome: &Outcome) -> &str {
    match outcome.message.as_str() {
        _ if !is_evaluated(outcome) => {
            "Stored by feedback-svc, and not evaluated by learning-svc yet: it will be, so do not repeat the call."
        }
        message => message,
    }
}

/// Whether this correction applied the value by reaching the threshold, and whether it applied it at once.
fn applied_by(outcome: &Outcome) -> (bool, bool) {
    let low = outcome.risk_level == RiskLevel::Low as i32;
    (outcome.auto_applied && !low, outcome.auto_applied && low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> Said {
        Said {
            input: "set up a CSA".to_owned(),
            maps_to: "create_isda".to_owned(),
            feedback_type: FeedbackType::VerbCorrection,
            names_reporter: true,
            is_users_own: false,
        }
    }

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
        let result = recorded(&feedback, &Voter::Named, &said());
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
    fn who_may_not_speak_for_others_is_told_whose_vote_it_is() {
        let message = |voter| recorded(&Feedback::default(), &voter, &said())["message"].to_string();
        assert!(message(Voter::Caller("bot".to_owned())).contains("the vote of bot"));
        assert!(!message(Voter::Named).contains("vote of"));
    }

    #[test]
    fn what_is_learned_for_one_is_not_told_like_a_lesson_for_all() {
        let told = |is_users_own| {
            let said = Said {
                is_users_own,
                ..said()
            };
            recorded(&Feedback::default(), &Voter::Named, &said)["message"].to_string()
        };
        assert!(told(true).contains("for its reporter alone"));
        assert!(!told(false).contains("alone"));
    }

    #[test]
    fn feedback_not_yet_evaluated_is_reported_as_recorded() {
        let result = recorded(&Feedback::default(), &Voter::Named, &said());
        assert_eq!(result["recorded"], true);
        assert_eq!(result["evaluated"], false);
        let message = result["message"].to_string();
        assert!(message.contains("not evaluated by learning-svc yet"), "{message}");
    }
}
