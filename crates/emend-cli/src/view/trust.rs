//! Decisions about domains, and what a trust file did.

use emend_proto::{
    common::v1::{DomainDecision, DomainRuleValue, TrustLevel},
    learning::v1::{ApplyTrustFileResponse, BlockedDomain, CandidateStatus, DomainRuleRecord},
};
use serde_json::{Value, json};

use super::{common::actor, name, present, time};

fn level(number: i32) -> Value {
    let known = TrustLevel::try_from(number).ok();
    name(known.map(|level| level.as_str_name()), number)
}

fn rule(rule: Option<&DomainRuleValue>) -> Value {
    rule.map_or(Value::Null, |rule| {
        let decision = DomainDecision::try_from(rule.decision).ok();
        json!({
            "decision": name(decision.map(|decision| decision.as_str_name()), rule.decision),
            "level": level(rule.level),
        })
    })
}

/// A decision about a domain.
pub fn domain_rule(of: &DomainRuleRecord) -> Value {
    let status = CandidateStatus::try_from(of.status).ok();
    present(json!({
        "ruleId": of.rule_id,
        "pattern": of.pattern,
        "layer": of.layer,
        "rule": rule(of.rule.as_ref()),
        "active": of.active,
        "status": name(status.map(|status| status.as_str_name()), of.status),
        "statusReason": of.status_reason,
        "reason": of.reason,
        "actor": actor(of.actor.as_ref()),
        "feedbackId": of.feedback_id,
        "createdAt": time(of.created_at.as_ref()),
        "appliedRevision": of.applied_revision,
    }))
}

/// A pattern whose sources are not shown.
pub fn blocked_domain(of: &BlockedDomain) -> Value {
    present(json!({
        "domain": of.domain,
        "layer": of.layer,
        "blockedAt": time(of.blocked_at.as_ref()),
        "reason": of.reason,
        "contradictingClaims": of.contradicting_claims,
        "originalLevel": level(of.original_level),
        "canRestore": of.can_restore,
        "restoreVia": of.restore_via,
        "causeId": of.cause_id,
    }))
}

/// What a trust file did.
pub fn trust_file(done: &ApplyTrustFileResponse) -> Value {
    let namespaces = done.namespaces.iter().map(|of| {
        json!({
            "namespace": of.namespace,
            "version": of.version,
            "applied": of.applied,
            "differs": of.differs,
            "set": of.set,
            "ended": of.ended,
            "operationId": of.operation_id,
            "revision": of.revision,
        })
    });
    json!({"namespaces": namespaces.collect::<Vec<_>>()})
}
