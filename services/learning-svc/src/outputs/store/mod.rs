//! What is stored of ratings. What counts is apart from the texts, which are there exactly as long as the rating is not
//! excluded.
//!
//! A target may have any number of ratings. Whatever is asked for is found by an index of its own, and no more rows are read
//! than are returned.

pub(crate) mod improvement_rows;
pub mod improvements;
pub(crate) mod rows;

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{ContestId, FeedbackId, Rated, RatedId, RatingClass, ResourceKey, contest::VoterKey};
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

/// Asks for the newest live ratings of one class.
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
    async fn of_classes(
        &mut self,
        wanted: &[OfClass],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>>;

    /// Writes ratings.
    async fn save(&mut self, writes: &RatingWrites) -> Result<()>;
}
