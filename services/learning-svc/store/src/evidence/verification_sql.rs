//! What the system makes of claims and domains, in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    DomainRuleValue, Kind, Learned, Namespace,
    evidence::{ClaimStatus, ClaimsOfDomain, Layer},
    key_hash,
};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::SqlStore;
use crate::evidence::levels_sql::levels;
use crate::evidence::names_sql::push_names;
use crate::evidence::reads_sql::independent;
use crate::evidence::refresh_sql::MARK_DOMAINS;
use crate::evidence::refresh_sql::refresh;
use crate::work::Work;
use crate::{
    batches::batches,
    conflict,
    evidence::{
        Backlog, DerivationStore, Derivations, DomainFacts, NamespacePolicyWrite, Refreshed, StaleClaim,
        StaleDomain, StoredNamespacePolicy,
        rows::{DomainClaimsRow, NamespacePolicyRow, StaleClaimRow, StaleDomainRow},
    },
    integers::small,
    rows::At,
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl Derivations for Work {
    async fn refresh_levels(&mut self, limit: usize) -> Result<Option<Refreshed>> {
        refresh(self, limit).await
    }

    async fn mark_domains_of_policies(&mut self, limit: u32) -> Result<Option<u64>> {
        let mut query = Statement::new(
            "SELECT space, verify_after FROM evidence_spaces WHERE verify_after IS NOT NULL ORDER BY space LIMIT 1",
        );
        query.for_update();
        let Some((space, after)) = self.rows::<(i64, String)>(query).await?.pop() else {
            return Ok(None);
        };
        let mut domains: Vec<(i64, String)> = self.rows(domains_after(space, &after, limit)).await?;
        let last = domains.last().map(|(_, name)| name.clone());
        let is_done = domains.len() < limit as usize;
        domains.sort_unstable();
        let keys: Vec<i64> = domains.iter().map(|(domain, _)| *domain).collect();
        for keys in batches(&keys) {
            let mut query = Statement::new(MARK_DOMAINS);
            query.push_list(keys.iter().copied());
            query.push(" ORDER BY domain").for_update().push(")");
            self.run(query).await?;
        }
        let mut query = Statement::new("UPDATE evidence_spaces SET verify_after = ");
        query.push_bind(last.filter(|_| !is_done));
        query.push(" WHERE space = ").push_bind(space);
        self.run(query).await?;
        Ok(Some(keys.len() as u64))
    }

    async fn lock_stale_claims(&mut self, limit: u32) -> Result<Vec<StaleClaim>> {
        let rows: Vec<StaleClaimRow> = self.rows(stale_claims(limit)).await?;
        let keys: Vec<i64> = rows.iter().map(|row| row.claim).collect();
        let mut sources: HashMap<i64, i64> = HashMap::new();
        for keys in batches(&keys) {
            sources.extend(self.rows::<(i64, i64)>(independent(keys)).await?);
        }
        let claims = rows.into_iter().map(|row| {
            let supporting = sources.get(&row.claim).copied().unwrap_or(0);
            row.parse(supporting)
        });
        claims.collect()
    }

    async fn save_statuses(&mut self, statuses: &[(i64, ClaimStatus)]) -> Result<()> {
        for statuses in batches(statuses) {
            let mut query =
                Statement::new("UPDATE evidence_claims SET status = written.column2, stale = 0 FROM (");
            query.push_values(statuses, |mut row, (claim, status)| {
                row.push_bind(*claim).push_bind(status.number());
            });
            query.push(") AS written WHERE evidence_claims.claim = written.column1");
            self.run(query).await?;
            let claims: Vec<i64> = statuses.iter().map(|(claim, _)| *claim).collect();
            self.run(mark_domains_of_claims(&claims)).await?;
        }
        Ok(())
    }

    async fn lock_stale_domains(&mut self, after: i64, limit: u32) -> Result<Vec<StaleDomain>> {
        let rows: Vec<StaleDomainRow> = self.rows(stale_domains(after, limit)).await?;
        let domains = rows.into_iter().map(StaleDomainRow::parse);
        let mut domains = domains.collect::<Result<Vec<_>>>()?;
        let other = domains
            .iter()
            .position(|domain| domain.namespace != domains[0].namespace);
        domains.truncate(other.unwrap_or(domains.len()));
        Ok(domains)
    }

    async fn lock_space_and_domains(&mut self, domains: &[StaleDomain]) -> Result<Vec<StaleDomain>> {
        let mut locked = Vec::with_capacity(domains.len());
        let Some(first) = domains.first() else {
            return Ok(locked);
        };
        let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE namespace = ");
        query.push_bind(first.namespace.as_str()).for_update();
        self.rows::<(i64,)>(query).await?;
        let keys: Vec<i64> = domains.iter().map(|domain| domain.domain).collect();
        for keys in batches(&keys) {
            let mut query = Statement::new(STALE_DOMAINS);
            query.push(" AND domain IN ");
            query.push_list(keys.iter().copied());
            query.push(" ORDER BY domain").for_update();
            for row in self.rows::<StaleDomainRow>(query).await? {
                locked.push(row.parse()?);
            }
        }
        Ok(locked)
    }

    async fn domain_facts(&mut self, domains: &[StaleDomain]) -> Result<Vec<DomainFacts>> {
        let Some(StaleDomain { namespace, .. }) = domains.first() else {
            return Ok(Vec::new());
        };
        let mut claims: HashMap<i64, ClaimsOfDomain> = HashMap::new();
        let keys: Vec<i64> = domains.iter().map(|domain| domain.domain).collect();
        for keys in batches(&keys) {
            for row in self.rows::<DomainClaimsRow>(claims_of_domains(keys)).await? {
                claims.insert(row.domain, row.parse()?);
            }
            for (domain, claim) in self.rows::<(i64, String)>(dangerous_of_domains(keys)).await? {
                claims.entry(domain).or_default().dangerous = Some(claim);
            }
        }
        let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
        let mut rules = self.verified_rules(namespace, &names).await?;
        let levels = levels(self, namespace, &names).await?;
        let facts = domains.iter().map(|domain| {
            let level = levels.get(&domain.name).copied().unwrap_or_default();
            DomainFacts {
                claims: claims.remove(&domain.domain).unwrap_or_default(),
                level: level.set_level,
                is_set: matches!(level.layer, Some(Layer::Human | Layer::File)),
                rule: rules.remove(&domain.name),
            }
        });
        Ok(facts.collect())
    }

    async fn settle_domains(&mut self, domains: &[i64]) -> Result<()> {
        for domains in batches(domains) {
            let mut query = Statement::new("UPDATE evidence_domains SET stale = 0 WHERE domain IN ");
            query.push_list(domains.iter().copied());
            self.run(query).await?;
        }
        Ok(())
    }

    async fn namespace_policy(&mut self, namespace: &Namespace) -> Result<StoredNamespacePolicy> {
        or_default(self.rows(newest_policy(namespace)).await?.pop())
    }

    async fn save_namespace_policy(&mut self, write: &NamespacePolicyWrite) -> Result<()> {
        let mut query = Statement::new(
            "INSERT INTO namespace_policies (namespace, version, combining, min_claims, rejected_permille, caller, \
             on_behalf_of, reason, updated_at) ",
        );
        query.push_values([write], |mut row, write| {
            row.push_bind(write.namespace.as_str())
                .push_bind(write.policy.version)
                .push_bind(write.policy.combining.number())
                .push_bind(small(write.policy.blocking.min_claims()))
                .push_bind(small(write.policy.blocking.rejected_permille()))
                .push_bind(write.actor.caller.as_str())
                .push_bind(write.actor.on_behalf_of.as_str())
                .push_bind(write.reason.as_str())
                .push_bind(write.updated_at.as_microsecond());
        });
        query.push(" ON CONFLICT (namespace, version) DO NOTHING");
        if self.run(query).await? == 0 {
            return Err(conflict("another update stored this version of the policy"));
        }
        // Also where there is no evidence yet: an upsert under way may be adding the first of it.
        let mut query =
            Statement::new("INSERT INTO evidence_spaces (namespace, rules, verify_after) VALUES (");
        query.push_bind(write.namespace.as_str());
        query.push(", 0, '') ON CONFLICT (namespace) DO UPDATE SET verify_after = excluded.verify_after");
        self.run(query).await?;
        Ok(())
    }
}

impl Work {
    /// The verified rules in force for these patterns.
    async fn verified_rules(
        &mut self,
        namespace: &Namespace,
        names: &[&str],
    ) -> Result<HashMap<String, DomainRuleValue>> {
        let mut rules = HashMap::new();
        for names in batches(names) {
            let mut query = Statement::new(
                "SELECT c.key, r.value FROM contests AS c JOIN resources AS r ON r.contest = c.contest \
                 WHERE c.namespace = ",
            );
            query.push_bind(namespace.as_str());
            query.push(" AND c.kind = ").push_bind(Kind::DomainRule.number());
            query
                .push(" AND c.qualifier = ")
                .push_bind(Layer::Verified.name());
            query.push(" AND c.key_hash IN ");
            query.push_list(names.iter().map(|name| key_hash(name)));
            query.push(" AND c.key IN ");
            push_names(&mut query, names.iter().copied());
            for (key, value) in self.rows::<(String, Vec<u8>)>(query).await? {
                let at = At {
                    table: "resources",
                    id: &key,
                };
                match at.value("value", &value)?.learned {
                    Learned::DomainRule(rule) => rules.insert(key, rule),
                    other => {
                        return Err(at.corrupt("value", format_args!("is no domain rule: {}", other.kind())));
                    }
                };
            }
        }
        Ok(rules)
    }
}

#[async_trait]
impl DerivationStore for SqlStore {
    async fn backlog(&self, limit: u32) -> Result<Backlog> {
        let mut counts = Vec::with_capacity(3);
        for marked in [
            "evidence_stale_names",
            "evidence_claims WHERE stale = 1",
            "evidence_domains WHERE stale = 1",
        ] {
            let mut query = Statement::new("SELECT COUNT(*) FROM (SELECT 1 FROM ");
            query.push(marked).push(" LIMIT ");
            query.push_limit(limit);
            query.push(") AS found");
            let counted = self
                .rows::<(i64,)>(query)
                .await?
                .pop()
                .map_or(0, |(count,)| count);
            counts.push(u64::try_from(counted).unwrap_or(0));
        }
        Ok(Backlog {
            names: counts[0],
            claims: counts[1],
            domains: counts[2],
        })
    }

    async fn stored_namespace_policy(&self, namespace: &Namespace) -> Result<StoredNamespacePolicy> {
        or_default(self.rows(newest_policy(namespace)).await?.pop())
    }
}

fn newest_policy(namespace: &Namespace) -> Statement {
    let mut query = Statement::new(
        "SELECT namespace, version, combining, min_claims, rejected_permille, updated_at FROM namespace_policies \
         WHERE namespace = ",
    );
    query.push_bind(namespace.as_str());
    query.push(" ORDER BY version DESC LIMIT 1");
    query
}

fn or_default(row: Option<NamespacePolicyRow>) -> Result<StoredNamespacePolicy> {
    row.map_or_else(|| Ok(StoredNamespacePolicy::default()), |row| row.parse())
}

pub(crate) fn stale_claims(limit: u32) -> Statement {
    let mut query = Statement::new(
        "SELECT claim, ruled, CASE WHEN patterns = '[]' THEN 0 ELSE 1 END AS dangerous FROM evidence_claims \
         WHERE stale = 1 ORDER BY claim LIMIT ",
    );
    query.push_limit(limit);
    query.for_update();
    query
}

const STALE_DOMAINS: &str = "SELECT domain, name, (SELECT s.namespace FROM evidence_spaces AS s \
     WHERE s.space = evidence_domains.space) AS namespace FROM evidence_domains WHERE stale = 1";

pub(crate) fn stale_domains(after: i64, limit: u32) -> Statement {
    let mut query = Statement::new(STALE_DOMAINS);
    query.push(" AND domain > ").push_bind(after);
    query.push(" ORDER BY domain LIMIT ");
    query.push_limit(limit);
    query.for_update();
    query
}

pub(crate) fn domains_after(space: i64, name: &str, limit: u32) -> Statement {
    let mut query = Statement::new("SELECT domain, name FROM evidence_domains WHERE space = ");
    query.push_bind(space);
    query.push(" AND name > ").push_bind(name.to_owned());
    query.push(" ORDER BY name LIMIT ");
    query.push_limit(limit);
    query
}

pub(crate) fn mark_domains_of_claims(claims: &[i64]) -> Statement {
    let mut query = Statement::new(MARK_DOMAINS);
    query.push(
        "(SELECT h.domain FROM evidence_edges AS e JOIN evidence_hosts AS h ON h.host = e.host \
         WHERE e.target_sort = 3 AND e.target IN ",
    );
    query.push_list(claims.iter().copied());
    query.push(
        " UNION SELECT h.domain FROM evidence_claims AS c JOIN evidence_hosts AS h ON h.host = c.host WHERE c.claim IN ",
    );
    query.push_list(claims.iter().copied());
    query.push(") ORDER BY domain").for_update().push(")");
    query
}

/// The claims that each domain supports, as its edges were corrected, each once. What is rejected is what `ClaimFacts` says.
pub(crate) fn claims_of_domains(domains: &[i64]) -> Statement {
    let mut query = Statement::new(
        "SELECT supported.domain, COUNT(*) AS claims, \
         CAST(SUM(CASE WHEN c.status = 3 THEN 1 ELSE 0 END) AS BIGINT) AS rejected, \
         MIN(CASE WHEN c.status = 2 THEN c.claim_id END) AS verified FROM \
         (SELECT DISTINCT h.domain, e.target FROM evidence_hosts AS h JOIN evidence_edges AS e ON e.host = h.host \
         WHERE e.relation = 1 AND e.target_sort = 3 AND h.domain IN ",
    );
    query.push_list(domains.iter().copied());
    query.push(
        ") AS supported JOIN evidence_claims AS c ON c.claim = supported.target GROUP BY supported.domain",
    );
    query
}

/// Of the dangerous claims that were found on pages of each domain the one with the least id. What is dangerous is what `ClaimFacts`
/// says.
pub(crate) fn dangerous_of_domains(domains: &[i64]) -> Statement {
    let mut query = Statement::new(
        "SELECT h.domain, MIN(c.claim_id) FROM evidence_hosts AS h CROSS JOIN evidence_claims AS c \
         WHERE c.host = h.host AND c.patterns <> '[]' AND c.ruled <> 2 AND h.domain IN ",
    );
    query.push_list(domains.iter().copied());
    query.push(" GROUP BY h.domain");
    query
}
