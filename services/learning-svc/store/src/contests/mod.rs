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
#[cfg(test)]
mod undo_contract;
mod undo_sql;
#[cfg(test)]
mod waiting_contract;
mod waiting_sql;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    Ballot, Candidate, CandidateId, ContestId, FeedbackId, Key, Kind, Namespace, ResourceKey, Status, UserId,
};
use emend_store::{CorruptRow, StoreError};
use jiff::{SignedDuration, Timestamp};

pub use self::{records::*, writes::*};
use crate::{policies::PolicyKey, queue::QueueCount};

type Result<T> = std::result::Result<T, StoreError>;

/// For how long a person's decision can be undone, by the database's clock.
pub const UNDO_WITHIN: SignedDuration = SignedDuration::from_mins(10);

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

    /// Notes how much happened in the review queue.
    async fn count(&mut self, counts: &[QueueCount]) -> Result<()>;

    /// Keeps what it takes to undo the newest approval or rejection in a contest, in place of an earlier one's. The candidates
    /// that it names are written.
    async fn save_undoable(&mut self, record: &UndoableRecord) -> Result<()>;

    /// What it takes to undo the newest approval or rejection in a locked contest, if it is still kept.
    async fn undoable(&mut self, contest: ContestId) -> Result<Option<UndoableRecord>>;

    /// Keeps it no longer.
    async fn forget_undoable(&mut self, contest: ContestId) -> Result<()>;
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
    /// Only what reviewers did something about.
    pub reviewed: Involvement,
}

/// What reviewers did about the candidates to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Involvement {
    /// Somebody was asked about them, and has not answered.
    pub asked: Option<Asked>,
    /// This reviewer decided them since then and nobody changed them since, approved them as the first of two, or wrote about
    /// them.
    pub decided: Option<(String, Timestamp)>,
    /// One of them approved them, where it takes two.
    pub approved_once: bool,
}

impl Involvement {
    /// Whether any will do.
    pub fn is_any(&self) -> bool {
        self.asked.is_none() && self.decided.is_none() && !self.approved_once
    }
}

/// Who was asked for a second opinion, and by whom; empty: anybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// Others asked this reviewer, or nobody in particular.
    pub of: String,
    /// This reviewer asked.
    pub by: String,
}

/// In which order candidates are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CandidateOrder {
    /// By when they were first proposed, the newest first.
    #[default]
    NewestFirst,
    /// By when they were first proposed, the oldest first.
    OldestFirst,
    /// By how many voters support them, most first; only of what awaits review.
    MostVotes,
    /// By how little their support differs from that of their strongest rival, least first, and those without a rival last; only of
    /// what awaits review.
    MostControversial,
}

/// How candidates are listed: in which order, and of which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listing {
    /// The order.
    pub order: CandidateOrder,
    /// Only those first proposed then or later.
    pub created_after: Option<Timestamp>,
    /// Only those first proposed before then.
    pub created_before: Option<Timestamp>,
}

/// The controversy of a candidate that has no rival.
pub(crate) const UNRIVALLED: i64 = 1_000_000_000;

/// How little a candidate's support differs from that of its strongest rival.
pub(crate) fn controversy(candidate: &Candidate) -> i64 {
    let is_by_votes = candidate.ruling.is_none() && candidate.proposal.is_none();
    let reporters = i64::try_from(candidate.reporters).unwrap_or(i64::MAX);
    if is_by_votes && candidate.net < reporters {
        candidate.net.saturating_abs().min(UNRIVALLED - 1)
    } else {
        UNRIVALLED
    }
}

/// A position in a list of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePosition {
    /// The figure by which the list is ordered: the creation time in microseconds since 1970, the voters, or the controversy.
    pub place: i64,
    /// Breaks ties between candidates with the same figure.
    pub id: CandidateId,
}

impl CandidatePosition {
    /// The position of a candidate by its age.
    pub fn of(record: &CandidateRecord) -> Self {
        Self::by(CandidateOrder::NewestFirst, record)
    }

    /// The position of a candidate in that order.
    pub fn by(order: CandidateOrder, record: &CandidateRecord) -> Self {
        let candidate = &record.candidate;
        Self {
            place: match order {
                CandidateOrder::NewestFirst | CandidateOrder::OldestFirst => {
                    record.kept.created_at.as_microsecond()
                }
                CandidateOrder::MostVotes => i64::try_from(candidate.reporters).unwrap_or(i64::MAX),
                CandidateOrder::MostControversial => controversy(candidate),
            },
            id: candidate.id,
        }
    }
}

/// Contests outside units of work.
#[async_trait]
pub trait ContestStore: Send + Sync {
    /// One candidate.
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>>;

    /// Candidates after `after`, at most `limit`. Orders other than by age list only what awaits review.
    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        listing: &Listing,
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

    /// Keeps no longer what it takes to undo decisions that are older than this, by the database's clock. Returns how many
    /// those were.
    async fn forget_undoable_after(&self, age: SignedDuration) -> Result<u64>;

    /// How many candidates of each kind await review in a namespace, and since when the oldest was proposed.
    async fn waiting(&self, namespace: &Namespace) -> Result<Vec<(Kind, u64, Timestamp)>>;

    /// How many candidates there are of each kind and status that has any.
    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>>;
}
