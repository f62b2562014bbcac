//! Decisions about domains, and which domains are blocked by them.
//!
//! Both lists are of candidates of the kind `DOMAIN_RULE`, newest first, of which a page looks at a bounded number: so one may be
//! shorter than asked for, and yet have a next one.

use std::collections::{BTreeSet, HashMap};

use emend_base::Error;
use emend_core::{
    DomainRule, Key, Kind, Learned, Namespace, Status,
    evidence::{
        DomainRuleValue, Finding, Layer, Layers, Place, RuleCause, RulesHere, RulesOfName, TrustLevel,
        deciding,
    },
};
use jiff::Timestamp;
use learning_store::{
    actor::Actor,
    contests::{CandidateFilter, CandidatePosition, CandidateRecord, Listing},
    evidence::DecisionRecord,
};

use crate::evidence::Evidence;

/// Decisions looked at in one query, and queries for one page, at most.
const BATCH: u32 = 1_000;
const BATCHES: usize = 10;

/// Contradicting claims shown at most.
const CONTRADICTING: u32 = 20;

/// Which decisions to list.
#[derive(Debug, Clone)]
pub(crate) struct RuleFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only those about this pattern.
    pub pattern: Option<Key>,
    /// Only those of this layer.
    pub layer: Option<Layer>,
    /// Also those that are no longer in force.
    pub with_ended: bool,
}

/// A decision about a domain.
#[derive(Debug, Clone)]
pub(crate) struct ListedRule {
    /// The candidate that it is.
    pub record: CandidateRecord,
    /// What was decided.
    pub value: DomainRuleValue,
    /// Why, as who decided said; may be empty.
    pub reason: String,
    /// Who decided.
    pub actor: Actor,
    /// What else is stored of it.
    pub decision: Option<DecisionRecord>,
    /// How far what its pattern covers is trusted now, by all rules in force, and the layer that decides so.
    pub effective: (TrustLevel, Option<Layer>),
}

impl ListedRule {
    /// Whether it is in force: what was cleared has no rule.
    pub(crate) fn is_active(&self) -> bool {
        is_active(&self.record, &self.value)
    }

    /// Its pattern.
    pub(crate) fn pattern(&self) -> &str {
        self.record.key.key.as_str()
    }
}

/// A pattern whose sources are not shown.
#[derive(Debug, Clone)]
pub(crate) struct BlockedDomain {
    /// What blocks it.
    pub rule: ListedRule,
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// Ids of rejected claims that it supports, where the system blocked it.
    pub contradicting: Vec<String>,
    /// How far it would be trusted without blocks.
    pub original: TrustLevel,
}

impl BlockedDomain {
    /// What blocked it: the feedback, else the claim with the dangerous pattern, else the candidate.
    pub(crate) fn cause_id(&self) -> String {
        let feedback = self.rule.decision.as_ref().and_then(|decision| decision.feedback);
        let claim = self.rule.value.cause.as_ref().map(|cause| &cause.claim_id);
        match (feedback, claim.filter(|claim| !claim.is_empty())) {
            (Some(feedback), _) => feedback.to_string(),
            (None, Some(claim)) => claim.clone(),
            (None, None) => self.rule.record.candidate.id.to_string(),
        }
    }
}

/// What was found, and where the next page begins if there is one.
type Page<T> = (Vec<T>, Option<CandidatePosition>);

