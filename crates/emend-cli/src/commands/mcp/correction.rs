//! What a call of `intent_feedback` says: the correction, and who votes for it.

use emend_core::{FieldViolation, Violations, violation::bounded_prose};
use emend_proto::common::v1::{
    Correction, EntityCorrection, PhraseMapping, Prohibition, VerbCorrection,
    correction::Correction as Variant,
};
use emend_wire::{
    kinds::form_of,
    parse::{self, MAX_REASON_CHARS},
};

use super::{
    arguments::{FeedbackArguments, FeedbackType},
    parameters,
};

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

/// A correction as it would be stored with this reason, or everything that is wrong with it by the names of its arguments: what is
/// `wrong` already, and what the service would find.
pub(super) fn checked(
    form: Variant,
    reason: Option<&str>,
    named: fn(&str) -> String,
    mut wrong: Vec<FieldViolation>,
) -> Result<Correction, Vec<FieldViolation>> {
    let least = usize::from(form_of(&form).needs_reason());
    let correction = Correction {
        correction: Some(form),
    };
    let mut as_stored = Violations::new();
    if let Err(refused) = parse::new_correction(Some(&correction), &[]) {
        as_stored.nest("correction", refused.violations);
    }
    let reason = reason.unwrap_or_default();
    as_stored.check("reason", bounded_prose(reason, least, MAX_REASON_CHARS));
    for found in as_stored.into_vec() {
        let field = named(&found.field);
        if wrong.iter().all(|known| known.field != field) {
            wrong.push(FieldViolation { field, ..found });
        }
    }
    if wrong.is_empty() {
        Ok(correction)
    } else {
        Err(wrong)
    }
}

/// The correction that the arguments describe, or everything that is wrong with them. A prohibition names its choice as what the
/// system chose.
pub(super) fn correction(arguments: &FeedbackArguments) -> Result<Correction, Vec<FieldViolation>> {
    let mut wrong = Vec::new();
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
            let mut violation = |field: &str, description: &str| {
                wrong.push(FieldViolation {
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
            Variant::Prohibition(Prohibition {
                phrase: original_input,
                forbidden_choice: system_choice,
            })
        }
    };
    let explanation = arguments.user_explanation.as_deref();
    checked(variant, explanation, parameters::feedback, wrong)
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
        let refused = prohibition(r#", "correct_choice": "liquidate_fund""#).unwrap_err();
        assert_eq!(fields(&refused), ["system_choice", "correct_choice"]);
    }

    fn fields(refused: &[FieldViolation]) -> Vec<&str> {
        refused.iter().map(|violation| violation.field.as_str()).collect()
    }

    #[test]
    fn everything_that_could_not_be_stored_is_named_at_once() {
        let said = format!(
            r#"{{"feedback_type": "verb_correction", "original_input": " ", "user_explanation": "{}"}}"#,
            "x".repeat(MAX_REASON_CHARS + 1)
        );
        let refused = correction(&arguments(&said)).unwrap_err();
        assert_eq!(
            fields(&refused),
            ["original_input", "correct_choice", "user_explanation"]
        );
    }

    #[test]
    fn an_argument_that_no_tool_knows_is_refused() {
        let unknown = r#"{"feedback_type": "prohibition", "original_input": "a", "reporter": "ana"}"#;
        let refused = serde_json::from_str::<FeedbackArguments>(unknown).unwrap_err();
        assert!(refused.to_string().contains("`reporter`"), "{refused}");
    }
}
