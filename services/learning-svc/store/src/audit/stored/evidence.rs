//! The port of audits of the evidence graph: its rows, and what they have to agree with.

use async_trait::async_trait;
use emend_core::{
    DomainRuleValue, FeedbackId, Kind, Learned, Namespace,
    evidence::{
        ClaimFacts, ClaimRuling, EdgeLabels, EdgeRelation, Layer, SourceKey, TrustLevel, VERIFYING_SOURCES,
        Weight,
    },
    kinds::ClaimState,
};
use emend_store::StoreError;
use futures::stream::BoxStream;
use sqlx_macros::FromRow;

use crate::{
    evidence::{
        known_rows::WorkPageRow,
        rows::{NamespacePolicyRow, reversed},
    },
    rows::At,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Something that does not agree with something else.
#[derive(Debug, FromRow)]
pub(crate) struct Stray {
    /// What it is: "claim", "edge"….
    pub(crate) what: String,
    /// Its key within the database.
    pub(crate) id: i64,
    /// What is wrong with it.
    pub(crate) wrong: String,
}

/// A claim's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedClaim {
    pub(crate) claim: i64,
    pub(crate) claim_id: String,
    /// None if its space does not exist.
    pub(crate) namespace: Option<String>,
    pub(crate) host: i64,
    /// The host of its page; 0: none.
    pub(crate) page_host: i64,
    pub(crate) patterns: String,
    pub(crate) ruled: i32,
    pub(crate) status: i32,
    pub(crate) stale: i32,
}

impl AuditedClaim {
    /// What decides about it but for its sources.
    pub(crate) fn facts(&self) -> ClaimFacts {
        claim_facts(self.ruled, &self.patterns)
    }
}

fn claim_facts(ruled: i32, patterns: &str) -> ClaimFacts {
    ClaimFacts {
        ruling: match ruled {
            1 => Some(ClaimRuling::Rejected),
            2 => Some(ClaimRuling::Restored),
            _ => None,
        },
        has_dangerous_pattern: patterns != "[]",
        supporting_sources: 0,
    }
}

/// An edge's row, and what its source gives.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedEdge {
    pub(crate) edge: i64,
    pub(crate) edge_id: String,
    /// None if its space does not exist.
    pub(crate) namespace: Option<String>,
    pub(crate) has_ends: i32,
    pub(crate) has_task: i32,
    pub(crate) page: i64,
    pub(crate) host: i64,
    /// The page of its source, and that page's host; 0: none.
    pub(crate) source_page: i64,
    pub(crate) source_host: i64,
    pub(crate) given: i32,
    pub(crate) label: i32,
    pub(crate) confidence: Option<f64>,
    pub(crate) ruled: i32,
    pub(crate) ruled_at: i64,
    pub(crate) ruled_by: Option<Vec<u8>>,
    pub(crate) model_weight: i32,
    pub(crate) relation: i32,
    pub(crate) weight: i32,
}

impl AuditedEdge {
    /// What the backend, its model and people say of it.
    pub(crate) fn labels(&self) -> Result<EdgeLabels> {
        let at = At {
            table: "evidence_edges",
            id: &self.edge_id,
        };
        let relation = |column, number| at.known(column, number, EdgeRelation::from_number(number));
        let said = |column, number| match number {
            0 => Ok(None),
            number => relation(column, number).map(Some),
        };
        let weight = self.confidence.map(Weight::parse);
        Ok(EdgeLabels {
            relation: relation("given", self.given)?,
            label: said("label", self.label)?,
            confidence: at.parse("confidence", weight.transpose())?,
            ruled: said("ruled", self.ruled)?,
        })
    }
}

/// What is in force of a claim or edge by its contest.
#[derive(Debug, FromRow)]
pub(crate) struct RulingInForce {
    pub(crate) namespace: String,
    pub(crate) key: String,
    value: Option<Vec<u8>>,
    ruling_order: Option<i64>,
    feedback_id: Option<Vec<u8>>,
}

/// What a contest gives for a claim or edge: the number of what is ruled, when, and by which feedback.
pub(crate) type Ruled = (i32, i64, Option<FeedbackId>);

impl RulingInForce {
    /// What it gives for the graph.
    pub(crate) fn ruled(&self) -> Result<Ruled> {
        let at = At {
            table: "resources",
            id: &self.key,
        };
        let value = self.value.as_deref().map(|value| at.value("value", value));
        let ruled = match value.transpose()?.map(|value| value.learned) {
            Some(Learned::ClaimState(claim)) => match claim {
                Some(ClaimState::Rejected(_)) => 1,
                Some(ClaimState::Restored) => 2,
                None => 0,
            },
            Some(Learned::EdgeLabel(label)) => label.map_or(0, |label| label.relation().number()),
            _ => 0,
        };
        if ruled == 0 {
            return Ok((0, 0, None));
        }
        let feedback = self.feedback_id.as_deref().map(|id| at.uuid("feedback_id", id));
        Ok((
            ruled,
            self.ruling_order.unwrap_or(0),
            feedback.transpose()?.map(FeedbackId),
        ))
    }
}

/// A source that supports a claim.
#[derive(Debug, FromRow)]
pub(crate) struct Supporting {
    pub(crate) claim: i64,
    page_id: String,
    work: i64,
    /// None: the page has no host.
    reversed: Option<String>,
    set_level: Option<i32>,
}

