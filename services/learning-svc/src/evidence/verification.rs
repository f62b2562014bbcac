//! What the system makes of the evidence: the status of claims, and the verified rules of domains. What is to be computed is
//! marked in the graph, and computed in batches; how no mark is lost is told with [`Derivations`](learning_store::evidence::Derivations).
//!
//! The rules themselves are the core's. A verified rule is decided in its contest like any other: by the system, with its cause.

use emend_base::Error;
use emend_core::{
    DomainRuleValue, Event, Kind, Learned, Origin, ResourceKey, ResourceValue, Revision,
    evidence::{BlockingPolicy, ClaimStatus, Layer},
};
use emend_store::StoreError;
use learning_store::{
    WholeUnit,
    evidence::{DomainFacts, StaleDomain},
};

use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution},
    evidence::Evidence,
    failure::{Failure, refused, subject},
};

/// Claims in one transaction.
const CLAIMS: u32 = 256;
/// Domains in one transaction. All their verified rules that change are one revision.
const DOMAINS: u32 = 256;

/// What one step over the domains came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// The key of the last domain tried; none at the end of a pass.
    pub last: Option<i64>,
    /// Domains that are up to date.
    pub settled: usize,
}

impl Evidence {
    /// Brings the statuses of the next batch of claims up to date, and marks the domains that it matters to. Returns how many claims.
    pub async fn verify_claims_once(&self) -> Result<usize, Error> {
        Ok(self.decisions.retry(|| self.try_verify_claims()).await?)
    }

    async fn try_verify_claims(&self) -> Result<usize, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let evidence = tx.evidence();
        let claims = evidence.lock_stale_claims(CLAIMS).await?;
        let statuses: Vec<(i64, ClaimStatus)> = claims
            .iter()
            .map(|claim| (claim.claim, claim.facts.status()))
            .collect();
        evidence.save_statuses(&statuses).await?;
        tx.commit().await?;
        Ok(statuses.len())
    }

    /// Decides about the next batch of domains of a pass, after the one with the key `after`; 0: from the first.
    pub async fn verify_domains_once(&self, after: i64) -> Result<Verified, Error> {
        let compared = self.decisions.retry(|| self.try_compare_domains(after)).await?;
        let Compared { last, settled, other } = compared;
        let mut verified = Verified { last, settled };
        if other.is_empty() {
            return Ok(verified);
        }
        match self.rule(&other).await {
            Ok(settled) => verified.settled += settled,
            Err(Failure::Store(error @ StoreError::Unavailable(_))) => return Err(error.into()),
            // One by one, so that those that can be decided are.
            Err(_) => {
                for domain in &other {
                    match self.rule(std::slice::from_ref(domain)).await {
                        Ok(settled) => verified.settled += settled,
                        Err(Failure::Store(error @ StoreError::Unavailable(_))) => return Err(error.into()),
                        Err(error) => {
                            let StaleDomain { namespace, name, .. } = domain;
                            tracing::error!(%namespace, domain = name, %error, "can't decide about a domain");
                        }
                    }
                }
            }
        }
        Ok(verified)
    }

    /// Takes the marks of those domains away whose verified rule is as it should be, without a lock on anything else.
    async fn try_compare_domains(&self, after: i64) -> Result<Compared, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let evidence = tx.evidence();
        let domains = evidence.lock_stale_domains(after, DOMAINS).await?;
        let last = domains.last().map(|stale| stale.domain);
        let wanted = wanted(&mut *tx, domains).await?;
        let (same, other): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(_, now, then)| now == then);
        let same: Vec<i64> = same.iter().map(|(stale, ..)| stale.domain).collect();
        tx.evidence().settle_domains(&same).await?;
        tx.commit().await?;
        Ok(Compared {
            last,
            settled: same.len(),
            other: other.into_iter().map(|(stale, ..)| stale).collect(),
        })
    }

    async fn rule(&self, domains: &[StaleDomain]) -> Result<usize, Failure> {
        let (settled, revision) = self.decisions.retry(|| self.try_rule(domains)).await?;
        if revision > Revision::default() {
            self.decisions.wake();
        }
        Ok(settled)
    }

    /// Gives domains of one namespace the verified rules that they should have now. Their contests are locked first, then the namespace,
    /// so that no rule of people or of the trust file changes meanwhile, then those that are still marked.
    async fn try_rule(&self, domains: &[StaleDomain]) -> Result<(usize, Revision), Failure> {
        let mut tx = self.database.begin_whole().await?;
        let keys = domains.iter().map(verified_key).collect::<Result<Vec<_>, _>>()?;
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        let evidence = tx.evidence();
        let locked = evidence.lock_space_and_domains(domains).await?;
        let attribution = Attribution::system();
        let wanted = wanted(&mut *tx, locked).await?;
        let settled: Vec<i64> = wanted.iter().map(|(stale, ..)| stale.domain).collect();
        for (domain, now, then) in wanted {
            if now == then {
                continue;
            }
            let key = verified_key(&domain)?;
            let event = match then {
                Some(rule) => Event::Put {
                    value: ResourceValue::of(Learned::DomainRule(rule)),
                    origin: Origin::Operator,
                    reason: None,
                },
                None => Event::Delete { reason: None },
            };
            unit.decide(key.contest_id(), &event, &attribution, RevisionChoice::Shared)
                .map_err(|refusal| refused(&refusal, &subject(&key)))?;
        }
        tx.evidence().settle_domains(&settled).await?;
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok((settled.len(), written.revisions.last()))
    }
}

/// Domains of one namespace that were compared.
struct Compared {
    last: Option<i64>,
    settled: usize,
    /// Those whose verified rule is another than it should be.
    other: Vec<StaleDomain>,
}

/// The verified rule that each of these domains has, and the one that it should have.
type Wanted = (StaleDomain, Option<DomainRuleValue>, Option<DomainRuleValue>);

async fn wanted(tx: &mut dyn WholeUnit, domains: Vec<StaleDomain>) -> Result<Vec<Wanted>, Failure> {
    let evidence = tx.evidence();
    let Some(first) = domains.first() else {
        return Ok(Vec::new());
    };
    let policy = evidence.namespace_policy(&first.namespace).await?.policy;
    let facts = evidence.domain_facts(&domains).await?;
    let wanted = domains.into_iter().zip(facts).map(|(domain, facts)| {
        let then = wanted_rule(&domain.name, &facts, policy.blocking);
        (domain, facts.rule, then)
    });
    Ok(wanted.collect())
}

fn wanted_rule(domain: &str, facts: &DomainFacts, policy: BlockingPolicy) -> Option<DomainRuleValue> {
    facts.claims.rule(domain, facts.level, facts.is_set, policy)
}

/// The key of the verified rule of a domain.
fn verified_key(domain: &StaleDomain) -> Result<ResourceKey, Error> {
    ResourceKey::parse(
        domain.namespace.as_str(),
        Some(Kind::DomainRule),
        &domain.name,
        Layer::Verified.name(),
        "",
    )
    .map_err(Error::from)
}
