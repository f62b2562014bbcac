//! The port of ratings, beside what stores them as feedback.

use std::{collections::HashMap, fmt::Debug, time::Duration};

use async_trait::async_trait;
use emend_core::AcceptOrder;
use emend_store::StoreError;

use super::{RatingState, labels::LabelChange};

/// Keeps what is known about ratings.
#[async_trait]
pub(crate) trait RatingStore: Send + Sync + Debug {
    /// Changes the labels of a rating.
    async fn label(&self, change: &LabelChange) -> Result<Labelled, StoreError>;

    /// Marks ratings as processed.
    async fn mark_processed(&self, orders: &[AcceptOrder]) -> Result<(), StoreError>;

    /// What is known about ratings, by their accept orders.
    async fn states(&self, orders: &[AcceptOrder]) -> Result<HashMap<AcceptOrder, RatingState>, StoreError>;

    /// Looks once more for the queries of ratings that have waited for so long, the oldest first, at most `limit`; those of
    /// which there is none are missing from now on.
    async fn settle_contexts(&self, waited: Duration, limit: u32) -> Result<Settled, StoreError>;
}

/// What became of ratings whose queries were not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Settled {
    /// Their queries are known now.
    pub(crate) complete: u64,
    /// Their queries were not recorded.
    pub(crate) missing: u64,
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