impl Supporting {
    /// Which independent source it is.
    pub(crate) fn source(&self) -> Result<SourceKey<i64>> {
        let at = At {
            table: "evidence_pages",
            id: &self.page_id,
        };
        let level = self
            .set_level
            .map(|level| at.known("set_level", level, TrustLevel::from_number(level)));
        Ok(SourceKey::of(
            &self.page_id,
            (self.work != 0).then_some(self.work),
            &self.reversed.as_deref().map(reversed).unwrap_or_default(),
            level.transpose()?.unwrap_or_default(),
        ))
    }
}

/// A work's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedWork {
    pub(crate) work: i64,
    pub(crate) pages: i64,
}

/// A host's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedHost {
    pub(crate) host: i64,
    pub(crate) namespace: Option<String>,
    reversed: String,
    pub(crate) level: i32,
    pub(crate) set_level: i32,
    pub(crate) layer: i32,
}

impl AuditedHost {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        reversed(&self.reversed)
    }
}

/// A registrable domain's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedDomain {
    pub(crate) domain: i64,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// Whether it is to be computed anew, also where that is noted of its namespace.
    pub(crate) stale: i32,
}

/// A claim that a domain supports.
#[derive(Debug, FromRow)]
pub(crate) struct SupportedClaim {
    pub(crate) domain: i64,
    pub(crate) claim_id: String,
    ruled: i32,
    patterns: String,
    pub(crate) is_verified: i32,
    pub(crate) stale: i32,
}

impl SupportedClaim {
    /// What decides about it. Whether it is verified is checked apart.
    pub(crate) fn facts(&self) -> ClaimFacts {
        ClaimFacts {
            supporting_sources: if self.is_verified == 0 {
                0
            } else {
                VERIFYING_SOURCES
            },
            ..claim_facts(self.ruled, &self.patterns)
        }
    }
}

/// A claim with a dangerous pattern that was found on a page of a domain.
#[derive(Debug, FromRow)]
pub(crate) struct FoundClaim {
    pub(crate) domain: i64,
    pub(crate) claim_id: String,
    ruled: i32,
    patterns: String,
    pub(crate) stale: i32,
}

impl FoundClaim {
    /// What decides about it but for its sources.
    pub(crate) fn facts(&self) -> ClaimFacts {
        claim_facts(self.ruled, &self.patterns)
    }
}

/// A decision in force about a pattern of domains.
#[derive(Debug, FromRow)]
pub(crate) struct RuleInForce {
    key: String,
    qualifier: String,
    value: Vec<u8>,
}

impl RuleInForce {
    /// The pattern, the layer, and what was decided.
    pub(crate) fn parse(self) -> Result<(String, Layer, DomainRuleValue)> {
        let at = At {
            table: "resources",
            id: &self.key,
        };
        let layer = at.parse("qualifier", Layer::parse(&self.qualifier))?;
        match at.value("value", &self.value)?.learned {
            Learned::DomainRule(value) => Ok((self.key, layer, value)),
            other => Err(at.corrupt("value", format_args!("is no domain rule: {}", other.kind()))),
        }
    }
}

/// The evidence graph, page by page by the keys of its rows; `after` is the last key of the page before.
#[async_trait]
pub(crate) trait AuditEvidence: Send {
    /// How many edges there are.
    async fn edge_count(&mut self) -> Result<u64>;

    /// Claims, at most `limit`.
    async fn claims_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedClaim>>;

    /// Edges, at most `limit`.
    async fn edges_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedEdge>>;

    /// What is in force of targets of a kind, of any namespace.
    async fn rulings_of(&mut self, kind: Kind, targets: &[&str]) -> Result<Vec<RulingInForce>>;

    /// What supports the claims in (after, through], by claim.
    fn supporting(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<Supporting>>;

    /// Works, at most `limit`.
    async fn works_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedWork>>;

    /// The pages of the works in (after, through], by work.
    fn pages_of_works(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<WorkPageRow>>;

    /// The ids that are stored of the works in (after, through], by work.
    fn ids_of_works(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<(i64, String)>>;

    /// Pages and ids that name a work that does not exist, or none where they need one; at most 1,000.
    async fn works_of_nothing(&mut self) -> Result<Vec<Stray>>;

    /// Names, as of namespaces, of which rules changed and whose hosts are not up to date.
    async fn stale_names(&mut self) -> Result<Vec<(String, String)>>;

    /// Hosts, at most `limit`.
    async fn hosts_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedHost>>;

    /// Registrable domains, at most `limit`.
    async fn domains_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedDomain>>;

    /// The policy of each namespace that has one.
    async fn namespace_policies(&mut self) -> Result<Vec<NamespacePolicyRow>>;

    /// The claims that the domains in (after, through] support, by domain, each once.
    fn supported_claims(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<SupportedClaim>>;

    /// The claims with dangerous patterns that were found on pages of the domains in (after, through], by domain.
    fn found_claims(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<FoundClaim>>;

    /// The rules in force of patterns.
    async fn rules_of(&mut self, namespace: &Namespace, patterns: &[String]) -> Result<Vec<RuleInForce>>;

    /// Rows that name others that do not exist; at most 1,000.
    async fn strays(&mut self) -> Result<Vec<Stray>>;

    /// Contests that say wrongly whether their target is known; at most 1,000.
    async fn wrong_targets(&mut self) -> Result<Vec<Stray>>;

    /// Events that name a contest or revision that does not exist; at most 1,000.
    async fn stray_events(&mut self) -> Result<Vec<Stray>>;

    /// Rulings in force and verified rules about what is not in the graph; at most 1,000.
    async fn rules_of_nothing(&mut self) -> Result<Vec<Stray>>;
}
