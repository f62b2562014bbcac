//! Checks what the rules in force make of hosts, and what the evidence makes of domains.

use std::collections::{BTreeSet, HashMap, HashSet};

use emend_core::{
    DomainRuleValue, Namespace,
    evidence::{
        BlockingPolicy, ClaimsOfDomain, Covering, Layer, Layers, Place, RuleCause, RulesHere as _,
        RulesOfName, deciding, suffixes,
    },
};
use emend_store::{StoreError, audit::Findings};
use futures::TryStreamExt as _;

use super::PAGE;
use crate::audit::EVIDENCE_VERIFIED;
use crate::{
    audit::stored::{
        AuditRead,
        evidence::{AuditedDomain, AuditedHost},
    },
    evidence::rows::HostLevel,
};

/// Rules in force by name, each with why the system made it.
type RulesByName = HashMap<String, RulesOfName<Option<RuleCause>>>;
/// The same by namespace.
type Rules = HashMap<String, RulesByName>;
/// Names of which rules changed, by namespace.
type StaleNames = HashMap<String, HashSet<String>>;

pub(super) async fn check(reading: &mut dyn AuditRead, findings: &mut Findings) -> Result<(), StoreError> {
    let mut stale = StaleNames::new();
    for (namespace, name) in reading.stale_names().await? {
        stale.entry(namespace).or_default().insert(name);
    }
    check_hosts(reading, &stale, findings).await?;
    check_domains(reading, &stale, findings).await
}

/// Whether rules above a name changed, so that its level may not be up to date.
fn is_stale(stale: &StaleNames, namespace: &str, name: &str) -> bool {
    let of_namespace = stale.get(namespace);
    of_namespace.is_some_and(|names| suffixes(name).any(|above| names.contains(above)))
}

/// The rules in force of all names above these, each with its namespace.
async fn rules_above(
    reading: &mut dyn AuditRead,
    names: &[(&str, &str)],
    findings: &mut Findings,
) -> Result<Rules, StoreError> {
    let mut by_namespace: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (namespace, name) in names {
        by_namespace.entry(namespace).or_default().extend(suffixes(name));
    }
    let mut rules = Rules::new();
    for (namespace_name, names) in by_namespace {
        let Ok(namespace) = Namespace::parse(namespace_name) else {
            continue;
        };
        let patterns: Vec<String> = names
            .iter()
            .flat_map(|name| [(*name).to_owned(), format!("*.{name}")])
            .collect();
        let rules = rules.entry(namespace_name.to_owned()).or_default();
        for row in reading.rules_of(&namespace, &patterns).await? {
            if let Some((pattern, layer, value)) = findings.readable(row.parse())? {
                let of_name = rules.entry(Covering::of(&pattern).name.to_owned()).or_default();
                of_name.set(&pattern, layer, Some((value.rule, value.cause)));
            }
        }
    }
    Ok(rules)
}

async fn check_hosts(
    reading: &mut dyn AuditRead,
    stale: &StaleNames,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let hosts = reading.hosts_after(after, PAGE).await?;
        let Some(last) = hosts.last() else {
            return Ok(());
        };
        after = last.host;
        let hosts: Vec<(&AuditedHost, &str, String)> = hosts
            .iter()
            .filter_map(|host| Some((host, host.namespace.as_deref()?, host.name())))
            .collect();
        let names: Vec<(&str, &str)> = hosts.iter().map(|(_, space, name)| (*space, &**name)).collect();
        let rules = rules_above(reading, &names, findings).await?;
        for (host, namespace, name) in &hosts {
            if is_stale(stale, namespace, name) {
                continue;
            }
            let by = |layers| deciding(name, layers, |above| rules.get(*namespace)?.get(above));
            let (all, set) = (by(Layers::All), by(Layers::WithoutVerified));
            let due = HostLevel {
                level: all
                    .as_ref()
                    .map_or_else(Default::default, |decided| decided.level),
                set_level: set.map_or_else(Default::default, |decided| decided.level),
                layer: all.map(|decided| decided.layer),
            };
            let stored = (host.level, host.set_level, host.layer);
            if stored != (due.level.number(), due.set_level.number(), due.layer_number()) {
                findings.add(
                    EVIDENCE_VERIFIED,
                    format_args!("host number {}", host.host),
                    format_args!("its level is not {}, as the rules in force make it", due.level),
                );
            }
        }
    }
}

async fn check_domains(
    reading: &mut dyn AuditRead,
    stale: &StaleNames,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut policies: HashMap<String, BlockingPolicy> = HashMap::new();
    for row in reading.namespace_policies().await? {
        if let Some(stored) = findings.readable(row.parse())? {
            policies.insert(row.namespace, stored.policy.blocking);
        }
    }
    let mut after = 0;
    loop {
        let domains = reading.domains_after(after, PAGE).await?;
        let Some(last) = domains.last() else {
            return Ok(());
        };
        let through = last.domain;
        let mut claims: HashMap<i64, ClaimsOfDomain> = HashMap::new();
        let mut in_progress: HashSet<i64> = HashSet::new();
        let mut supported = reading.supported_claims(after, through);
        while let Some(claim) = supported.try_next().await? {
            if claim.stale != 0 {
                in_progress.insert(claim.domain);
            }
            let of_domain = claims.entry(claim.domain).or_default();
            of_domain.add(&claim.claim_id, claim.facts());
        }
        drop(supported);
        let mut found = reading.found_claims(after, through);
        while let Some(claim) = found.try_next().await? {
            if claim.stale != 0 {
                in_progress.insert(claim.domain);
            }
            let of_domain = claims.entry(claim.domain).or_default();
            of_domain.add_found(&claim.claim_id, claim.facts());
        }
        drop(found);
        let names: Vec<(&str, &str)> = domains
            .iter()
            .filter_map(|domain| Some((domain.namespace.as_deref()?, domain.name.as_str())))
            .collect();
        let rules = rules_above(reading, &names, findings).await?;
        for domain in &domains {
            let claims = claims.remove(&domain.domain).unwrap_or_default();
            let is_current = domain.stale == 0 && !in_progress.contains(&domain.domain);
            if let (true, Some(namespace)) = (is_current, domain.namespace.as_deref())
                && !is_stale(stale, namespace, &domain.name)
            {
                let policy = policies.get(namespace).copied().unwrap_or_default();
                check_domain(domain, &claims, rules.get(namespace), policy, findings);
            }
        }
        after = through;
    }
}

/// Whether the verified layer says of a domain what its claims come to.
fn check_domain(
    domain: &AuditedDomain,
    claims: &ClaimsOfDomain,
    rules: Option<&RulesByName>,
    policy: BlockingPolicy,
    findings: &mut Findings,
) {
    let set = deciding(&domain.name, Layers::WithoutVerified, |above| rules?.get(above));
    let level = set
        .as_ref()
        .map_or_else(Default::default, |decided| decided.level);
    let due = claims.rule(&domain.name, level, set.is_some(), policy);
    let place = Place {
        layer: Layer::Verified,
        below_only: false,
    };
    let here = rules.and_then(|rules| rules.get(&domain.name));
    let stored = here
        .and_then(|here| here.rule(place))
        .map(|(rule, cause)| DomainRuleValue { rule, cause });
    if stored != due {
        findings.add(
            EVIDENCE_VERIFIED,
            format_args!("domain number {}", domain.domain),
            "what the system says of it is not what its claims come to",
        );
    }
}
