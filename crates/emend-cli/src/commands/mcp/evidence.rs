//! What a call of `feedback` says: a decision about a domain, a claim or an edge.

use emend_core::{DomainRule, EdgeLabel, FieldViolation, Invalid, TrustLevel};
use emend_proto::common::v1::{
    ClaimReject, ClaimRestore, Correction, EdgeCorrect, correction::Correction as Variant,
};
use emend_wire::kinds::{domain_decision, edge_correction, task_of};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    arguments::{EvidenceAction, EvidenceArguments, EvidenceDetails},
    correction::checked,
    parameters,
};

/// The correction that the arguments describe, or everything that is wrong with them: a person who is asked about it, and the
/// service that stores it, get nothing that could not be stored.
pub(super) fn decision(arguments: &EvidenceArguments) -> Result<Correction, Vec<FieldViolation>> {
    let EvidenceArguments {
        task_id,
        action,
        args,
        request_id: _,
    } = arguments;
    let mut wrong = Vec::new();
    if task_id.trim().is_empty() {
        wrong.push(violation(
            "task_id",
            "is required: the research task in which it is said",
        ));
    }
    for (name, value, belongs) in [
        ("domain_pattern", &args.domain_pattern, action.is_about_a_domain()),
        ("level", &args.level, *action == EvidenceAction::DomainUnblock),
        (
            "claim_id",
            &args.claim_id,
            matches!(action, EvidenceAction::ClaimReject | EvidenceAction::ClaimRestore),
        ),
        (
            "reason_code",
            &args.reason_code,
            *action == EvidenceAction::ClaimReject,
        ),
        ("edge_id", &args.edge_id, *action == EvidenceAction::EdgeCorrect),
        (
            "correct_relation",
            &args.correct_relation,
            *action == EvidenceAction::EdgeCorrect,
        ),
    ] {
        if value.is_some() && !belongs {
            wrong.push(violation(
                &format!("args.{name}"),
                "is no argument of this action",
            ));
        }
    }
    let mut form = variant(*action, args, &mut wrong);
    if let Some(task) = task_of(&mut form) {
        task.clone_from(task_id);
    }
    checked(form, args.reason.as_deref(), parameters::evidence, wrong)
}

/// The arguments with `pattern`, by which domains are named elsewhere, as `domain_pattern`.
pub(super) fn with_one_name(mut arguments: JsonObject) -> JsonObject {
    if let Some(Value::Object(args)) = arguments.get_mut("args")
        && !args.contains_key("domain_pattern")
        && let Some(pattern) = args.remove("pattern")
    {
        args.insert("domain_pattern".to_owned(), pattern);
    }
    arguments
}

/// The form of the action. A word that is none of its list is a violation, and left out.
fn variant(action: EvidenceAction, args: &EvidenceDetails, wrong: &mut Vec<FieldViolation>) -> Variant {
    let text = |argument: &Option<String>| argument.clone().unwrap_or_default();
    let domain = |rule| domain_decision(text(&args.domain_pattern), rule);
    match action {
        EvidenceAction::DomainBlock => domain(DomainRule::Block),
        EvidenceAction::DomainUnblock => {
            let level = word("args.level", args.level.as_deref(), TrustLevel::parse, wrong);
            domain(DomainRule::Unblock(level))
        }
        EvidenceAction::DomainClearOverride => domain(DomainRule::Clear),
        EvidenceAction::ClaimReject => Variant::ClaimReject(ClaimReject {
            claim_id: text(&args.claim_id),
            reason_code: text(&args.reason_code),
            ..ClaimReject::default()
        }),
        EvidenceAction::ClaimRestore => Variant::ClaimRestore(ClaimRestore {
            claim_id: text(&args.claim_id),
            ..ClaimRestore::default()
        }),
        EvidenceAction::EdgeCorrect => {
            let relation = args.correct_relation.as_deref();
            match word("args.correct_relation", relation, EdgeLabel::parse, wrong) {
                Some(label) => edge_correction(text(&args.edge_id), label),
                None => Variant::EdgeCorrect(EdgeCorrect {
                    edge_id: text(&args.edge_id),
                    ..EdgeCorrect::default()
                }),
            }
        }
    }
}

fn word<T>(
    field: &str,
    word: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, Invalid>,
    wrong: &mut Vec<FieldViolation>,
) -> Option<T> {
    match word.map(parse).transpose() {
        Ok(parsed) => parsed,
        Err(Invalid(why)) => {
            wrong.push(violation(field, &why));
            None
        }
    }
}

fn violation(field: &str, description: &str) -> FieldViolation {
    FieldViolation {
        field: field.to_owned(),
        description: description.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(text: &str) -> Result<Variant, Vec<FieldViolation>> {
        let arguments = serde_json::from_str(text).expect("arguments");
        decision(&arguments).map(|correction| correction.correction.expect("a form"))
    }

    #[test]
    fn an_action_is_said_in_its_task() {
        let reject = r#"{"task_id": "t1", "action": "claim_reject", "args": {"claim_id": "c1", "reason_code": "SPAM", "reason": "an advertisement"}}"#;
        let Variant::ClaimReject(reject) = decided(reject).unwrap() else {
            panic!("no rejection")
        };
        assert_eq!(
            (&*reject.claim_id, &*reject.reason_code, &*reject.task_id),
            ("c1", "SPAM", "t1")
        );
        let unblock = r#"{"task_id": "t1", "action": "domain_unblock", "args": {"domain_pattern": "a.org", "level": "low", "reason": "a mirror"}}"#;
        let Variant::DomainUnblock(unblock) = decided(unblock).unwrap() else {
            panic!("no unblocking")
        };
        assert_eq!((&*unblock.pattern, &*unblock.task_id), ("a.org", "t1"));
    }

    #[test]
    fn a_domain_is_named_by_domain_pattern_or_by_pattern() {
        let named = |args: serde_json::Value| {
            let arguments = serde_json::json!({"args": args});
            let renamed = with_one_name(arguments.as_object().expect("an object").clone());
            renamed["args"].clone()
        };
        let expected = serde_json::json!({"domain_pattern": "a.org"});
        assert_eq!(named(serde_json::json!({"pattern": "a.org"})), expected);
        assert_eq!(named(expected.clone()), expected);
        let both = serde_json::json!({"domain_pattern": "a.org", "pattern": "b.org"});
        assert_eq!(named(both.clone()), both, "the second is refused as unknown");
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        for (text, expected) in [
            (
                r#"{"task_id": " ", "action": "claim_restore", "args": {"claim_id": "c1", "reason_code": "A", "level": "low"}}"#,
                &["args.level", "args.reason", "args.reason_code", "task_id"][..],
            ),
            (
                r#"{"task_id": "t", "action": "edge_correct", "args": {"correct_relation": "CITES"}}"#,
                &["args.correct_relation", "args.edge_id"],
            ),
            (
                r#"{"task_id": "t", "action": "domain_unblock", "args": {"domain_pattern": "com", "level": "blocked"}}"#,
                &["args.domain_pattern", "args.level", "args.reason"],
            ),
            (
                r#"{"task_id": "", "action": "claim_reject", "args": {"level": "none", "reason": " "}}"#,
                &["args.claim_id", "args.level", "args.reason", "task_id"],
            ),
        ] {
            let wrong = decided(text).unwrap_err();
            let mut fields: Vec<_> = wrong.iter().map(|violation| violation.field.as_str()).collect();
            fields.sort_unstable();
            assert_eq!(fields, expected, "{text}");
        }
    }
}
