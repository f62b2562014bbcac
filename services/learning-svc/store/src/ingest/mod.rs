//! What is stored of events: those that were applied, each once, and the marks of retractions and redactions.

pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{Caller, EventId, FeedbackId, Roles};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::contests::KnownBallot;

type Result<T> = std::result::Result<T, StoreError>;

/// What is known about some events and feedbacks.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The encoded outcomes of applied events.
    pub outcomes: HashMap<EventId, Bytes>,
    /// Feedbacks with a retraction mark, and the roles of who retracted each, with most right.
    pub retracted: HashMap<FeedbackId, Roles>,
    /// Feedbacks with a redaction mark.
    pub redacted: Vec<FeedbackId>,
    /// The ballots of feedbacks that have any.
    pub ballots: HashMap<FeedbackId, Vec<KnownBallot>>,
}

/// A retraction or redaction, kept for feedback that arrives late.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The feedback.
    pub feedback: FeedbackId,
    /// The event that made the mark.
    pub event: EventId,
    /// The client that asked for it.
    pub caller: Caller,
    /// Its roles; kept of a retraction only.
    pub sender: Roles,
    /// When feedback-svc stored it.
    pub at: Timestamp,
}

/// An applied event.
#[derive(Debug, Clone)]
pub struct InboxWrite {
    /// The event.
    pub event: EventId,
    /// Its feedback.
    pub feedback: FeedbackId,
    /// When it was applied, by the service's clock.
    pub at: Timestamp,
    /// The encoded `emend.common.v1.Outcome` that was answered.
    pub outcome: Bytes,
}

/// Marks to store.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Of retracted feedbacks; each takes the place of the one that is there.
    pub retractions: Vec<Mark>,
    /// Of redacted feedbacks, each stored where there is none yet.
    pub redactions: Vec<Mark>,
}

/// The inbox in a unit of work.
#[async_trait]
pub trait InboxRepository: Send {
    /// Makes other units of work on these feedbacks wait until this one ends.
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()>;

    /// What is known about these events and feedbacks.
    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen>;

    /// Stores marks of retractions and redactions.
    async fn save_marks(&mut self, marks: &Marks) -> Result<()>;

    /// Stores applied events with their outcomes.
    async fn save(&mut self, applied: &[InboxWrite]) -> Result<()>;
}
