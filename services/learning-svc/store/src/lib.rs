//! Persistence on SQLite or PostgreSQL: opening, migrations, and the unit of work.
//!
//! A [`UnitOfWork`] is one transaction, with a repository for each aggregate that deciding touches; a [`WholeUnit`] has those
//! of everything else besides. Each module has the ports of one aggregate, the records that cross them, and their SQL, which is
//! written once for both databases; what these do differently is in [`database`].
//!
//! A [`Store`] is what ingesting and deciding need; another one, `memory`, is for tests and the simulation, and passes the same
//! suites. A [`Database`] is a store of everything that the service keeps.

pub mod actor;
pub mod audit;
mod batches;
pub mod codes;
#[cfg(any(test, feature = "simulation"))]
pub mod contents;
#[cfg(any(test, feature = "simulation"))]
mod contents_sql;
pub mod contests;
mod database;
pub mod erasure;
pub mod evidence;
pub mod ingest;
mod integers;
pub mod log;
#[cfg(any(test, feature = "simulation"))]
pub mod memory;
pub mod nodes;
pub mod outputs;
pub mod policies;
pub mod profiles;
pub mod queue;
pub mod resources;
mod rows;
#[cfg(test)]
mod sqlite_plans;
pub mod standings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod work;

use std::sync::Arc;

use async_trait::async_trait;
use emend_base::entropy::Entropy;
use emend_core::{Epoch, InstallationId};
use emend_store::{Connections, DatabaseUrl, StoreError};
use emend_stream::log::Head;

pub use database::{CHANNEL, SqlStore};
#[cfg(feature = "fuzzing")]
pub use rows::fuzzing;

use crate::{
    contests::{ContestRepository, ContestStore},
    erasure::{ErasedLog, Erasures},
    evidence::{EvidenceRepository, EvidenceStore, RulingRepository},
    ingest::InboxRepository,
    log::{LogRepository, LogStore},
    nodes::{NodeRepository, NodeStore},
    outputs::{
        RatingRepository,
        improvements::{ImprovementRepository, OutputStore, Redactions},
    },
    policies::{PolicyRepository, PolicyStore},
    profiles::{EntryRepository, ProfileRepository, ProfileStore, SuggestionStore},
    queue::QueueStore,
    resources::{BulkRepository, ResourceRepository},
    standings::StandingStore,
    work::Work,
};

/// One unit of work: its writes are invisible to others before [`UnitOfWork::commit`], and discarded if it is dropped.
///
/// Locks are taken in this order: feedbacks, contests by id, the head. Callers that keep to it meet no deadlock.
#[async_trait]
pub trait UnitOfWork: Send {
    /// Contests, with their candidates and ballots.
    fn contests(&mut self) -> &mut dyn ContestRepository;

    /// What applies.
    fn resources(&mut self) -> &mut dyn ResourceRepository;

    /// Policies.
    fn policies(&mut self) -> &mut dyn PolicyRepository;

    /// The log and its head.
    fn log(&mut self) -> &mut dyn LogRepository;

    /// Applied events and marks.
    fn inbox(&mut self) -> &mut dyn InboxRepository;

    /// Search nodes.
    fn nodes(&mut self) -> &mut dyn NodeRepository;

    /// Ratings, and what outputs come to.
    fn ratings(&mut self) -> &mut dyn RatingRepository;

    /// What of generated prompts was redacted since.
    fn redactions(&mut self) -> &mut dyn Redactions;

    /// What decisions come to in the evidence graph.
    fn rulings(&mut self) -> &mut dyn RulingRepository;

    /// The entries of profiles.
    fn entries(&mut self) -> &mut dyn EntryRepository;

    /// Erased users.
    fn erasures(&mut self) -> &mut dyn Erasures;

    /// Makes everything durable and visible.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// A unit of work on everything that the service stores.
pub trait WholeUnit: UnitOfWork {
    /// Generated prompts.
    fn improvements(&mut self) -> &mut dyn ImprovementRepository;

    /// The evidence graph.
    fn evidence(&mut self) -> &mut dyn EvidenceRepository;

    /// What users did, and what is suggested to them.
    fn profiles(&mut self) -> &mut dyn ProfileRepository;

    /// Many new resources at once.
    fn bulk(&mut self) -> &mut dyn BulkRepository;
}

impl WholeUnit for Work {
    fn improvements(&mut self) -> &mut dyn ImprovementRepository {
        self
    }

    fn evidence(&mut self) -> &mut dyn EvidenceRepository {
        self
    }

    fn profiles(&mut self) -> &mut dyn ProfileRepository {
        self
    }

    fn bulk(&mut self) -> &mut dyn BulkRepository {
        self
    }
}

/// What ingesting, deciding and streaming need of a database: units of work, and what is read outside them.
#[async_trait]
pub trait Store:
    ContestStore + PolicyStore + LogStore + NodeStore + ErasedLog + StandingStore + SuggestionStore + 'static
{
    /// Begins a unit of work that may write.
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, StoreError>;

    /// Begins a unit of work for several callers, which soon gives up where another transaction holds a lock: each of them
    /// then waits for itself.
    async fn begin_group(&self) -> Result<Box<dyn UnitOfWork>, StoreError>;

    /// How many events are applied in one transaction at most.
    fn group(&self) -> usize;

    /// Everything the store holds, read whole in one consistent state.
    #[cfg(any(test, feature = "simulation"))]
    async fn contents(&self) -> Result<contents::Contents, StoreError>;

    /// The current state of the connections to the database.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Closes all connections.
    async fn close(&self);
}

impl std::fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// Everything the service needs of its database.
#[async_trait]
pub trait Database: Store + EvidenceStore + OutputStore + ProfileStore + QueueStore {
    /// Begins a unit of work on everything, which may write.
    async fn begin_whole(&self) -> Result<Box<dyn WholeUnit>, StoreError>;
}

impl std::fmt::Debug for dyn Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Database")
    }
}

/// Opens the database and migrates its schema. `connections` is the number of readers (SQLite) or of all connections
/// (PostgreSQL).
pub async fn open(database: &DatabaseUrl, connections: u32) -> Result<Arc<dyn Database>, StoreError> {
    Ok(Arc::new(SqlStore::open(database, connections).await?))
}

/// A table whose rows others refer to by keys that the database counts.
#[derive(Debug, Clone, Copy)]
enum Keyed {
    Contests,
    Candidates,
}

/// Begins a new installation in an empty database. Of several replicas that do so at once, the first's holds for all; a
/// database that is not empty stays as it is. Returns the head.
pub async fn begin_installation(store: &dyn LogStore, entropy: &Entropy) -> Result<Head, StoreError> {
    store
        .create_head(Epoch(entropy.uuid_v4()), InstallationId(entropy.uuid_v4()))
        .await
}

/// Someone else was faster, in a way the database itself does not notice: the use case is retried.
pub fn conflict(what: &str) -> StoreError {
    StoreError::Conflict(sqlx::Error::Protocol(what.to_owned()))
}
