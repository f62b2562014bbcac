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
pub fn domain_rule(record: &DomainRuleRecord) -> Value {
    let DomainRuleValue {
        decision, level: to, ..
    } = record.rule.clone().unwrap_or_default();
    let actor = record.actor.clone().unwrap_or_default();
    json!({
        "rule_id": record.rule_id,
        "pattern": record.pattern,
        "layer": record.layer,
        "decision": word(decision, DomainDecision::as_str_name, "DOMAIN_DECISION_"),
        "level": level(to),
        "active": record.active,
        "status": word(record.status, CandidateStatus::as_str_name, "CANDIDATE_STATUS_"),
        "status_reason": record.status_reason,
        "reason": record.reason,
        "caller": actor.caller,
        "on_behalf_of": actor.on_behalf_of,
        "feedback_id": record.feedback_id,
        "created_at": time(record.created_at.as_ref()),
        "applied_revision": record.applied_revision,
        "effective_level": level(record.effective_level),
        "effective_layer": (!record.effective_layer.is_empty()).then_some(&record.effective_layer),
    })
}

/// A pattern whose sources are not shown.
pub fn blocked_domain(blocked: &BlockedDomain) -> Value {
    json!({
        "domain": blocked.domain,
        "layer": blocked.layer,
        "blocked_at": time(blocked.blocked_at.as_ref()),
        "reason": blocked.reason,
        "contradicting_claims": blocked.contradicting_claims,
        "original_level": level(blocked.original_level),
        "can_restore": blocked.can_restore,
        "restore_via": blocked.restore_via,
        "cause_id": blocked.cause_id,
    })
}

/// What a trust file did.
pub fn trust_file(done: &ApplyTrustFileResponse) -> Value {
    let namespaces = done.namespaces.iter().map(|namespace| {
        json!({
            "namespace": namespace.namespace,
            "version": namespace.version,
            "applied": namespace.applied,
            "differs": namespace.differs,
            "is_older": namespace.is_older,
            "set": namespace.set,
            "ended": namespace.ended,
            "operation_id": namespace.operation_id,
            "revision": namespace.revision,
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
            .flat_map(|shown| shown.as_object().unwrap().keys());
        for key in keys {
            assert!(
                key.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '_'),
                "{key}"
            );
        }
    }
}
