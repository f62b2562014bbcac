//! What is said of sources and claims: patterns of domains, levels of trust and whose decision is in force; how far evidence
//! speaks for a claim, and what people say of its edges.

mod citations;
mod confidence;
mod domain_rule;
mod identity;
mod layers;
mod node;
mod pattern;
mod policy;
mod relation;
mod rules;
mod sources;
mod trust;
mod trust_file;
mod verification;
mod works;

pub use self::{
    citations::{DEFAULT_BEST, MAX_BEST, RankedPaper, Ranking, RelatedPaper, parse_best, rank},
    confidence::{Combining, Confidence, Evidence, EvidenceEdge, Verdict, Weight, combine},
    domain_rule::{DomainDecision, DomainRule, DomainRuleValue, Finding, RuleCause},
    identity::{WorkId, leads_elsewhere, registrable_domain},
    layers::{Decided, Layer, Layers, Place, RulesHere, deciding},
    node::{EvidenceId, NodeRef, NodeType},
    pattern::{DomainPattern, Suffix, host, suffixes},
    policy::NamespacePolicy,
    relation::{EdgeLabels, EdgeRelation, LabelCorrection, Split},
    rules::{Covering, RulesOfName},
    sources::SourceKey,
    trust::TrustLevel,
    trust_file::{MAX_DOMAINS, RuleChanges, TrustEntryFields, TrustFile, TrustFileFields},
    verification::{BlockingPolicy, ClaimFacts, ClaimRuling, ClaimStatus, ClaimsOfDomain, VERIFYING_SOURCES},
    works::joined,
};
