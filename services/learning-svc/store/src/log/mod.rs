//! What is stored of the log: revisions with their changes, and the head.
//!
//! For the update stream, changes are passed on as stored, unknown kinds included: the code that streams them must not
//! need to understand them.

#[cfg(test)]
mod contract;
pub(crate) mod lists_sql;
mod records;
pub(crate) mod rows;
pub(crate) mod sql;
#[cfg(test)]
pub(crate) mod suite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use async_trait::async_trait;
use emend_core::{Epoch, InstallationId, Key, Kind, Namespace, OperationId, Revision};
use emend_store::StoreError;
use emend_stream::log::{Head, Loaded, LoggedChange};
use jiff::SignedDuration;

pub use self::records::*;

type Result<T> = std::result::Result<T, StoreError>;

/// The log in a unit of work.
#[async_trait]
pub trait LogRepository: Send {
    /// The changes of a revision, in order; empty if there is no such revision.
    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>>;

    /// Locks the head and advances it by `revisions`, which may be 0.
    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead>;

    /// Writes revisions and their changes, under the head's lock.
    async fn append(&mut self, writes: &LogWrites) -> Result<()>;
}

/// Which revisions to list.
#[derive(Debug, Clone)]
pub struct RevisionFilter {
    /// The search application; only its changes are shown.
    pub namespace: Namespace,
    /// Only revisions that changed this kind.
    pub kind: Option<Kind>,
    /// Only revisions that changed this normalised key.
    pub keys: Vec<Key>,
    /// Only revisions of this operation.
    pub operation: Option<OperationId>,
}

/// Receives what a load finds, page by page.
pub type Sink<'a> = &'a mut (dyn FnMut(Vec<LoggedChange>) + Send);

/// The log outside units of work. Every method is one transaction.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Creates the head with this epoch and installation, at revision 0, unless there is one. Returns the head.
    async fn create_head(&self, epoch: Epoch, installation: InstallationId) -> Result<Head>;

    /// The head; none if the database is empty.
    async fn find_head(&self) -> Result<Option<Head>>;

    /// The head.
    async fn head(&self) -> Result<Head>;

    /// Passes every resource, and every key whose newest change is a deletion above the horizon, to `sink`: once per
    /// key, in no particular order, all from one consistent state. On an error, discard what was passed before it.
    async fn load(&self, sink: Sink<'_>) -> Result<Loaded>;

    /// The revisions after `revision` with all their changes, as many as fit the page.
    async fn revisions_after(&self, revision: i64, size: PageSize) -> Result<LogPage>;

    /// Raises the horizon so that no deletion above it is older than `max_age`, and only the newest `max_tombstones`
    /// are above it; never lowers it. Returns the horizon in force.
    async fn raise_horizon(&self, max_age: SignedDuration, max_tombstones: i64) -> Result<i64>;

    /// Begins a new epoch of the log, if `old` is still in force. Returns the epoch in force afterwards, so that when
    /// several replicas do this at once, all follow the first.
    async fn mint_epoch(&self, old: Epoch, new: Epoch) -> Result<Epoch>;

    /// The revisions of an operation after `after`, oldest first, at most `limit`.
    async fn revisions_of(
        &self,
        operation: OperationId,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Revision>>;

    /// Revisions below `before`, newest first, at most `limit`; fewer if they have very many changes. The flag says
    /// that there may be more.
    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)>;
}
