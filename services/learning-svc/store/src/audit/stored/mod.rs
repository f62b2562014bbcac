//! The port of audits: everything stored, read in one consistent state, with no more in memory at once than has to be
//! compared.
//!
//! Contests come in ranges of their ids, and every table that refers to contests is read by such ranges. It must know
//! nothing of which invariants hold.

mod entry;
pub(crate) mod evidence;
pub(crate) mod evidence_sql;
mod queue_sql;
pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{ContestId, OutputTally, Policy, Rated, WindowPolicy};
use emend_store::{DatabaseUrl, StoreError, audit::OpenError};
use emend_stream::log::Head;
use futures::stream::BoxStream;

use crate::{SqlStore, policies::PolicyKey};

pub use self::entry::{AppliedEvent, CastBallot, CastRating, Entry};
pub(crate) use self::rows::{
    AuditedBallot as BallotRow, AuditedCandidate, AuditedChange, AuditedContest, AuditedResource,
    AuditedTransition, EntryRow, SentRulingRow,
};
pub(crate) use crate::rows::KeyRow;

type Result<T> = std::result::Result<T, StoreError>;

/// A range of contests by their keys within the database, from `after` (exclusive) to `through` (inclusive); without
/// `through`, to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    /// The key before the first.
    pub(crate) after: i64,
    /// The last key of the range.
    pub(crate) through: Option<i64>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Contests.
    pub(crate) contests: u64,
    /// Applied events.
    pub(crate) events: u64,
}

/// A rating, or what is kept of an output, that does not agree with something.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct WrongRating {
    /// The id of its feedback, or of the output.
    pub(crate) id: Vec<u8>,
    /// With what: the others of its voter and output (1), its texts (2), its contest (3); of an output: its live ratings (4), its
    /// contest (5).
    pub(crate) what: i32,
}

/// A proposal, or what is kept of a generated one, that does not agree with something.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct WrongProposal {
    /// The id of the candidate, improvement or feedback.
    pub(crate) id: Vec<u8>,
    /// With what: the last number given (1), other labels (2), its candidate (3), its ratings (4); or it is missing, of a
    /// candidate (5) or of ratings (6).
    pub(crate) what: i32,
}

/// Something about a candidate in the review queue that does not agree with the candidate.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct WrongWaiting {
    /// The candidate's id.
    pub(crate) id: Vec<u8>,
    /// What is wrong: it is not listed although it waits (1), is listed although it does not (2), is listed with other figures (3),
    /// or is leased for too long (4).
    pub(crate) what: i32,
}

/// A day of the review queue whose figures are too low.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct WrongDay {
    /// The namespace.
    pub(crate) namespace: String,
    /// The kind's number.
    pub(crate) kind: i32,
    /// The UTC day, in days since 1970.
    pub(crate) day: i64,
}

/// The shape of a revision's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct Span {
    /// The revision.
    pub(crate) revision: i64,
    /// How many changes it has.
    pub(crate) changes: i64,
    /// The lowest ordinal.
    pub(crate) first: i64,
    /// The highest ordinal.
    pub(crate) last: i64,
    /// How many keys it changes.
    pub(crate) keys: i64,
}

/// A candidate that was mined.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct MinedRow {
    /// Its id.
    pub(crate) candidate_id: Vec<u8>,
    /// Its contest's namespace.
    pub(crate) namespace: String,
    /// The term that it is about.
    pub(crate) key: String,
    /// What stands for the term.
    pub(crate) qualifier: String,
}

/// One read of everything: all it returns is as of the moment it began.
#[async_trait]
pub(crate) trait AuditRead: evidence::AuditEvidence {
    /// How much there is.
    async fn extent(&mut self) -> Result<Extent>;

    /// How many contests are pending and were evaluated by an older policy version than the one in force.
    async fn to_reevaluate(&mut self) -> Result<u64>;

    /// The heads of the log; there should be exactly one.
    async fn heads(&mut self) -> Result<Vec<Result<Head>>>;

    /// All policies ever set, each with its key and version.
    async fn policies(&mut self) -> Result<Vec<Result<(PolicyKey, Policy)>>>;

    /// The number of resources according to the counters, and the actual number.
    async fn resource_counts(&mut self) -> Result<[HashMap<(String, i32), i64>; 2]>;

    /// The last of the next `size` contests after `after`; none if fewer are left.
    async fn page_end(&mut self, after: i64, size: u32) -> Result<Option<i64>>;

    /// The contests of a range.
    async fn contests(&mut self, range: &Range) -> Result<Vec<AuditedContest>>;

    /// Their candidates.
    async fn candidates(&mut self, range: &Range) -> Result<Vec<AuditedCandidate>>;

    /// Their resources.
    async fn resources(&mut self, range: &Range) -> Result<Vec<AuditedResource>>;

    /// Their candidates' transitions: by contest, candidate and sequence.
    fn transitions(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedTransition>>;

    /// Their counted ballots: by contest, newest first.
    fn ballots(&mut self, range: &Range) -> BoxStream<'_, Result<BallotRow>>;

    /// Their rulings that corrections made.
    fn sent_rulings(&mut self, range: &Range) -> BoxStream<'_, Result<SentRulingRow>>;

    /// Their changes in the log: by contest, newest first.
    fn changes(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedChange>>;

    /// The revisions in (after, through], ascending, and the shape of the changes of each revision that has any.
    async fn revisions(&mut self, after: i64, through: i64) -> Result<(Vec<i64>, Vec<Span>)>;

    /// The newest outputs of a contest, by its key within the database and its id, as many as a window shows; and of each the
    /// newest live ratings that its example is made of, and of their texts as much as is shown.
    async fn shown_outputs(
        &mut self,
        contest: i64,
        id: ContestId,
        window: &WindowPolicy,
    ) -> Result<(Vec<Result<OutputTally>>, Vec<Result<Rated>>)>;

    /// What the review queue lists or leases wrongly.
    async fn wrong_waiting(&mut self) -> Result<Vec<WrongWaiting>>;

    /// The days whose figures are below zero, or below the transitions that the candidates had on them.
    async fn wrong_days(&mut self) -> Result<Vec<WrongDay>>;

    /// The numbers of changes of the queue that name no contest, or a status that there is not.
    async fn wrong_queue_changes(&mut self) -> Result<Vec<i64>>;

    /// Candidates that were mined.
    fn mined(&mut self) -> BoxStream<'_, Result<MinedRow>>;

    /// Ratings that do not agree with others, their texts or their contest, and outputs that do not agree with their ratings or
    /// their contest; at most 1,000.
    async fn wrong_ratings(&mut self) -> Result<Vec<WrongRating>>;

    /// Proposals and improvements that do not agree with each other; at most 1,000.
    async fn wrong_proposals(&mut self) -> Result<Vec<WrongProposal>>;

    /// The keys of candidates that do not agree with what is kept of suggestions; at most 1,000.
    async fn wrong_suggestions(&mut self) -> Result<Vec<i64>>;

    /// The keys of candidates that have transitions but do not exist; at most 1,000.
    async fn stray_transitions(&mut self) -> Result<Vec<i64>>;

    /// Everything that came from feedback-svc, by feedback; one row for each applied event of it.
    fn entries(&mut self) -> BoxStream<'_, Result<EntryRow>>;
}

/// Opens a database for an audit.
pub(crate) async fn open(database: &DatabaseUrl) -> std::result::Result<Box<dyn AuditRead>, OpenError> {
    let transaction = SqlStore::begin_to_read(database).await?;
    Ok(Box::new(sql::Reading::begin(transaction).await?))
}
