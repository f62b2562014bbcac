//! Decisions about domains, and what a trust file did, as JSON: names and enums as in the evidence graph, every field there, null:
//! there is none.

use emend_proto::{
    common::v1::{DomainDecision, DomainRuleValue},
    learning::v1::{ApplyTrustFileResponse, BlockedDomain, CandidateStatus, DomainRuleRecord},
};
use serde_json::{Value, json};

use super::{
    evidence::{level, word},
    time,
};

/// A decision about a domain.
pub fn domain_rule(of: &DomainRuleRecord) -> Value {
    let DomainRuleValue {
        decision, level: to, ..
    } = of.rule.clone().unwrap_or_default();
    let actor = of.actor.clone().unwrap_or_default();
    json!({
        "rule_id": of.rule_id,
        "pattern": of.pattern,
        "layer": of.layer,
        "decision": word(decision, DomainDecision::as_str_name, "DOMAIN_DECISION_"),
        "level": level(to),
        "active": of.active,
        "status": word(of.status, CandidateStatus::as_str_name, "CANDIDATE_STATUS_"),
        "status_reason": of.status_reason,
        "reason": of.reason,
        "caller": actor.caller,
        "on_behalf_of": actor.on_behalf_of,
        "feedback_id": of.feedback_id,
        "created_at": time(of.created_at.as_ref()),
        "applied_revision": of.applied_revision,
        "effective_level": level(of.effective_level),
        "effective_layer": (!of.effective_layer.is_empty()).then_some(&of.effective_layer),
    })
}

/// A pattern whose sources are not shown.
pub fn blocked_domain(of: &BlockedDomain) -> Value {
    json!({
        "domain": of.domain,
        "layer": of.layer,
        "blocked_at": time(of.blocked_at.as_ref()),
        "reason": of.reason,
        "contradicting_claims": of.contradicting_claims,
        "original_level": level(of.original_level),
        "can_restore": of.can_restore,
        "restore_via": of.restore_via,
        "cause_id": of.cause_id,
    })
}

/// What a trust file did.
pub fn trust_file(done: &ApplyTrustFileResponse) -> Value {
    let namespaces = done.namespaces.iter().map(|of| {
        json!({
            "namespace": of.namespace,
            "version": of.version,
            "applied": of.applied,
            "differs": of.differs,
            "is_older": of.is_older,
            "set": of.set,
            "ended": of.ended,
            "operation_id": of.operation_id,
            "revision": of.revision,
        })
    });
    json!({"namespaces": namespaces.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{Actor, TrustLevel};

    use super::*;

    #[test]
    fn decisions_about_domains_are_spelt_as_claims_and_edges_are() {
        let rule = domain_rule(&DomainRuleRecord {
            pattern: "spam.example".into(),
            rule: Some(DomainRuleValue {
                decision: DomainDecision::Block.into(),
                ..DomainRuleValue::default()
            }),
            status: CandidateStatus::Applied.into(),
            actor: Some(Actor {
                caller: "console".into(),
                ..Actor::default()
            }),
            ..DomainRuleRecord::default()
        });
        assert_eq!(
            (
                &rule["decision"],
                &rule["level"],
                &rule["status"],
                &rule["caller"]
            ),
            (
                &"block".into(),
                &Value::Null,
                &"applied".into(),
                &"console".into()
            )
        );
        let blocked = blocked_domain(&BlockedDomain {
            original_level: TrustLevel::Low.into(),
            ..BlockedDomain::default()
        });
        assert_eq!(
            (&blocked["original_level"], &blocked["contradicting_claims"]),
            (&"low".into(), &json!([]))
        );
        let keys = [&rule, &blocked]
            .into_iter()
            .flat_map(|of| of.as_object().unwrap().keys());
        for key in keys {
            assert!(
                key.chars().all(|of| of.is_ascii_lowercase() || of == '_'),
                "{key}"
            );
        }
    }
}
