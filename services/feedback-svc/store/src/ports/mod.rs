//! What the use cases need of a database, and what it answers. All times are the database's: leases, back-off, retention and
//! accept orders depend on one clock however many replicas there are.

mod corrections;
mod erasure;
mod installation;
mod outbox;
mod queries;
mod ratings;
mod settings;

use std::fmt::Debug;

use async_trait::async_trait;
use emend_store::{Connections, StoreError};

pub use self::{
    corrections::{CorrectionStore, Inserted, Retracted},
    erasure::{ErasureStore, Outdated, Redacted},
    installation::{InstallationState, InstallationStore},
    outbox::{Backlog, Claimed, LONGEST_WAIT, OutboxStore, Settlement},
    queries::{CountedTerms, Group, QueryStore, Written},
    ratings::{Labelled, RatingStore, Settled, SettledRating},
    settings::{ReadSettings, SettingsStore},
};

/// What taking corrections and delivering them needs.
pub trait FeedbackStore: CorrectionStore + OutboxStore + InstallationStore + ReadSettings {}

impl<S: CorrectionStore + OutboxStore + InstallationStore + ReadSettings> FeedbackStore for S {}

/// The connections to a database.
#[async_trait]
pub trait Connected: Send + Sync + Debug + 'static {
    /// Their current state.
    fn connections(&self) -> Connections;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Closes all of them.
    async fn close(&self);
}
