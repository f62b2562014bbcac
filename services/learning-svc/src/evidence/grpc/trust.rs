//! Trust files and decisions about domains on the wire.

use emend_base::Error;
use emend_core::{Key, Kind, Violations, evidence::Layer};
use emend_proto::{common::v1::resource_value::Value, learning::v1 as pb};
use emend_serve::{auth::Call, caller::caller_of};
use emend_wire::{
    kinds,
    page::{self, QueryHash},
    parse as wire,
    render::{saturated, timestamp},
};
use learning_store::{codes, contests::CandidatePosition};
use tonic::Request;

use crate::{
    evidence::{
        Evidence,
        rules::{BlockedDomain, ListedRule, RuleFilter},
        trust_file::{Format, ReadTrustFile},
    },
    grpc::{
        candidates::{position, token},
        parse,
        render::actor,
    },
    roles::{TrustFileFor, admit, open},
};

pub(super) async fn apply_trust_file(
    evidence: &Evidence,
    request: Request<pb::ApplyTrustFileRequest>,
) -> Result<pb::ApplyTrustFileResponse, Error> {
    let caller = caller_of(&request);
    let Call { access, message } = open(request)?;
    let mut violations = Violations::new();
    let actor = parse::actor(&mut violations, &caller, &message.on_behalf_of);
    let format = match pb::TrustFileFormat::try_from(message.format) {
        Ok(pb::TrustFileFormat::Yaml) => Some(Format::Yaml),
        Ok(pb::TrustFileFormat::Toml) => Some(Format::Toml),
        Ok(pb::TrustFileFormat::Unspecified) => {
            violations.add("format", "is required: YAML or TOML");
            None
        }
        Err(_) => {
            violations.add("format", format!("is not a known format: {}", message.format));
            None
        }
    };
    let read = format.map(|format| ReadTrustFile::read(&message.content, format));
    let read = read.and_then(|read| violations.part("content", read));
    let (actor, read) = violations.finish(actor.zip(read)).map_err(Error::from)?;
    // Before anything is applied: all of it may be, or nothing is.
    for namespace in &read.file.namespaces {
        let item = TrustFileFor {
            namespace: namespace.to_string(),
            on_behalf_of: message.on_behalf_of.clone(),
        };
        admit(&access, &item)?;
    }
    let mut namespaces = Vec::with_capacity(read.file.namespaces.len());
    for namespace in &read.file.namespaces {
        let done = evidence.apply_trust_file(&read, namespace, &actor).await?;
        let has_changed = done.revision.0 > 0;
        namespaces.push(pb::TrustFileApplied {
            namespace: namespace.to_string(),
            version: saturated(done.version),
            applied: done.applied,
            set: super::small(done.set),
            ended: super::small(done.ended),
            operation_id: if has_changed {
                read.operation.to_string()
            } else {
                String::new()
            },
            revision: done.revision.0,
            differs: done.differs,
            is_older: done.is_older,
        });
    }
    Ok(pb::ApplyTrustFileResponse { namespaces })
}

pub(super) async fn list_domain_rules(
    evidence: &Evidence,
    request: Request<pb::ListDomainRulesRequest>,
) -> Result<pb::ListDomainRulesResponse, Error> {
    let Call { message, .. } = open(request)?;
    let query = QueryHash::of(
        "ListDomainRules",
        &pb::ListDomainRulesRequest {
            page_size: 0,
            page_token: String::new(),
            ..message.clone()
        },
    );
    let (filter, after, limit) = rule_filter(&message, query).map_err(Error::from)?;
    let (rules, next) = evidence.domain_rules(&filter, after, limit).await?;
    let positions = rules.iter().map(|rule| CandidatePosition::of(&rule.record));
    let positions: Vec<_> = positions.collect();
    let rules = rules.into_iter().map(rule).collect();
    let (rules, next_page_token) = one_page(query, rules, &positions, next);
    Ok(pb::ListDomainRulesResponse {
        rules,
        next_page_token,
    })
}

/// What to list, after which position, and how much.
type Listed<F> = (F, Option<CandidatePosition>, u32);

