//! The port of ratings, beside what stores them as feedback.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use emend_core::{AcceptOrder, FeedbackId, Namespace, search::SearchRating};
use emend_store::StoreError;

use crate::records::labels::LabelChange;

/// Keeps what is known about ratings.
#[async_trait]
pub trait RatingStore: Send + Sync + Debug + 'static {
    /// The key by which end users' addresses are hashed: the one that is kept, else this one, which is kept from here on.
    async fn address_key(&self, drawn: [u8; 32]) -> Result<Vec<u8>, StoreError>;

    /// Changes the labels of a rating.
    async fn label(&self, change: &LabelChange) -> Result<Labelled, StoreError>;

    /// Marks ratings as processed.
    async fn mark_processed(&self, orders: &[AcceptOrder]) -> Result<(), StoreError>;

    /// Looks once more for the queries of ratings that have waited for so long, the oldest first, at most `limit`; those of
    /// which there is none are missing from now on.
    async fn settle_contexts(&self, waited: Duration, limit: u32) -> Result<Settled, StoreError>;
}

/// What became of ratings whose queries were not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settled {
    /// Their queries are known now.
    pub complete: Vec<SettledRating>,
    /// Their queries were not recorded.
    pub missing: Vec<SettledRating>,
}

/// A rating that has waited for its query and waits no longer: what is counted and logged of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledRating {
    /// The search application.
    pub namespace: Namespace,
    /// The rating.
    pub id: FeedbackId,
    /// Its value.
    pub rating: SearchRating,
    /// The type of its query; empty if that is missing.
    pub query_type: String,
    /// The titles of what the query returned, best first.
    pub titles: Vec<String>,
}

/// The result of a change of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labelled {
    /// They are as asked.
    Done,
    /// There is no such feedback in that namespace.
    NotFound,
    /// The feedback is no rating of a search answer.
    NotARating,
    /// It would have more tags than a rating may have.
    TooMany,
}
