//! The port of feedback: the ledger, its personal parts and its status.

use std::{collections::HashMap, fmt::Debug, time::Duration};

use async_trait::async_trait;
use emend_core::{AcceptOrder, Caller, FeedbackId, Namespace};
use emend_store::StoreError;

use crate::records::{
    feedback::{Accepted, Feedback, FeedbackQuery, NewFeedback, NewRetraction, RepeatedRequest},
    outbox::Lease,
    ratings::RatingState,
};

/// Stores feedback, each with its events.
#[async_trait]
pub trait CorrectionStore: Send + Sync + Debug + 'static {
    /// Stores a whole group with its events in one transaction, or fails as a whole and stores nothing of it. Otherwise
    /// returns a result per item, in order; an error there concerns that item alone, and the others are stored. With a
    /// lease, the events are leased from the start; without one, they are due at once. If a request id repeats within
    /// the group, the first item counts.
    async fn insert(
        &self,
        group: &[NewFeedback],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError>;

    /// The feedback as which the same request of this caller was stored, if it was.
    async fn stored_as(
        &self,
        caller: &Caller,
        request: &RepeatedRequest,
    ) -> Result<Option<FeedbackId>, StoreError>;

    /// One feedback, if it is in that namespace.
    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>, StoreError>;

    /// Feedback of a namespace, newest first.
    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>, StoreError>;

    /// What is known of those of these feedbacks that are ratings of search answers, by their accept orders.
    async fn rating_states(
        &self,
        orders: &[AcceptOrder],
    ) -> Result<HashMap<AcceptOrder, RatingState>, StoreError>;

    /// Retracts a feedback, with its event leased or due at once. Only the first retraction counts, and of what rulings
    /// decide also one by a stronger role than any before.
    async fn retract(
        &self,
        retraction: &NewRetraction,
        lease: Option<Lease>,
    ) -> Result<Retracted, StoreError>;

    /// Deletes up to `limit` request ids older than `retention`; returns how many.
    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64, StoreError>;
}

/// The result of one item of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is stored.
    Stored(Accepted),
    /// The same request was stored before, as this feedback.
    Replayed(FeedbackId),
    /// The request id belongs to another request.
    RequestIdReused,
    /// It is a rating by somebody who has rated too often, and may be stored after so long.
    TooOften(Duration),
}

/// The result of a retraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retracted {
    /// Stored, with its event.
    Now {
        /// What the database assigned to the event.
        accepted: Accepted,
        /// Whether it is stored with its reason. It is without if the feedback is redacted: that gets no personal part again.
        has_reason: bool,
        /// Whether its event is stored: not of a rating of a search answer.
        is_delivered: bool,
    },
    /// It was retracted before, with the same right or a better one.
    Before,
    /// There is no such feedback in that namespace.
    NotFound,
}
