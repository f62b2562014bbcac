//! What is stored of the evidence graph. Inside, nodes refer to each other by integer keys; what crosses these ports are the
//! backends' own ids.

pub(crate) mod deletes_sql;
mod derived;
#[cfg(test)]
mod derived_contract;
pub mod disagreements;
pub(crate) mod element_rows;
pub(crate) mod elements_sql;
pub(crate) mod events_sql;
pub(crate) mod exports_sql;
pub mod graph;
pub(crate) mod identities_sql;
pub(crate) mod known_rows;
pub(crate) mod levels_sql;
mod listing;
#[cfg(test)]
mod listing_contract;
pub(crate) mod listing_rows;
pub(crate) mod names_sql;
#[cfg(test)]
mod reads_contract;
pub(crate) mod reads_sql;
mod records;
pub(crate) mod refresh_sql;
pub(crate) mod replace_sql;
pub(crate) mod rows;
pub(crate) mod sql;
mod trust;
#[cfg(test)]
mod trust_contract;
pub(crate) mod trust_sql;
pub(crate) mod upsert_sql;
pub(crate) mod verification_sql;
#[cfg(test)]
mod works_contract;
pub(crate) mod works_sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    ContestId, Kind, Namespace, ResourceKey, Target,
    evidence::{Combining, EvidenceId, WorkId},
};
use emend_store::StoreError;

pub use self::{derived::*, listing::*, records::*, trust::*};
use crate::evidence::disagreements::Disagreement;
use crate::evidence::graph::{By, Deletion, ElementSort, Upsert, Upserted};

type Result<T> = std::result::Result<T, StoreError>;

/// A step of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteStep {
    /// Edges.
    Edges,
    /// Fragments without edges.
    Fragments,
    /// Claims without edges.
    Claims,
    /// Claims that were found on pages: they stay, without a page.
    ClaimsFound,
    /// Pages without any of these.
    Pages,
}

impl DeleteStep {
    /// What its elements are.
    pub const fn sort(self) -> ElementSort {
        match self {
            Self::Edges => ElementSort::Edge,
            Self::Fragments => ElementSort::Fragment,
            Self::Claims | Self::ClaimsFound => ElementSort::Claim,
            Self::Pages => ElementSort::Page,
        }
    }
}

/// Elements that one step of a deletion is about, with their keys within the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionBatch {
    /// The step.
    pub step: DeleteStep,
    /// Its elements.
    pub elements: Vec<(i64, EvidenceId)>,
}

/// The evidence graph in a unit of work.
#[async_trait]
pub trait EvidenceRepository: Derivations + TrustFiles + Send {
    /// Adds nodes and edges, or replaces what is known of them. The inner error is where the upsert disagrees with what is known;
    /// then nothing was written.
    async fn upsert(
        &mut self,
        upsert: &Upsert,
        replaced: Option<&By>,
    ) -> Result<std::result::Result<Upserted, Vec<Disagreement>>>;

    /// Deletes what of a batch is there and has nothing hanging on it; returns that. Contests of its claims or edges must be locked.
    async fn delete(
        &mut self,
        namespace: &Namespace,
        batch: &DeletionBatch,
        by: &By,
    ) -> Result<Vec<EvidenceId>>;
}

/// What decisions come to in the evidence graph, in a unit of work.
#[async_trait]
pub trait RulingRepository: Send {
    /// What is known of the claims and edges that these contests are about; nothing of a contest whose target is not known.
    async fn known_targets(&mut self, keys: &[&ResourceKey]) -> Result<HashMap<ContestId, Target>>;

    /// Writes what rulings say of claims and edges now.
    async fn save_rulings(&mut self, rulings: &[RulingWrite]) -> Result<()>;

    /// Notes that the rules of these patterns changed: the levels of hosts that they cover are brought up to date later.
    async fn note_rules(&mut self, changed: &[(Namespace, String)]) -> Result<()>;

    /// Writes events. Contests must be locked.
    async fn save_events(&mut self, events: &[EventWrite]) -> Result<()>;
}

/// The evidence graph outside units of work.
#[async_trait]
pub trait EvidenceStore: DerivationStore + DomainDecisions + EvidenceReads + Send + Sync {
    /// Contests that wait for one of these targets.
    async fn contests_without_target(
        &self,
        namespace: &Namespace,
        kind: Kind,
        targets: &[EvidenceId],
    ) -> Result<Vec<ResourceKey>>;

    /// Contests that wait for a target that is known, after `after`, at most `limit`.
    async fn contests_to_arrive(&self, after: Option<ContestId>, limit: u32) -> Result<Vec<ResourceKey>>;

    /// The next elements to delete, at most `limit`, what hangs on others before them; none: nothing is left.
    async fn next_to_delete(&self, deletion: &Deletion, limit: usize) -> Result<Option<DeletionBatch>>;

    /// The pages that have one of these ids, and of each work that has one of these the page that was upserted first; in the order
    /// in which they were.
    async fn pages_known_as(
        &self,
        namespace: &Namespace,
        ids: &[EvidenceId],
        works: &[WorkId],
    ) -> Result<Vec<KnownPage>>;

    /// One claim.
    async fn claim(
        &self,
        namespace: &Namespace,
        claim: &EvidenceId,
        weighing: Weighing,
    ) -> Result<Option<ClaimRecord>>;

    /// Claims after the one with the key `after`, at most `limit`, with their keys: of a task or status in the order in which they were
    /// first upserted, otherwise by id. Of a status also those that may have it because they are to be verified anew.
    async fn claims(
        &self,
        filter: &ClaimFilter,
        combining: Combining,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, ClaimRecord)>>;

    /// Edges after `after`, at most `limit`.
    async fn edges(
        &self,
        filter: &EdgeFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Vec<(EdgePosition, EdgeRecord)>>;
}
