//! The port of erasing users: within a unit of work, and afterwards in the log and the database's files.

pub(crate) mod sql;
use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{AcceptOrder, ContestId, Namespace, ResourceKey, UserId, voter::VoterKey};
use emend_store::StoreError;
use jiff::SignedDuration;

type Result<T> = std::result::Result<T, StoreError>;

/// Erased users, in a unit of work.
#[async_trait]
pub trait Erasures: Send {
    /// Of these voters those that were erased, each with the accept order of its newest erasure.
    async fn erased_at(&mut self, voters: &[VoterKey]) -> Result<HashMap<VoterKey, AcceptOrder>>;

    /// Notes that a voter was erased.
    async fn note(&mut self, voter: VoterKey, order: AcceptOrder) -> Result<()>;

    /// The keys of at most `limit` contests of a user's own.
    async fn contests_of(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        limit: u32,
    ) -> Result<Vec<ResourceKey>>;

    /// Deletes everything that a user did, as far as it was recorded.
    async fn forget_activities(&mut self, namespace: &Namespace, user: &UserId) -> Result<()>;

    /// Deletes contests with everything proposed in them. Their changes stay in the log; `pseudonym` takes the user's
    /// place there once the deletions have expired.
    async fn erase(&mut self, contests: &[ContestId], pseudonym: &UserId) -> Result<()>;
}

/// What is left of users after the unit of work.
#[async_trait]
pub trait ErasedLog: Send + Sync {
    /// Puts pseudonyms in place of users' names, and forgets values, in the changes of at most `limit` erased contests
    /// whose deletions have expired. Returns how many contests those were.
    async fn forget_erased(&self, limit: u32) -> Result<u64>;

    /// Deletes at most `limit` of the activities that were recorded longest ago, more than `age` ago by the database's clock. Returns
    /// how many those were.
    async fn forget_activities(&self, age: SignedDuration, limit: u32) -> Result<u64>;

    /// Makes sure that what was deleted is no longer in the database's files, where the service can do that. Whether it
    /// is done: readers may keep an old state in use.
    async fn clean_files(&self) -> Result<bool>;
}
