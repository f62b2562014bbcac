//! What is stored of trust files, and of decisions about domains.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use emend_core::{
    CandidateId, DomainRule, FeedbackId, Namespace, OperationId,
    evidence::{RulesOfName, TrustLevel},
};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::actor::Actor;

type Result<T> = std::result::Result<T, StoreError>;

/// The trust file that is in force in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustFileRecord {
    /// Its version, from 1.
    pub version: u64,
    /// XXH3-64 of its text.
    pub checksum: u64,
}

/// A trust file that comes into force in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustFileWrite {
    /// Its version and checksum.
    pub record: TrustFileRecord,
    /// The operation that its revisions belong to.
    pub operation: OperationId,
}

/// Trust files in a unit of work.
#[async_trait]
pub trait TrustFiles: Send {
    /// Locks the trust file of a namespace, before any contest, and returns the one in force; none if none was ever applied.
    async fn lock_trust_file(&mut self, namespace: &Namespace) -> Result<Option<TrustFileRecord>>;

    /// The rules of the layer `file` that are in force, by pattern.
    async fn file_rules(&mut self, namespace: &Namespace) -> Result<BTreeMap<String, DomainRule>>;

    /// Stores which trust file is in force. Its lock must be held.
    async fn save_trust_file(&mut self, namespace: &Namespace, file: &TrustFileWrite) -> Result<()>;
}

/// What is stored of a decision about a domain beyond the candidate that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRecord {
    /// The feedback that it is.
    pub feedback: Option<FeedbackId>,
    /// Why, as the feedback said; empty if not given or erased.
    pub reason: String,
    /// Who decided.
    pub actor: Option<Actor>,
    /// When what is in force in its contest came into force.
    pub in_force_since: Option<Timestamp>,
}

/// The claims that a domain supports, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SupportedClaims {
    /// How many there are.
    pub claims: u64,
    /// How many of them are rejected.
    pub rejected: u64,
    /// The ids of those that are rejected, in their order, as many as were asked for.
    pub rejected_ids: Vec<String>,
}

/// Decisions about domains outside units of work.
#[async_trait]
pub trait DomainDecisions: Send + Sync {
    /// What is stored of these decisions.
    async fn decisions(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, DecisionRecord>>;

    /// The levels that the rulings before these gave their patterns, where one did and none cleared it since.
    async fn levels_before(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, TrustLevel>>;

    /// The rules in force of all names that these names are at or below, by name.
    async fn rules_above(
        &self,
        namespace: &Namespace,
        names: &[&str],
    ) -> Result<HashMap<String, RulesOfName<()>>>;

    /// The claims that a registrable domain supports, and the ids of at most `limit` that are rejected.
    async fn supported_claims(
        &self,
        namespace: &Namespace,
        domain: &str,
        limit: u32,
    ) -> Result<SupportedClaims>;

    /// The names of dangerous patterns that came with a claim.
    async fn dangerous_patterns(&self, namespace: &Namespace, claim: &str) -> Result<Vec<String>>;

    /// The version of the trust file that is in force in each of at most `limit` namespaces.
    async fn trust_versions(&self, limit: u32) -> Result<Vec<(Namespace, u64)>>;
}
