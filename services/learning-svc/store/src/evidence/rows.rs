//! Rows of the evidence graph.

use emend_core::{
    DomainRule, FeedbackId, Learned, Namespace,
    evidence::{
        BlockingPolicy, ClaimFacts, ClaimRuling, ClaimStatus, ClaimsOfDomain, Combining, EdgeRelation,
        Evidence, EvidenceId, Layer, NamespacePolicy, NodeRef, NodeType, TrustLevel,
    },
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{ClaimRecord, EdgeRecord, HostRecord, Readings, StaleClaim, StaleDomain, StoredNamespacePolicy};
use crate::rows::At;

/// A host's name with its labels in reverse, so that all names below one are together; and back again.
pub(crate) fn reversed(name: &str) -> String {
    let labels: Vec<&str> = name.rsplit('.').collect();
    labels.join(".")
}

/// How far a host is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostLevel {
    /// By all layers.
    pub level: TrustLevel,
    /// By the layers human and file only.
    pub set_level: TrustLevel,
    /// The layer that decided.
    pub layer: Option<Layer>,
}

impl HostLevel {
    /// The layer by its number: 0 none, 1 human, 2 file, 3 verified.
    pub(crate) fn layer_number(self) -> i32 {
        match self.layer {
            None => 0,
            Some(Layer::Human) => 1,
            Some(Layer::File) => 2,
            Some(Layer::Verified) => 3,
        }
    }
}

/// A rule in force about a pattern of domains.
#[derive(Debug, FromRow)]
pub(crate) struct DomainRuleRow {
    pub key: String,
    pub qualifier: String,
    pub value: Vec<u8>,
}

impl DomainRuleRow {
    pub(crate) fn parse(self) -> Result<(String, Layer, DomainRule), StoreError> {
        let at = At {
            table: "resources",
            id: &self.key,
        };
        let layer = at.parse("qualifier", Layer::parse(&self.qualifier))?;
        match at.value("value", &self.value)?.learned {
            Learned::DomainRule(value) => Ok((self.key, layer, value.rule)),
            other => Err(at.corrupt("value", format_args!("is no domain rule: {}", other.kind()))),
        }
    }
}

/// A host, and how far it is trusted as stored.
#[derive(Debug, FromRow)]
pub(crate) struct HostRow {
    pub host: i64,
    pub reversed: String,
    pub domain: i64,
    pub level: i32,
    pub set_level: i32,
    pub layer: i32,
}

impl HostRow {
    pub(crate) fn level(&self) -> Result<HostLevel, StoreError> {
        let at = At {
            table: "evidence_hosts",
            id: &self.host,
        };
        let level = |column, number| at.known(column, number, TrustLevel::from_number(number));
        Ok(HostLevel {
            level: level("level", self.level)?,
            set_level: level("set_level", self.set_level)?,
            layer: match self.layer {
                0 => None,
                number => {
                    let layer = usize::try_from(number - 1)
                        .ok()
                        .and_then(|index| Layer::ALL.get(index));
                    Some(*at.known("layer", number, layer)?)
                }
            },
        })
    }
}

/// A name of which rules changed.
#[derive(Debug, FromRow)]
pub(crate) struct StaleNameRow {
    pub stale: i64,
    pub reversed: String,
    pub done: String,
}

