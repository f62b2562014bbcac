//! What was decided about sources, claims and edges.

use emend_binding::{
    Error, Node,
    answers::{Decided, Trust},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Lookup, MOST, few};

/// How far a source is trusted, and whether it must not be shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrustLookup")]
pub struct TrustIn {
    /// The host of the source.
    host: String,
}

/// How far a source is trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceTrust {
    /// `primary`, `government`, `academic`, `trusted`, `low`, `unverified` (also where nothing was decided) or `blocked`.
    level: &'static str,
    /// What a result from it weighs in a ranking, 0.0 to 1.0.
    weight: f64,
    /// It must not be shown.
    blocked: bool,
    /// The pattern of domains whose rule decided; empty: none did.
    pattern: String,
    /// Who made the rule; empty: there is none.
    layer: &'static str,
    /// What it decided; empty: there is none.
    decision: &'static str,
    /// The revision that applied the rule; none: there is no rule.
    learned_at_revision: Option<i64>,
}

impl From<Trust> for SourceTrust {
    fn from(trust: Trust) -> Self {
        Self {
            level: trust.level,
            weight: trust.weight,
            blocked: trust.blocked,
            pattern: trust.pattern,
            layer: trust.layer,
            decision: trust.decision,
            learned_at_revision: (trust.revision > 0).then_some(trust.revision),
        }
    }
}

impl Lookup for TrustIn {
    type Answer = SourceTrust;

    const NAME: &str = "trust";

    fn answer(self, node: &Node, namespace: &str) -> Result<SourceTrust, Error> {
        node.trust(namespace, &self.host).map(SourceTrust::from)
    }
}

/// Whether a source must not be shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BlockedLookup")]
pub struct BlockedIn {
    /// The host of the source.
    host: String,
}

/// Whether a source must not be shown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Blocked {
    /// It must not be shown.
    blocked: bool,
}

impl Lookup for BlockedIn {
    type Answer = Blocked;

    const NAME: &str = "blocked";

    fn answer(self, node: &Node, namespace: &str) -> Result<Blocked, Error> {
        let blocked = node.is_blocked(namespace, &self.host)?;
        Ok(Blocked { blocked })
    }
}

/// Results in the order of their scores, weighed by how far their sources are trusted, without blocked ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RankLookup")]
pub struct Rank {
    /// The results of the search.
    #[schemars(length(max = MOST))]
    results: Vec<Scored>,
}

/// A result of a search.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scored {
    /// Whatever the caller knows it by.
    id: Value,
    /// The host of its source.
    host: String,
    /// What the search gave it.
    score: f64,
}

/// Ranked results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ranked {
    /// The best first.
    results: Vec<Scored>,
}

impl Lookup for Rank {
    type Answer = Ranked;

    const NAME: &str = "rank";

    fn answer(self, node: &Node, namespace: &str) -> Result<Ranked, Error> {
        few("results", self.results.len())?;
        let results = self
            .results
            .into_iter()
            .map(|result| (result.id, result.host, result.score));
        let ranked = node.rank(namespace, results)?;
        let results = ranked
            .into_iter()
            .map(|(id, host, score)| Scored { id, host, score });
        Ok(Ranked {
            results: results.collect(),
        })
    }
}

/// What people decided about a claim.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClaimLookup")]
pub struct ClaimOf {
    /// The claim's id.
    claim_id: String,
}

/// What people decided, if anything.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Decision {
    /// None: nobody decided.
    decided: Option<Decided>,
}

impl Lookup for ClaimOf {
    type Answer = Decision;

    const NAME: &str = "claim";

    fn answer(self, node: &Node, namespace: &str) -> Result<Decision, Error> {
        let decided = node.claim_state(namespace, &self.claim_id)?;
        Ok(Decision { decided })
    }
}

/// The label that a person gave an edge.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EdgeLookup")]
pub struct EdgeOf {
    /// The edge's id.
    edge_id: String,
}

impl Lookup for EdgeOf {
    type Answer = Decision;

    const NAME: &str = "edge";

    fn answer(self, node: &Node, namespace: &str) -> Result<Decision, Error> {
        let decided = node.edge_label(namespace, &self.edge_id)?;
        Ok(Decision { decided })
    }
}
