//! What is computed later than its cause: levels of hosts, statuses of claims, and what the system says of domains.
//!
//! What is to be computed is marked in the transaction of its cause, whose update of the mark locks the row, also where the row is
//! marked already. Who computes locks the marked row first, reads what it depends on with later statements, and takes the mark away
//! before it commits. At READ COMMITTED each of these statements sees all that was committed before it: so a cause that had marked the
//! row before it was locked is seen, and one that marks it later waits for the lock and marks it anew. No cause is lost.

use async_trait::async_trait;
use emend_core::{
    DomainRuleValue, Namespace,
    evidence::{ClaimFacts, ClaimStatus, ClaimsOfDomain, NamespacePolicy, TrustLevel},
};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::actor::Actor;

type Result<T> = std::result::Result<T, StoreError>;

/// What one step brought up to date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Names of which rules changed, and that are done.
    pub names: usize,
    /// Hosts below them.
    pub hosts: usize,
}

/// A claim whose status is to be computed anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleClaim {
    /// Its key within the database.
    pub claim: i64,
    /// What decides about it.
    pub facts: ClaimFacts,
}

/// A registrable domain about which the system is to decide anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleDomain {
    /// Its key within the database.
    pub domain: i64,
    /// The search application.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
}

/// What the system decides about a domain by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFacts {
    /// The claims that it supports.
    pub claims: ClaimsOfDomain,
    /// How far it is trusted without the verified layer.
    pub level: TrustLevel,
    /// Whether a rule of people or of the trust file covers it.
    pub is_set: bool,
    /// The verified rule that it has.
    pub rule: Option<DomainRuleValue>,
}

/// How much is to be computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Names of which rules changed.
    pub names: u64,
    /// Claims whose status is to be computed anew.
    pub claims: u64,
    /// Domains about which the system is to decide anew.
    pub domains: u64,
}

/// The policy of a namespace as stored; if never changed, the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredNamespacePolicy {
    /// The policy.
    pub policy: NamespacePolicy,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
}

/// The policy of a namespace, to store as the newest version.
#[derive(Debug, Clone)]
pub struct NamespacePolicyWrite {
    /// The search application.
    pub namespace: Namespace,
    /// The policy; its version is one above the newest.
    pub policy: NamespacePolicy,
    /// Who changed it.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// When it was changed, by the service's clock.
    pub updated_at: Timestamp,
}

/// What is computed later than its cause, in a unit of work. Locks are taken in the order: contests, spaces, claims, domains.
#[async_trait]
pub trait Derivations: Send {
    /// Brings the levels of at most `limit` hosts up to date below the names of one namespace whose rules changed first, and marks
    /// what depends on them. None: no name is left.
    async fn refresh_levels(&mut self, limit: usize) -> Result<Option<Refreshed>>;

    /// Marks the next domains of a namespace whose policy changed, at most `limit`. Returns how many; none: no such namespace is left.
    async fn mark_domains_of_policies(&mut self, limit: u32) -> Result<Option<u64>>;

    /// Locks claims that are marked, at most `limit`, and then reads what decides about them.
    async fn lock_stale_claims(&mut self, limit: u32) -> Result<Vec<StaleClaim>>;

    /// Gives locked claims their statuses, takes their marks away, and marks the domains that their edges lead from.
    async fn save_statuses(&mut self, statuses: &[(i64, ClaimStatus)]) -> Result<()>;

    /// Locks domains of one namespace that are marked, after the key `after`, at most `limit`.
    async fn lock_stale_domains(&mut self, after: i64, limit: u32) -> Result<Vec<StaleDomain>>;

    /// Locks a namespace, so that no rule about its domains changes before the end, and then those of these domains that are still
    /// marked.
    async fn lock_space_and_domains(&mut self, domains: &[StaleDomain]) -> Result<Vec<StaleDomain>>;

    /// What the system decides by about these domains of one namespace, in the same order.
    async fn domain_facts(&mut self, domains: &[StaleDomain]) -> Result<Vec<DomainFacts>>;

    /// Takes the marks of locked domains away.
    async fn settle_domains(&mut self, domains: &[i64]) -> Result<()>;

    /// The policy of a namespace in force.
    async fn namespace_policy(&mut self, namespace: &Namespace) -> Result<StoredNamespacePolicy>;

    /// Stores a new version, and notes that the namespace's domains are to be marked; a conflict if it is already stored.
    async fn save_namespace_policy(&mut self, policy: &NamespacePolicyWrite) -> Result<()>;
}

/// What is computed later than its cause, outside units of work.
#[async_trait]
pub trait DerivationStore: Send + Sync {
    /// How much is to be computed; of each at most `limit` are counted.
    async fn backlog(&self, limit: u32) -> Result<Backlog>;

    /// The policy of a namespace in force.
    async fn stored_namespace_policy(&self, namespace: &Namespace) -> Result<StoredNamespacePolicy>;
}
