//! The port of erasure. Each method is one transaction.

use std::fmt::Debug;

use async_trait::async_trait;
use emend_core::{AcceptOrder, FeedbackId, Namespace, ReporterId, voter::VoterKey};
use emend_store::StoreError;

use crate::records::erasure::{Erasure, NewErasure, NewRedaction, Progress};

/// Erases personal parts.
#[async_trait]
pub trait ErasureStore: Send + Sync + Debug + 'static {
    /// Redacts feedback, with an event for each that is due at once, and takes back the leases of its other events. Returns for each whether it was redacted now, was
    /// before, or is not there. Only the first redaction counts.
    async fn redact(&self, redactions: &[NewRedaction]) -> Result<Vec<Redacted>, StoreError>;

    /// Notes that a reporter is to be erased, with its event, unless such an event of this reporter still waits for
    /// delivery.
    async fn begin_erasure(&self, erasure: &NewErasure) -> Result<(), StoreError>;

    /// Erasures of which some feedback may not be redacted yet, oldest first.
    async fn unfinished(&self, limit: u32) -> Result<Vec<Erasure>, StoreError>;

    /// Notes that all feedback accepted before an erasure is redacted: the reporter's name is no longer needed.
    async fn finish_erasure(&self, order: AcceptOrder) -> Result<(), StoreError>;

    /// Feedback of a reporter that is not redacted, at most `limit`.
    async fn feedback_of(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        limit: u32,
    ) -> Result<Vec<FeedbackId>, StoreError>;

    /// How far the erasure of a reporter is.
    async fn progress(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        voter: VoterKey,
    ) -> Result<Progress, StoreError>;

    /// Feedback that is older than the settings of its namespace allow and may not be redacted yet: the oldest, at most
    /// `limit` of each namespace.
    async fn outdated(&self, limit: u32) -> Result<Vec<Outdated>, StoreError>;

    /// Notes that all feedback of a namespace up to there is redacted by age.
    async fn redacted_until(&self, namespace: &Namespace, order: AcceptOrder) -> Result<(), StoreError>;

    /// Whether an event that a reporter is erased still waits for delivery: it names the reporter.
    async fn events_wait(&self) -> Result<bool, StoreError>;

    /// Makes sure that what was erased is no longer in the database's files, where the service can do that. Whether it
    /// is done: readers may keep an old state in use.
    async fn clean_files(&self) -> Result<bool, StoreError>;
}

/// The result of redacting one feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redacted {
    /// Its personal parts are erased.
    Now,
    /// The same of what learning-svc was never told, so that there is no event.
    Undelivered,
    /// They were erased before.
    Before,
    /// There is no such feedback in that namespace.
    NotFound,
}

/// Feedback that has come of age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// The search application.
    pub namespace: Namespace,
    /// The feedback.
    pub id: FeedbackId,
    /// Its position in the order of all feedback.
    pub order: AcceptOrder,
}