impl Evidence {
    /// Decisions about domains after a position, newest first.
    pub(crate) async fn domain_rules(
        &self,
        filter: &RuleFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Page<ListedRule>, Error> {
        let (found, next) = self.decisions_kept(filter, after, limit, |_| true).await?;
        let names: BTreeSet<&str> = found.iter().map(|(record, _)| record.key.key.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let rules = self.graph().rules_above(&filter.namespace, &names).await?;
        Ok((self.listed(found, &rules).await?, next))
    }

    /// Blocked domains after a position, newest first.
    pub(crate) async fn blocked_domains(
        &self,
        namespace: &Namespace,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Page<BlockedDomain>, Error> {
        let filter = RuleFilter {
            namespace: namespace.clone(),
            pattern: None,
            layer: None,
            with_ended: false,
        };
        let blocks = |value: &DomainRuleValue| value.rule == DomainRule::Block;
        let (mut found, next) = self.decisions_kept(&filter, after, limit, blocks).await?;
        let names: Vec<&str> = found.iter().map(|(record, _)| record.key.key.as_str()).collect();
        let rules = self.graph().rules_above(namespace, &names).await?;
        found.retain(|(record, _)| decides(record, &rules));
        let of_people = found
            .iter()
            .filter(|(record, _)| layer(record) == Some(Layer::Human));
        let of_people: Vec<_> = of_people.map(|(record, _)| record.candidate.id).collect();
        let levels = self.graph().levels_before(&of_people).await?;
        let mut blocked = Vec::with_capacity(found.len());
        for rule in self.listed(found, &rules).await? {
            let before = levels.get(&rule.record.candidate.id).copied();
            let original = before.unwrap_or_else(|| shown_level(rule.pattern(), &rules));
            blocked.push(self.blocked(namespace, rule, original).await?);
        }
        Ok((blocked, next))
    }

    /// Decisions that are kept, and where the next page begins if there is one.
    async fn decisions_kept(
        &self,
        filter: &RuleFilter,
        after: Option<CandidatePosition>,
        limit: u32,
        keep: impl Fn(&DomainRuleValue) -> bool + Send,
    ) -> Result<Page<(CandidateRecord, DomainRuleValue)>, Error> {
        let statuses = if filter.with_ended {
            // What awaits review was not decided yet.
            vec![
                Status::Applied,
                Status::Superseded,
                Status::Withdrawn,
                Status::Rejected,
            ]
        } else {
            vec![Status::Applied]
        };
        let candidates = CandidateFilter {
            reviewed: learning_store::contests::Involvement::default(),
            user: None,
            namespace: filter.namespace.clone(),
            kinds: vec![Kind::DomainRule],
            statuses,
            keys: filter.pattern.iter().cloned().collect(),
        };
        let (mut found, mut last) = (Vec::new(), after);
        for _ in 0..BATCHES {
            let batch = self
                .database
                .list_candidates(&candidates, &Listing::default(), last, BATCH)
                .await?;
            let is_last = batch.len() < BATCH as usize;
            for record in batch {
                if found.len() == limit as usize {
                    return Ok((found, last));
                }
                last = Some(CandidatePosition::of(&record));
                let Learned::DomainRule(value) = &record.candidate.value.learned else {
                    continue;
                };
                let is_of_layer = filter.layer.is_none_or(|wanted| layer(&record) == Some(wanted));
                let is_listed = filter.with_ended || is_active(&record, value);
                if is_of_layer && is_listed && keep(value) {
                    let value = value.clone();
                    found.push((record, value));
                }
            }
            if is_last {
                return Ok((found, None));
            }
        }
        Ok((found, last))
    }

    async fn listed(
        &self,
        found: Vec<(CandidateRecord, DomainRuleValue)>,
        rules: &HashMap<String, RulesOfName<()>>,
    ) -> Result<Vec<ListedRule>, Error> {
        let ids: Vec<_> = found.iter().map(|(record, _)| record.candidate.id).collect();
        let mut decisions = self.graph().decisions(&ids).await?;
        let said: Vec<_> = decisions
            .values()
            .filter_map(|decision| decision.feedback)
            .collect();
        let reporters = if said.is_empty() {
            HashMap::new()
        } else {
            self.database.reporters(&said).await?
        };
        let listed = found.into_iter().map(|(record, value)| {
            let decision = decisions.remove(&record.candidate.id);
            let of_feedback = decision.as_ref().filter(|decision| decision.feedback.is_some());
            let said = of_feedback.map(|decision| decision.reason.clone());
            let actor = decision.as_ref().and_then(|decision| decision.actor.clone());
            let mut actor = actor.unwrap_or_else(|| record.kept.decided_by.clone());
            let reporter = of_feedback.and_then(|decision| reporters.get(&decision.feedback?));
            // As in the log: a correction is its reporter's, whose name is kept with the correction alone.
            if let Some(reporter) = reporter.filter(|_| actor.on_behalf_of.is_empty()) {
                actor.on_behalf_of.clone_from(reporter);
            }
            let decided = deciding(record.key.key.as_str(), Layers::All, |name| rules.get(name));
            ListedRule {
                effective: decided
                    .map_or_else(Default::default, |decided| (decided.level, Some(decided.layer))),
                reason: said.unwrap_or_else(|| record.candidate.decision_reason.clone().unwrap_or_default()),
                actor,
                record,
                value,
                decision,
            }
        });
        Ok(listed.collect())
    }

    async fn blocked(
        &self,
        namespace: &Namespace,
        rule: ListedRule,
        original: TrustLevel,
    ) -> Result<BlockedDomain, Error> {
        let evidence = self.graph();
        let (mut reason, mut contradicting) = (rule.reason.clone(), Vec::new());
        if let Some(RuleCause { found, claim_id }) = &rule.value.cause {
            let verified = evidence
                .supported_claims(namespace, rule.pattern(), CONTRADICTING)
                .await?;
            reason = match found {
                Finding::RejectedShare => {
                    let stored = evidence.stored_namespace_policy(namespace).await?;
                    let percent = stored.policy.blocking.rejected_percent();
                    format!(
                        "more than {percent} % of its claims are rejected ({} of {})",
                        verified.rejected, verified.claims
                    )
                }
                Finding::DangerousPattern => {
                    let patterns = evidence.dangerous_patterns(namespace, claim_id).await?;
                    format!(
                        "the claim {claim_id} has a dangerous pattern: {}",
                        patterns.join(", ")
                    )
                }
                Finding::IndependentSupport => reason,
            };
            contradicting = verified.rejected_ids;
        }
        let since = rule
            .decision
            .as_ref()
            .and_then(|decision| decision.in_force_since);
        Ok(BlockedDomain {
            since: since.unwrap_or(rule.record.kept.created_at),
            reason,
            contradicting,
            original,
            rule,
        })
    }
}

fn is_active(record: &CandidateRecord, value: &DomainRuleValue) -> bool {
    record.candidate.status == Status::Applied && value.rule != DomainRule::Clear
}

fn layer(record: &CandidateRecord) -> Option<Layer> {
    Layer::parse(&record.key.qualifier).ok()
}

/// Whether no other rule comes before this one for what its pattern covers. Taken as a name, `*.example.org` is below
/// `example.org`, as all that it covers is.
fn decides(record: &CandidateRecord, rules: &HashMap<String, RulesOfName<()>>) -> bool {
    let pattern = record.key.key.as_str();
    deciding(pattern, Layers::All, |name| rules.get(name))
        .is_some_and(|decided| Some(decided.layer) == layer(record) && decided.covering.pattern() == pattern)
}

/// Rules of a name without those that block.
struct WithoutBlocks<'r>(&'r RulesOfName<()>);

impl RulesHere for WithoutBlocks<'_> {
    type With = ();

    fn rule(&self, place: Place) -> Option<(DomainRule, ())> {
        let rule = self.0.rule(place);
        rule.filter(|(rule, ())| *rule != DomainRule::Block)
    }
}

/// How far what a pattern covers would be trusted without blocks.
fn shown_level(pattern: &str, rules: &HashMap<String, RulesOfName<()>>) -> TrustLevel {
    let shown = deciding(pattern, Layers::All, |name| rules.get(name).map(WithoutBlocks));
    shown.map(|shown| shown.level).unwrap_or_default()
}
