//! What is read of feedbacks, their contests and their windows at one moment, without a lock.

pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    Candidate, CandidateId, ContestId, FeedbackId, Kind, Namespace, Revision, contest::CurrentResource,
    standing::RatingPlace,
};
use emend_store::StoreError;

use crate::outputs::KnownRating;

/// A ballot, as far as its standing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BallotNow {
    /// The feedback that cast it.
    pub feedback: FeedbackId,
    /// The candidate that it names. Of a vote whose retraction came first there need not be one.
    pub candidate: CandidateId,
    /// The kind of its contest.
    pub kind: Kind,
    /// Whether it was retracted.
    pub retracted: bool,
}

/// A candidate, and what its contest answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateNow {
    /// The candidate.
    pub candidate: Candidate,
    /// The revision of its contest's resource; `None` if there is none.
    pub resource: Option<Revision>,
}

/// A rating without its texts, and its place in its window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingNow {
    /// The rating and its contest.
    pub known: KnownRating,
    /// Its place.
    pub place: RatingPlace,
}

/// What some feedbacks support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supported {
    /// Their ballots: those of one feedback in order of their contests' ids.
    pub ballots: Vec<BallotNow>,
    /// The candidates that these name.
    pub candidates: HashMap<CandidateId, CandidateNow>,
    /// Those of them that are ratings.
    pub ratings: Vec<RatingNow>,
    /// What is shown where they are.
    pub resources: HashMap<ContestId, CurrentResource>,
}

/// Reads what feedbacks support.
#[async_trait]
pub trait StandingStore: Send + Sync {
    /// What these feedbacks support in a namespace, all of one moment. Each must be asked for once.
    async fn supported(
        &self,
        namespace: &Namespace,
        feedback: &[FeedbackId],
    ) -> Result<Supported, StoreError>;
}
