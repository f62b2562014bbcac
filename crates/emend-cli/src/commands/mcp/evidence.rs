//! What a call of `feedback` says: a decision about a domain, a claim or an edge.

use emend_core::{DomainRule, EdgeLabel, FieldViolation, Invalid, TrustLevel};
use emend_proto::common::v1::{
    ClaimReject, ClaimRestore, Correction, EdgeCorrect, correction::Correction as Variant,
};
use emend_wire::kinds::{domain_decision, edge_correction, task_of};
use tonic::Status;

use super::arguments::{EvidenceAction, EvidenceArguments, EvidenceDetails};
use crate::failure::Result;

/// The correction that the arguments describe. What the action does not take is refused, and so is what has no meaning; the
/// rest is left to the service to check.
pub(super) fn decision(arguments: &EvidenceArguments) -> Result<Correction> {
    let EvidenceArguments {
        task_id,
        action,
        args,
    } = arguments;
    let mut wrong = Vec::new();
    if task_id.trim().is_empty() {
        wrong.push(violation(
            "task_id",
            "is required: the research task in which it is said",
        ));
    }
    for (name, value, belongs) in [
        ("pattern", &args.pattern, action.is_about_a_domain()),
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
    match variant(*action, args) {
        Ok(mut form) if wrong.is_empty() => {
            if let Some(task) = task_of(&mut form) {
                task.clone_from(task_id);
            }
            Ok(Correction {
                correction: Some(form),
            })
        }
        parsed => {
            wrong.extend(parsed.err());
            Err(Status::from(emend_base::Error::InvalidArgument(wrong)).into())
        }
    }
}

fn variant(action: EvidenceAction, args: &EvidenceDetails) -> Result<Variant, FieldViolation> {
    let text = |argument: &Option<String>| argument.clone().unwrap_or_default();
    let domain = |rule| Ok(domain_decision(text(&args.pattern), rule));
    match action {
        EvidenceAction::DomainBlock => domain(DomainRule::Block),
        EvidenceAction::DomainUnblock => {
            let level = args.level.as_deref().map(TrustLevel::parse).transpose();
            let level = level.map_err(|Invalid(why)| violation("args.level", &why))?;
            domain(DomainRule::Unblock(level))
        }
        EvidenceAction::DomainClearOverride => domain(DomainRule::Clear),
        EvidenceAction::ClaimReject => Ok(Variant::ClaimReject(ClaimReject {
            claim_id: text(&args.claim_id),
            reason_code: text(&args.reason_code),
            ..ClaimReject::default()
        })),
        EvidenceAction::ClaimRestore => Ok(Variant::ClaimRestore(ClaimRestore {
            claim_id: text(&args.claim_id),
            ..ClaimRestore::default()
        })),
        EvidenceAction::EdgeCorrect => {
            let Some(relation) = &args.correct_relation else {
                return Ok(Variant::EdgeCorrect(EdgeCorrect {
                    edge_id: text(&args.edge_id),
                    ..EdgeCorrect::default()
                }));
            };
            let label = EdgeLabel::parse(relation)
                .map_err(|Invalid(why)| violation("args.correct_relation", &why))?;
            Ok(edge_correction(text(&args.edge_id), label))
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

    fn decided(text: &str) -> Result<Variant> {
        let arguments = serde_json::from_str(text).expect("arguments");
        decision(&arguments).map(|correction| correction.correction.expect("a form"))
    }

    #[test]
    fn an_action_is_said_in_its_task() {
        let reject = r#"{"task_id": "t1", "action": "claim_reject", "args": {"claim_id": "c1", "reason_code": "SPAM"}}"#;
        let Variant::ClaimReject(reject) = decided(reject).unwrap() else {
            panic!("no rejection")
        };
        assert_eq!(
            (&*reject.claim_id, &*reject.reason_code, &*reject.task_id),
            ("c1", "SPAM", "t1")
        );
        let unblock =
            r#"{"task_id": "t1", "action": "domain_unblock", "args": {"pattern": "a.org", "level": "low"}}"#;
        let Variant::DomainUnblock(unblock) = decided(unblock).unwrap() else {
            panic!("no unblocking")
        };
        assert_eq!((&*unblock.pattern, &*unblock.task_id), ("a.org", "t1"));
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        for (text, expected) in [
            (
                r#"{"task_id": " ", "action": "claim_restore", "args": {"claim_id": "c1", "reason_code": "A", "level": "low"}}"#,
                &["task_id", "args.level", "args.reason_code"][..],
            ),
            (
                r#"{"task_id": "t", "action": "edge_correct", "args": {"edge_id": "e", "correct_relation": "CITES"}}"#,
                &["args.correct_relation"],
            ),
            (
                r#"{"task_id": "t", "action": "domain_unblock", "args": {"pattern": "a.org", "level": "blocked"}}"#,
                &["args.level"],
            ),
        ] {
            let refused = decided(text).unwrap_err().to_json();
            let fields: Vec<_> = refused["error"]["fieldViolations"]
                .as_array()
                .expect("violations")
                .iter()
                .map(|violation| violation["field"].as_str().expect("a field"))
                .collect();
            assert_eq!(fields, expected, "{text}");
        }
    }
}
