//! Storage: opening databases, and one store that offers what each capability needs of it
//! ([`CorrectionStore`], [`OutboxStore`], [`InstallationStore`], [`ErasureStore`], [`SettingsStore`], [`QueryStore`],
//! [`RatingStore`]; the ports and their SQL stand with the
//! capabilities). Two implementations, a third in memory for tests, and the contract suite that holds them to the same
//! behaviour.
//!
//! All times are the database's: leases, back-off, retention and accept orders depend on one clock however many replicas
//! there are. Portable SQL is written once and compiled within [`sqlite`] and [`postgres`], which hold what differs.

pub(crate) mod audit;
mod chunks;
#[cfg(test)]
mod contract;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod memory;
mod postgres;
pub(crate) mod rows;
mod sqlite;

use std::fmt::Debug;

use async_trait::async_trait;
pub(crate) use emend_store::{Connections, StoreError};

pub(crate) use postgres::PostgresStore;
#[cfg(feature = "fuzzing")]
pub(crate) use rows::fuzzing;
pub(crate) use sqlite::SqliteStore;

pub(crate) use crate::{
    corrections::store::{CorrectionStore, Inserted, Retracted},
    outbox::store::{Backlog, Claimed, LONGEST_WAIT, OutboxStore, Settlement},
};
use crate::{
    erasure::store::ErasureStore, installation::store::InstallationStore, queries::store::QueryStore,
    ratings::store::RatingStore, settings::store::SettingsStore,
};

/// Everything the service needs of its database.
#[async_trait]
pub(crate) trait Store:
    CorrectionStore + OutboxStore + InstallationStore + Send + Sync + Debug + 'static
{
    /// Erasing personal parts; none in a store that knows no erasure.
    fn erasures(&self) -> Option<&dyn ErasureStore> {
        None
    }

    /// Settings; none in a store that keeps none.
    fn settings(&self) -> Option<&dyn SettingsStore> {
        None
    }

    /// Queries; none in a store that keeps none.
    fn queries(&self) -> Option<&dyn QueryStore> {
        None
    }

    /// What is known about ratings of search answers; none in a store that keeps nothing of them.
    fn ratings(&self) -> Option<&dyn RatingStore> {
        None
    }

    /// The current state of the database connections.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Closes all connections.
    async fn close(&self);
}