fn rule_filter(
    request: &pb::ListDomainRulesRequest,
    query: QueryHash,
) -> Result<Listed<RuleFilter>, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let pattern = match request.pattern.as_str() {
        "" => Some(None),
        pattern => {
            let form = Kind::DomainRule.rules().key;
            violations.check("pattern", Key::parse(form, pattern)).map(Some)
        }
    };
    let layer = match request.layer.as_str() {
        "" => Some(None),
        layer => violations.check("layer", Layer::parse(layer)).map(Some),
    };
    let limit = violations.check("page_size", wire::page_size(request.page_size, 100, 1_000));
    let after = after(&mut violations, query, &request.page_token);
    let parsed = (|| {
        let filter = RuleFilter {
            namespace: namespace?,
            pattern: pattern?,
            layer: layer?,
            with_ended: request.include_ended,
        };
        Some((filter, after?, limit?))
    })();
    violations.finish(parsed)
}

#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner on the first page"
)]
fn after(violations: &mut Violations, query: QueryHash, token: &str) -> Option<Option<CandidatePosition>> {
    let bytes = violations.check("page_token", page::position(query, token))?;
    match bytes {
        None => Some(None),
        Some(bytes) => violations.check("page_token", position(&bytes)).map(Some),
    }
}

/// The items that fit on a page, and the token of the next one if there is any.
fn one_page<M: prost::Message>(
    query: QueryHash,
    items: Vec<M>,
    positions: &[CandidatePosition],
    next: Option<CandidatePosition>,
) -> (Vec<M>, String) {
    let (items, was_cut) = page::cut(items);
    let last = items.len().checked_sub(1).and_then(|last| positions.get(last));
    let next = if was_cut { last.copied() } else { next };
    (items, next.map_or_else(String::new, |next| token(query, next)))
}

fn rule(listed: ListedRule) -> pb::DomainRuleRecord {
    let active = listed.is_active();
    let ListedRule {
        effective: (effective_level, effective_layer),
        record,
        reason,
        actor: by,
        decision,
        ..
    } = listed;
    let candidate = &record.candidate;
    let rule = match kinds::value(&candidate.value.learned) {
        Value::DomainRule(rule) => Some(rule),
        _ => None,
    };
    let feedback = decision.and_then(|decision| decision.feedback);
    pb::DomainRuleRecord {
        rule_id: candidate.id.to_string(),
        pattern: record.key.key.as_str().to_owned(),
        layer: record.key.qualifier.clone(),
        rule,
        active,
        status: codes::status(candidate.status),
        status_reason: candidate
            .reason
            .map_or_else(String::new, |reason| reason.name().to_owned()),
        reason,
        actor: Some(actor(&by)),
        feedback_id: feedback.map_or_else(String::new, |feedback| feedback.to_string()),
        created_at: Some(timestamp(record.kept.created_at)),
        applied_revision: candidate.applied_revision.0,
        effective_level: effective_level.number(),
        effective_layer: effective_layer.map_or("", Layer::name).to_owned(),
    }
}

pub(super) async fn list_blocked_domains(
    evidence: &Evidence,
    request: Request<pb::ListBlockedDomainsRequest>,
) -> Result<pb::ListBlockedDomainsResponse, Error> {
    let Call { message, .. } = open(request)?;
    let query = QueryHash::of(
        "ListBlockedDomains",
        &pb::ListBlockedDomainsRequest {
            page_size: 0,
            page_token: String::new(),
            ..message.clone()
        },
    );
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &message.namespace);
    let limit = violations.check("page_size", wire::page_size(message.page_size, 100, 1_000));
    let after = after(&mut violations, query, &message.page_token);
    let parsed = (|| Some((namespace?, after?, limit?)))();
    let (namespace, after, limit) = violations.finish(parsed).map_err(Error::from)?;
    let (blocked, next) = evidence.blocked_domains(&namespace, after, limit).await?;
    let positions = blocked
        .iter()
        .map(|domain| CandidatePosition::of(&domain.rule.record));
    let positions: Vec<_> = positions.collect();
    let domains = blocked.into_iter().map(domain).collect();
    let (domains, next_page_token) = one_page(query, domains, &positions, next);
    Ok(pb::ListBlockedDomainsResponse {
        domains,
        next_page_token,
    })
}

fn domain(blocked: BlockedDomain) -> pb::BlockedDomain {
    pb::BlockedDomain {
        cause_id: blocked.cause_id(),
        domain: blocked.rule.pattern().to_owned(),
        layer: blocked.rule.record.key.qualifier.clone(),
        blocked_at: Some(timestamp(blocked.since)),
        reason: blocked.reason,
        contradicting_claims: blocked.contradicting,
        original_level: blocked.original.number(),
        // Whoever blocked it, what people decide comes first.
        can_restore: true,
        restore_via: "domain_unblock".to_owned(),
    }
}
