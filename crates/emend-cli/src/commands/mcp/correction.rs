//! What a call of `intent_feedback` says: the correction, and who votes for it.

use emend_core::FieldViolation;
use emend_proto::common::v1::{
    Correction, EntityCorrection, PhraseMapping, Prohibition, VerbCorrection,
    correction::Correction as Variant,
};
use tonic::Status;

use super::arguments::{FeedbackArguments, FeedbackType};
use crate::failure::Result;

/// What the call names, otherwise what the command line does; may be empty.
pub(super) fn named(by_call: Option<String>, by_command_line: &str) -> String {
    by_call
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| by_command_line.to_owned())
}

/// The id to vote under: the reporter's, otherwise one made of the session, so that each session of an assistant is a
/// voter of its own. Sent as a session only, all sessions of one caller would count once. A session has no preferences
/// of its own, so nothing is learned for it alone.
pub(super) fn voter_id(reporter: String, session_id: &str, user_scoped: bool) -> String {
    if reporter.is_empty() && !session_id.is_empty() && !user_scoped {
        format!("session:{session_id}")
    } else {
        reporter
    }
}

/// The correction that the arguments describe. A prohibition names its choice as what the system chose.
pub(super) fn correction(arguments: &FeedbackArguments) -> Result<Correction> {
    let original_input = arguments.original_input.clone();
    let system_choice = arguments.system_choice.clone().unwrap_or_default();
    let correct_choice = arguments.correct_choice.clone().unwrap_or_default();
    let variant = match arguments.feedback_type {
        FeedbackType::VerbCorrection => Variant::Verb(VerbCorrection {
            original_input,
            system_choice,
            correct_choice,
        }),
        FeedbackType::EntityCorrection => Variant::Entity(EntityCorrection {
            original_input,
            system_choice,
            correct_choice,
        }),
        FeedbackType::PhraseMapping => Variant::PhraseMapping(PhraseMapping {
            phrase: original_input,
            verb: correct_choice,
        }),
        FeedbackType::Prohibition => {
            let mut violations = Vec::new();
            let mut violation = |field: &str, description: &str| {
                violations.push(FieldViolation {
                    field: field.into(),
                    description: description.into(),
                });
            };
            if system_choice.trim().is_empty() {
                violation(
                    "system_choice",
                    "is required for a prohibition: the choice never to offer",
                );
            }
            if !correct_choice.trim().is_empty() {
                violation(
                    "correct_choice",
                    "a prohibition has none: record what is right in a call of its own, as a verb_correction or an \
                     entity_correction",
                );
            }
            if !violations.is_empty() {
                return Err(Status::from(emend_base::Error::InvalidArgument(violations)).into());
            }
            Variant::Prohibition(Prohibition {
                phrase: original_input,
                forbidden_choice: system_choice,
            })
        }
    };
    Ok(Correction {
        correction: Some(variant),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> FeedbackArguments {
        serde_json::from_str(text).expect("arguments")
    }

    #[test]
    fn a_call_names_the_reporter_before_the_command_line_does() {
        assert_eq!(named(Some("mia".into()), "ana"), "mia");
        assert_eq!(named(Some(" ".into()), "ana"), "ana");
        assert_eq!(named(None, "ana"), "ana");
        assert_eq!(named(None, ""), "");
    }

    #[test]
    fn the_voter_is_the_reporter_or_else_the_session() {
        assert_eq!(voter_id("ana".into(), "chat-1", false), "ana");
        assert_eq!(voter_id(String::new(), "chat-1", false), "session:chat-1");
        assert_eq!(voter_id(String::new(), "", false), "");
        assert_eq!(
            voter_id(String::new(), "chat-1", true),
            "",
            "nothing is learned for a session alone"
        );
    }

    #[test]
    fn a_prohibition_names_the_choice_that_the_system_made_and_no_other() {
        let prohibition = |choices: &str| {
            correction(&arguments(&format!(
                r#"{{"feedback_type": "prohibition", "original_input": "wind down"{choices}}}"#
            )))
        };
        let made = prohibition(r#", "system_choice": "delete_fund""#).unwrap();
        assert!(
            matches!(made.correction, Some(Variant::Prohibition(Prohibition { forbidden_choice, .. })) if forbidden_choice == "delete_fund")
        );
        let refused = prohibition(r#", "correct_choice": "liquidate_fund""#)
            .unwrap_err()
            .to_json();
        let fields: Vec<_> = refused["error"]["fieldViolations"]
            .as_array()
            .expect("violations")
            .iter()
            .map(|violation| violation["field"].clone())
            .collect();
        assert_eq!(fields, ["system_choice", "correct_choice"]);
    }

    #[test]
    fn an_argument_that_no_tool_knows_is_refused() {
        let unknown = r#"{"feedback_type": "prohibition", "original_input": "a", "reporter": "ana"}"#;
        let refused = serde_json::from_str::<FeedbackArguments>(unknown).unwrap_err();
        assert!(refused.to_string().contains("`reporter`"), "{refused}");
    }
}