/// What people decided about a claim.
fn claim_ruling(at: At<'_>, ruled: i32) -> Result<Option<ClaimRuling>, StoreError> {
    match ruled {
        0 => Ok(None),
        1 => Ok(Some(ClaimRuling::Rejected)),
        2 => Ok(Some(ClaimRuling::Restored)),
        other => Err(at.corrupt("ruled", format_args!("unknown: {other}"))),
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct StaleClaimRow {
    pub claim: i64,
    pub ruled: i32,
    pub dangerous: i32,
}

impl StaleClaimRow {
    pub(crate) fn parse(self, supporting_sources: i64) -> Result<StaleClaim, StoreError> {
        let at = At {
            table: "evidence_claims",
            id: &self.claim,
        };
        Ok(StaleClaim {
            claim: self.claim,
            facts: ClaimFacts {
                ruling: claim_ruling(at, self.ruled)?,
                has_dangerous_pattern: self.dangerous != 0,
                supporting_sources: at.number("supporting_sources", supporting_sources)?,
            },
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct StaleDomainRow {
    pub domain: i64,
    pub name: String,
    pub namespace: String,
}

impl StaleDomainRow {
    pub(crate) fn parse(self) -> Result<StaleDomain, StoreError> {
        let at = At {
            table: "evidence_domains",
            id: &self.domain,
        };
        Ok(StaleDomain {
            domain: self.domain,
            namespace: at.parse("namespace", Namespace::parse(&self.namespace))?,
            name: self.name,
        })
    }
}

/// The claims that a domain supports.
#[derive(Debug, FromRow)]
pub(crate) struct DomainClaimsRow {
    pub domain: i64,
    pub claims: i64,
    pub rejected: i64,
    pub verified: Option<String>,
}

impl DomainClaimsRow {
    /// Without what was found on its pages.
    pub(crate) fn parse(self) -> Result<ClaimsOfDomain, StoreError> {
        let at = At {
            table: "evidence_domains",
            id: &self.domain,
        };
        Ok(ClaimsOfDomain {
            claims: at.number("claims", self.claims)?,
            rejected: at.number("rejected", self.rejected)?,
            dangerous: None,
            verified: self.verified,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct NamespacePolicyRow {
    pub namespace: String,
    pub version: i64,
    pub combining: i32,
    pub min_claims: i32,
    pub rejected_permille: i32,
    pub updated_at: i64,
}

impl NamespacePolicyRow {
    pub(crate) fn parse(&self) -> Result<StoredNamespacePolicy, StoreError> {
        let at = At {
            table: "namespace_policies",
            id: &self.namespace,
        };
        let blocking = BlockingPolicy::new(
            at.number("min_claims", self.min_claims)?,
            at.number("rejected_permille", self.rejected_permille)?,
        );
        Ok(StoredNamespacePolicy {
            policy: NamespacePolicy {
                version: self.version,
                combining: at.known(
                    "combining",
                    self.combining,
                    Combining::from_number(self.combining),
                )?,
                blocking: at.parse("min_claims", blocking)?,
            },
            updated_at: Some(at.time("updated_at", self.updated_at)?),
        })
    }
}

/// How many edges of one relation a claim has, and what they weigh.
#[derive(Debug, FromRow)]
pub(crate) struct SumRow {
    pub claim: i64,
    pub relation: i32,
    pub edges: i64,
    pub weight: i64,
}

impl SumRow {
    pub(crate) fn add_to(&self, evidence: &mut Evidence) -> Result<(), StoreError> {
        let at = At {
            table: "evidence_edges",
            id: &self.claim,
        };
        let (edges, weight) = (at.number("edges", self.edges)?, at.number("weight", self.weight)?);
        match at.known(
            "relation",
            self.relation,
            EdgeRelation::from_number(self.relation),
        )? {
            EdgeRelation::Supports => {
                evidence.supporting_count = edges;
                evidence.supports = weight;
            }
            EdgeRelation::Refutes => {
                evidence.refuting_count = edges;
                evidence.refutes = weight;
            }
            EdgeRelation::Neutral => evidence.neutral_count = edges,
            EdgeRelation::Cites => {}
        }
        Ok(())
    }
}

/// A host and its level, if there is one.
pub(super) fn host_record(
    at: At<'_>,
    column: &'static str,
    reversed_name: Option<&str>,
    level: Option<i32>,
) -> Result<Option<HostRecord>, StoreError> {
    let (Some(name), Some(level)) = (reversed_name, level) else {
        return Ok(None);
    };
    Ok(Some(HostRecord {
        name: reversed(name),
        level: at.known(column, level, TrustLevel::from_number(level))?,
    }))
}

#[derive(Debug, FromRow)]
pub(crate) struct ClaimRow {
    pub claim: i64,
    pub claim_id: String,
    pub text: String,
    pub adoption: i32,
    pub patterns: String,
    pub ruled: i32,
    pub status: i32,
    pub created_at: i64,
    pub updated_at: i64,
    pub task_id: Option<String>,
    pub page_id: Option<String>,
    pub reversed: Option<String>,
    pub level: Option<i32>,
}

impl ClaimRow {
    pub(crate) fn parse(
        self,
        evidence: Evidence,
        readings: Option<Readings>,
        independent_sources: i64,
    ) -> Result<ClaimRecord, StoreError> {
        let at = At {
            table: "evidence_claims",
            id: &self.claim_id,
        };
        at.known("status", self.status, ClaimStatus::from_number(self.status))?;
        let patterns: Vec<String> =
            serde_json::from_str(&self.patterns).map_err(|error| at.corrupt("patterns", error))?;
        let independent_sources = at.number("independent_sources", independent_sources)?;
        let facts = ClaimFacts {
            ruling: claim_ruling(at, self.ruled)?,
            has_dangerous_pattern: !patterns.is_empty(),
            supporting_sources: independent_sources,
        };
        Ok(ClaimRecord {
            id: at.parse("claim_id", EvidenceId::parse(&self.claim_id))?,
            source: host_record(at, "level", self.reversed.as_deref(), self.level)?,
            adopted: self.adoption == 1,
            patterns,
            ruled: self.ruled,
            // By the sources that are shown beside it: what is stored of a claim that is to be verified anew may be older.
            status: facts.status(),
            evidence,
            readings,
            independent_sources,
            created_at: at.time("created_at", self.created_at)?,
            updated_at: at.time("updated_at", self.updated_at)?,
            task: self.task_id.unwrap_or_default(),
            text: self.text,
            page: self.page_id.unwrap_or_default(),
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct EdgeRow {
    pub edge: i64,
    pub edge_id: String,
    pub given: i32,
    pub label: i32,
    pub confidence: Option<f64>,
    pub ruled: i32,
    pub ruled_at: i64,
    pub ruled_by: Option<Vec<u8>>,
    pub relation: i32,
    pub source_sort: i32,
    pub target_sort: i32,
    pub source_id: Option<String>,
    pub target_id: Option<String>,
    pub task_id: Option<String>,
    pub source_host: Option<String>,
    pub source_level: Option<i32>,
    pub target_host: Option<String>,
    pub target_level: Option<i32>,
    pub reason: Option<String>,
}

impl EdgeRow {
    pub(crate) fn parse(self) -> Result<EdgeRecord, StoreError> {
        let at = At {
            table: "evidence_edges",
            id: &self.edge_id,
        };
        let relation = |column, number| at.known(column, number, EdgeRelation::from_number(number));
        let said = |column, number| match number {
            0 => Ok(None),
            number => relation(column, number).map(Some),
        };
        let node = |column, sort: i32, id: &Option<String>| -> Result<NodeRef, StoreError> {
            let id = at.known(column, "none", id.as_ref())?;
            Ok(NodeRef {
                sort: at.known(column, sort, NodeType::from_number(sort))?,
                id: at.parse(column, EvidenceId::parse(id))?,
            })
        };
        let reviewed_by = self.ruled_by.as_deref().map(|id| at.uuid("ruled_by", id));
        Ok(EdgeRecord {
            id: at.parse("edge_id", EvidenceId::parse(&self.edge_id))?,
            given: relation("given", self.given)?,
            label: said("label", self.label)?,
            confidence: self.confidence,
            ruled: said("ruled", self.ruled)?,
            relation: relation("relation", self.relation)?,
            source: node("source", self.source_sort, &self.source_id)?,
            target: node("target", self.target_sort, &self.target_id)?,
            source_host: host_record(at, "source_level", self.source_host.as_deref(), self.source_level)?,
            target_host: host_record(at, "target_level", self.target_host.as_deref(), self.target_level)?,
            reviewed_at: (self.ruled != 0)
                .then(|| at.time("ruled_at", self.ruled_at))
                .transpose()?,
            reviewed_by: reviewed_by.transpose()?.map(FeedbackId),
            task: self.task_id.unwrap_or_default(),
            review_reason: self.reason.unwrap_or_default(),
        })
    }
}
