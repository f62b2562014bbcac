//! The port of ratings, beside what stores them as feedback.

use std::fmt::Debug;

use async_trait::async_trait;
use emend_store::StoreError;

use super::labels::LabelChange;

/// Keeps what is known about ratings.
#[async_trait]
pub(crate) trait RatingStore: Send + Sync + Debug {
    /// Changes the labels of a rating.
    async fn label(&self, change: &LabelChange) -> Result<Labelled, StoreError>;
}

/// The result of a change of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// They are as asked.
    Done,
    /// There is no such feedback in that namespace.
    NotFound,
    /// The feedback is no rating of a search answer.
    NotARating,
    /// It would have more tags than a rating may have.
    TooMany,
}
