//! Trust files, and decisions about domains, in SQL.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use emend_core::{
    CandidateId, DomainRule, FeedbackId, Kind, Learned, Namespace, Status,
    evidence::{ClaimStatus, EdgeRelation, RulesOfName, TrustLevel},
};
use emend_store::StoreError;
use emend_store::sql::Statement;
use sqlx_macros::FromRow;

use crate::SqlStore;
use crate::database::bytes;
use crate::database::push_candidates;
use crate::evidence::levels_sql::add_rules;
use crate::evidence::levels_sql::of_patterns;
use crate::evidence::levels_sql::patterns_above;
use crate::work::Work;
use crate::{
    batches::batches,
    codes,
    evidence::{
        DecisionRecord, DomainDecisions, SupportedClaims, TrustFileRecord, TrustFileWrite, TrustFiles,
        rows::DomainRuleRow,
    },
    rows::{At, StoredId, actor},
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl TrustFiles for Work {
    async fn lock_trust_file(&mut self, namespace: &Namespace) -> Result<Option<TrustFileRecord>> {
        // Of several that begin at once all but one wait here for its commit. A row of version 0 is never committed.
        let mut query = Statement::new(
            "INSERT INTO trust_files (namespace, version, checksum, operation_id, applied_at) VALUES (",
        );
        query.push_bind(namespace.as_str()).push(", 0, 0, ");
        query
            .push_bind(Vec::<u8>::new())
            .push(", 0) ON CONFLICT (namespace) DO NOTHING");
        self.run(query).await?;
        let mut query = Statement::new("SELECT version, checksum FROM trust_files WHERE namespace = ");
        query.push_bind(namespace.as_str()).for_update();
        let found = self.rows::<(i64, i64)>(query).await?;
        let at = At {
            table: "trust_files",
            id: namespace,
        };
        let in_force = found.first().filter(|(version, _)| *version != 0);
        in_force
            .map(|(version, checksum)| {
                Ok(TrustFileRecord {
                    version: at.number("version", *version)?,
                    checksum: checksum.cast_unsigned(),
                })
            })
            .transpose()
    }

    async fn file_rules(&mut self, namespace: &Namespace) -> Result<BTreeMap<String, DomainRule>> {
        let rows = self.rows::<DomainRuleRow>(in_force_by_file(namespace)).await?;
        let rules = rows.into_iter().map(|row| {
            let (pattern, _, rule) = row.parse()?;
            Ok((pattern, rule))
        });
        rules.collect()
    }

    async fn save_trust_file(&mut self, namespace: &Namespace, file: &TrustFileWrite) -> Result<()> {
        let at = At {
            table: "trust_files",
            id: namespace,
        };
        let version: i64 = at.number("version", file.record.version)?;
        let mut query = Statement::new("UPDATE trust_files SET version = ");
        query.push_bind(version);
        query
            .push(", checksum = ")
            .push_bind(file.record.checksum.cast_signed());
        query.push(", operation_id = ").push_bind(bytes(file.operation.0));
        query.push(", applied_at = (SELECT now FROM database_clock) WHERE namespace = ");
        query.push_bind(namespace.as_str());
        self.run(query).await?;
        Ok(())
    }
}

/// The rules of the layer `file` that are in force. All decisions about domains that are in force are looked at.
pub(crate) fn in_force_by_file(namespace: &Namespace) -> Statement {
    let mut query = Statement::new(
        "SELECT c.key, c.qualifier, r.value FROM candidates AS n CROSS JOIN contests AS c CROSS JOIN resources AS r \
         WHERE n.namespace = ",
    );
    query.push_bind(namespace.as_str());
    query.push(" AND n.kind = ").push_bind(Kind::DomainRule.number());
    query
        .push(" AND n.status = ")
        .push_bind(codes::status(Status::Applied));
    query.push(" AND c.contest = n.contest AND c.qualifier = 'file' AND r.contest = n.contest");
    query
}

#[derive(Debug, FromRow)]
struct DecisionRow {
    candidate_id: Vec<u8>,
    feedback_id: Option<Vec<u8>>,
    reason: Option<String>,
    caller: Option<String>,
    on_behalf_of: Option<String>,
    committed_at: Option<i64>,
}

impl DecisionRow {
    fn parse(self) -> Result<(CandidateId, DecisionRecord)> {
        let at = At {
            table: "candidates",
            id: &StoredId(&self.candidate_id),
        };
        let feedback = self.feedback_id.as_deref().map(|id| at.uuid("feedback_id", id));
        let caller = self.caller.as_deref().map(|caller| {
            let on_behalf_of = self.on_behalf_of.as_deref().unwrap_or_default();
            actor(at, "caller", caller, on_behalf_of)
        });
        let since = self
            .committed_at
            .map(|at_micros| at.time("committed_at", at_micros));
        let record = DecisionRecord {
            feedback: feedback.transpose()?.map(FeedbackId),
            reason: self.reason.unwrap_or_default(),
            actor: caller.transpose()?,
            in_force_since: since.transpose()?,
        };
        Ok((CandidateId(at.uuid("candidate_id", &self.candidate_id)?), record))
    }
}

/// What is stored of these decisions. A ruling has the accept order of its ballot.
pub(crate) fn decisions(candidates: &[CandidateId]) -> Statement {
    let mut query = Statement::new(
        "SELECT k.candidate_id, b.feedback_id, d.reason, t.caller, t.on_behalf_of, r.committed_at FROM candidates AS k \
         LEFT JOIN ballots AS b ON b.contest = k.contest AND b.retracted IN (0, 1) AND b.accept_order = k.ruling_order \
         AND b.candidate_id = k.candidate_id LEFT JOIN ballot_details AS d ON d.feedback_id = b.feedback_id \
         LEFT JOIN transitions AS t ON t.candidate = k.candidate AND t.sequence = 0 \
         LEFT JOIN resources AS r ON r.contest = k.contest WHERE ",
    );
    push_candidates(&mut query, candidates.iter().copied());
    query
}

/// The effective rulings before these, the newest first.
pub(crate) fn rulings_before(candidates: &[CandidateId]) -> Statement {
    let mut query = Statement::new(
        "SELECT k.candidate_id, e.value FROM candidates AS k JOIN candidates AS e ON e.contest = k.contest \
         WHERE e.ruling_order < k.ruling_order AND e.ruling_taken_back < 2 AND (e.hold = '' OR e.ruling_approved = 1) \
         AND e.status <> ",
    );
    query.push_bind(codes::status(Status::Rejected));
    query.push(" AND ");
    push_candidates(&mut query, candidates.iter().copied());
    query.push(" ORDER BY e.ruling_order DESC");
    query
}

/// From the claims `c` that a registrable domain supports.
fn push_supported(query: &mut Statement, namespace: &Namespace, domain: &str) {
    query.push(
        " FROM evidence_spaces AS s JOIN evidence_domains AS d ON d.space = s.space \
         JOIN evidence_hosts AS h ON h.domain = d.domain JOIN evidence_edges AS e ON e.host = h.host \
         JOIN evidence_claims AS c ON c.claim = e.target WHERE e.target_sort = 3 AND s.namespace = ",
    );
    query.push_bind(namespace.as_str());
    query.push(" AND d.name = ").push_bind(domain.to_owned());
    query
        .push(" AND e.relation = ")
        .push_bind(EdgeRelation::Supports.number());
}

/// How many claims a registrable domain supports, and how many of them are rejected.
pub(crate) fn count_supported(namespace: &Namespace, domain: &str) -> Statement {
    let mut query = Statement::new("SELECT COUNT(DISTINCT c.claim), COUNT(DISTINCT CASE WHEN c.status = ");
    query.push_bind(ClaimStatus::Rejected.number());
    query.push(" THEN c.claim END)");
    push_supported(&mut query, namespace, domain);
    query
}

#[async_trait]
impl DomainDecisions for SqlStore {
    async fn decisions(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, DecisionRecord>> {
        let mut found = HashMap::with_capacity(candidates.len());
        for candidates in batches(candidates) {
            for row in self.rows::<DecisionRow>(decisions(candidates)).await? {
                let (candidate, record) = row.parse()?;
                found.insert(candidate, record);
            }
        }
        Ok(found)
    }

    async fn levels_before(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, TrustLevel>> {
        let (mut levels, mut decided) = (HashMap::new(), HashSet::new());
        for candidates in batches(candidates) {
            for (id, value) in self
                .rows::<(Vec<u8>, Vec<u8>)>(rulings_before(candidates))
                .await?
            {
                let at = At {
                    table: "candidates",
                    id: &StoredId(&id),
                };
                let candidate = CandidateId(at.uuid("candidate_id", &id)?);
                let Learned::DomainRule(ruling) = at.value("value", &value)?.learned else {
                    return Err(at.corrupt("value", "is no domain rule"));
                };
                let is_last = ruling.rule == DomainRule::Clear || ruling.rule.level().is_some();
                if is_last && decided.insert(candidate) {
                    levels.extend(ruling.rule.level().map(|level| (candidate, level)));
                }
            }
        }
        Ok(levels)
    }

    async fn rules_above(
        &self,
        namespace: &Namespace,
        names: &[&str],
    ) -> Result<HashMap<String, RulesOfName<()>>> {
        let mut rules = HashMap::new();
        for hashes in batches(&patterns_above(names)) {
            add_rules(&mut rules, self.rows(of_patterns(namespace, hashes)).await?)?;
        }
        Ok(rules)
    }

    async fn supported_claims(
        &self,
        namespace: &Namespace,
        domain: &str,
        limit: u32,
    ) -> Result<SupportedClaims> {
        let counted = self
            .rows::<(i64, i64)>(count_supported(namespace, domain))
            .await?;
        let (claims, rejected) = counted.first().copied().unwrap_or_default();
        let mut query = Statement::new("SELECT DISTINCT c.claim_id");
        push_supported(&mut query, namespace, domain);
        query
            .push(" AND c.status = ")
            .push_bind(ClaimStatus::Rejected.number());
        query.push(" ORDER BY c.claim_id LIMIT ");
        query.push_limit(limit);
        let ids = self.rows::<(String,)>(query).await?;
        Ok(SupportedClaims {
            claims: claims.unsigned_abs(),
            rejected: rejected.unsigned_abs(),
            rejected_ids: ids.into_iter().map(|(id,)| id).collect(),
        })
    }

    async fn dangerous_patterns(&self, namespace: &Namespace, claim: &str) -> Result<Vec<String>> {
        let mut query = Statement::new(
            "SELECT c.patterns FROM evidence_spaces AS s JOIN evidence_claims AS c ON c.space = s.space \
             WHERE s.namespace = ",
        );
        query.push_bind(namespace.as_str());
        query.push(" AND c.claim_id = ").push_bind(claim.to_owned());
        let found = self.rows::<(String,)>(query).await?;
        let at = At {
            table: "evidence_claims",
            id: &claim,
        };
        found.first().map_or_else(
            || Ok(Vec::new()),
            |(patterns,)| serde_json::from_str(patterns).map_err(|error| at.corrupt("patterns", error)),
        )
    }

    async fn trust_versions(&self, limit: u32) -> Result<Vec<(Namespace, u64)>> {
        let mut query =
            Statement::new("SELECT namespace, version FROM trust_files ORDER BY namespace LIMIT ");
        query.push_limit(limit);
        let rows = self.rows::<(String, i64)>(query).await?;
        let parsed = rows.iter().map(|(namespace, version)| {
            let at = At {
                table: "trust_files",
                id: namespace,
            };
            let parsed = at.parse("namespace", Namespace::parse(namespace))?;
            Ok((parsed, at.number("version", *version)?))
        });
        parsed.collect()
    }
}
