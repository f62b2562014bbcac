//! What is stored of resources, what applies now: their values, and how many there are.

#[cfg(test)]
mod bulk_contract;
pub(crate) mod bulk_sql;
pub(crate) mod sql;
use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{Candidate, CandidateId, ContestId, ResourceKey, Revision};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::{
    contests::{KeptCandidate, TransitionWrite},
    policies::PolicyKey,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A resource to write.
#[derive(Debug, Clone)]
pub struct ResourceWrite {
    /// The resource.
    pub key: ResourceKey,
    /// The revision that gave it this value.
    pub revision: Revision,
    /// The encoded value; none: it is deleted.
    pub value: Option<Bytes>,
}

/// What a unit of work does to resources.
#[derive(Debug, Clone, Default)]
pub struct ResourceWrites {
    /// Inserted, replaced or deleted.
    pub resources: Vec<ResourceWrite>,
    /// By how much the number of resources changes.
    pub counts: BTreeMap<PolicyKey, i64>,
    /// The database's time under the head's lock, in microseconds since 1970.
    pub committed_at: i64,
}

/// Resources in a unit of work.
#[async_trait]
pub trait ResourceRepository: Send {
    /// How many resources there are.
    async fn counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>>;

    /// How many scopes, each a kind in a namespace, hold any resources.
    async fn scopes_in_use(&mut self) -> Result<u64>;

    /// Writes resources, under the head's lock. Returns the new number of resources for each key in `counts`.
    async fn save(&mut self, writes: &ResourceWrites) -> Result<HashMap<PolicyKey, u64>>;
}

/// A resource at a key of which nothing was known: what it has alone.
#[derive(Debug, Clone)]
pub struct FreshRow {
    /// The contest of its key.
    pub contest: ContestId,
    /// The key.
    pub key: ResourceKey,
    /// The candidate that applies.
    pub candidate: CandidateId,
    /// The encoded value.
    pub value: Bytes,
}

/// What all such resources of one kind have in common.
#[derive(Debug, Clone)]
pub struct FreshKind {
    /// The candidate of each of them, but for its id and its value.
    pub candidate: Candidate,
    /// What else is stored of it.
    pub kept: KeptCandidate,
    /// Its transitions, but for their candidate and their revision.
    pub transitions: Vec<TransitionWrite>,
}

/// Puts values, as a person's decisions, at keys of which nothing is known: in few statements for many.
#[async_trait]
pub trait BulkRepository: Send {
    /// Which of these contests there are.
    async fn known(&mut self, contests: &[ContestId]) -> Result<HashSet<ContestId>>;

    /// The database's time.
    async fn now(&mut self) -> Result<Timestamp>;

    /// Creates and locks the contests of `rows`, which must be in order of contest ids, as decided at `decided_at` by the
    /// database's clock and created at `created_at` by the service's. If one of them is there already, this is a
    /// [conflict](crate::conflict).
    async fn create(
        &mut self,
        rows: &[FreshRow],
        kinds: &HashMap<emend_core::Kind, FreshKind>,
        decided_at: Timestamp,
        created_at: Timestamp,
    ) -> Result<()>;

    /// Writes everything else of rows that were created, but the revisions themselves, under the head's lock. Each [`PER_REVISION`] rows are a
    /// revision, from `first` on, committed at `committed_at`.
    async fn save(
        &mut self,
        rows: &[FreshRow],
        kinds: &HashMap<emend_core::Kind, FreshKind>,
        first: Revision,
        committed_at: i64,
    ) -> Result<()>;
}

/// How many changes a revision of an import has at most.
pub const PER_REVISION: usize = 1_000;
