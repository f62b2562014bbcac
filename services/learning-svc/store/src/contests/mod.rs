//! What is stored of contests: their rows, candidates, ballots and the history of decisions.
//!
//! Everything that crosses these ports is parsed: an implementation returns [`StoreError::Corrupt`] rather than a value the
//! rules do not know.

#[cfg(test)]
mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod damage;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod ids_contract;
pub(crate) mod lists_sql;
mod records;
pub(crate) mod rows;
pub(crate) mod sql;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    Ballot, Candidate, CandidateId, ContestId, FeedbackId, Key, Kind, Namespace, ResourceKey, Status, UserId,
};
use emend_store::{CorruptRow, StoreError};
use jiff::Timestamp;

pub use self::{records::*, writes::*};
use crate::policies::PolicyKey;

type Result<T> = std::result::Result<T, StoreError>;

/// Contests in a unit of work.
#[async_trait]
pub trait ContestRepository: Send {
    /// Creates rows for contests that have none, where a row must be there to be locked. `keys` must be in order of contest
    /// ids.
    async fn create(&mut self, keys: &[&ResourceKey], now: Timestamp) -> Result<()>;

    /// Locks contests in order of their ids, after `create`, and returns them in that order: of two keys with one id the one
    /// that was there first.
    async fn lock(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>>;

    /// Of these locked contests, removes the rows that this unit of work has created, before anything is written to them.
    async fn forget_new(&mut self, contests: &[ContestId]) -> Result<()>;

    /// Reads everything a decision needs except the ballots. Where a decision does not depend on what was decided before, that
    /// need not be there: whoever names one of those candidates reads it with `named`.
    async fn load(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>>;

    /// A candidate of a locked contest.
    async fn named(&mut self, contest: ContestId, which: Named)
    -> Result<Option<(Candidate, KeptCandidate)>>;

    /// The newest counted ballots of each of these contests, at most `limit` of each; contests without any are left
    /// out.
    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>>;

    /// The contest of a candidate.
    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>>;

    /// Writes what names no revision.
    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()>;

    /// Writes decided candidates and their transitions, each with its contest, under the head's lock if they name revisions.
    async fn save_candidates(
        &mut self,
        candidates: &[CandidateWrite],
        transitions: &[(ContestId, TransitionWrite)],
    ) -> Result<()>;
}

/// The place of a contest among those to re-evaluate: for the store alone to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub i64);

/// A contest to re-evaluate.
pub type ToReevaluate = (Place, std::result::Result<ResourceKey, CorruptRow>);

/// Names one candidate of a contest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// That with this id.
    Candidate(CandidateId),
    /// That with this number as a version.
    Version(u32),
}

/// Which candidates to list.
#[derive(Debug, Clone)]
pub struct CandidateFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only these; empty: all.
    pub kinds: Vec<Kind>,
    /// Only these; empty: all.
    pub statuses: Vec<Status>,
    /// Only contests with one of these keys: one for each form that a key may have; empty: all.
    pub keys: Vec<Key>,
    /// Only what is this user's own.
    pub user: Option<UserId>,
}

/// A position in the list of candidates, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePosition {
    /// Creation time, in microseconds since 1970.
    pub created_at: i64,
    /// Breaks ties between candidates created at the same instant.
    pub id: CandidateId,
}

impl CandidatePosition {
    /// The position of a candidate.
    pub fn of(record: &CandidateRecord) -> Self {
        Self {
            created_at: record.kept.created_at.as_microsecond(),
            id: record.candidate.id,
        }
    }
}

/// Contests outside units of work.
#[async_trait]
pub trait ContestStore: Send + Sync {
    /// One candidate.
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>>;

    /// Candidates after `after`, newest first, at most `limit`.
    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>>;

    /// The other candidates of a candidate's contest, strongest first.
    async fn rivals(&self, candidate: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>>;

    /// The newest counted ballots of a contest, newest first.
    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>>;

    /// The reporters of feedbacks, where given and not erased.
    async fn reporters(&self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, String>>;

    /// The feedbacks that proposed a candidate, newest first.
    async fn feedback(&self, candidate: CandidateId, limit: u32) -> Result<Vec<FeedbackRecord>>;

    /// A candidate's transitions, oldest first.
    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>>;

    /// How many pending contests were last evaluated by an older version than `version`.
    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64>;

    /// Pending contests last evaluated by an older version than the one in force: in an order that does not change, after
    /// `after`, at most `limit`. One that can't be read keeps no other from being returned.
    async fn contests_to_reevaluate(&self, after: Option<Place>, limit: u32) -> Result<Vec<ToReevaluate>>;

    /// How many candidates there are of each kind and status that has any.
    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>>;
}
