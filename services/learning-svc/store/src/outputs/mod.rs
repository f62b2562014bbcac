//! What is stored of ratings, and of the outputs that were rated. What counts is apart from the texts, which are there exactly
//! as long as the rating is not excluded.
//!
//! A target may have any number of outputs, and an output any number of ratings. Whatever is asked for is found by an index of
//! its own, and no more rows are read than are returned. What an output comes to is a row of its own, written in the
//! transaction in which a rating becomes live or is live no longer.

#[cfg(test)]
mod contract;
pub(crate) mod improvement_rows;
pub mod improvements;
#[cfg(test)]
mod improvements_contract;
pub(crate) mod improvements_sql;
pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    ContestId, FeedbackId, OutputTally, Rated, RatedId, RatingClass, ResourceKey, voter::VoterKey,
};
use emend_store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// A stored rating and its contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRating {
    /// The contest that it is in.
    pub key: ResourceKey,
    /// The rating, without its texts.
    pub rated: Rated,
}

/// Asks for the newest ratings of one output by one voter that are not excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfVoter {
    /// The contest.
    pub contest: ContestId,
    /// Who rated.
    pub voter: VoterKey,
    /// What was rated.
    pub rated: RatedId,
    /// At most this many.
    pub limit: u32,
}

/// Asks for the newest live ratings of one output of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfOutput {
    /// The contest.
    pub contest: ContestId,
    /// What was rated.
    pub rated: RatedId,
    /// The class.
    pub class: RatingClass,
    /// At most this many.
    pub limit: u32,
}

/// Asks for the newest outputs of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfClass {
    /// The contest.
    pub contest: ContestId,
    /// The class.
    pub class: RatingClass,
    /// At most this many.
    pub limit: u32,
}

/// A rating to insert, with its texts unless it is excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRating {
    /// The contest.
    pub contest: ContestId,
    /// The rating.
    pub rated: Rated,
}

/// What a stored rating counts from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatingChange {
    /// Its feedback.
    pub feedback: FeedbackId,
    /// Whether it is live.
    pub live: bool,
    /// Whether it is excluded: then its texts are deleted.
    pub excluded: bool,
}

/// What a unit of work writes of ratings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RatingWrites {
    /// Inserted.
    pub new: Vec<NewRating>,
    /// Changed.
    pub changed: Vec<RatingChange>,
    /// What outputs come to from now on.
    pub outputs: Vec<(ContestId, OutputTally)>,
}

/// Ratings in a unit of work. Contests must be locked.
#[async_trait]
pub trait RatingRepository: Send {
    /// The ratings that these feedbacks are, without their texts.
    async fn known(&mut self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, KnownRating>>;

    /// The newest ratings asked for, with the first characters of their texts, at most so many.
    async fn of_voters(&mut self, wanted: &[OfVoter], max_text_chars: u32)
    -> Result<Vec<(ContestId, Rated)>>;

    /// The newest ratings asked for, with the first characters of their texts, at most so many.
    async fn of_outputs(
        &mut self,
        wanted: &[OfOutput],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>>;

    /// What these outputs come to; those that nobody rated are left out.
    async fn outputs(&mut self, wanted: &[(ContestId, RatedId)]) -> Result<Vec<(ContestId, OutputTally)>>;

    /// The newest outputs asked for.
    async fn newest_outputs(&mut self, wanted: &[OfClass]) -> Result<Vec<(ContestId, OutputTally)>>;

    /// Writes ratings, and what outputs come to.
    async fn save(&mut self, writes: &RatingWrites) -> Result<()>;
}
