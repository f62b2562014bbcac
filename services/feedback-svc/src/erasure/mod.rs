//! Erasure of personal parts: reporter, session, client, query id, reason, context, and the reason of a retraction.
//!
//! Redacting one feedback erases its personal parts here, in the events that still wait for delivery, and by an event of
//! its own in learning-svc. The correction stays, and its vote counts under the voter's pseudonym. Erasing a reporter is
//! the same for all feedback of that reporter, and an event that what was learned for that user alone is deleted. What is
//! older than the namespace's settings allow is redacted in the same way.
//!
//! [`redact`] has the use cases, [`worker`] goes on with what a call or a process left, [`store`] is the port and [`grpc`]
//! renders. Everything may be repeated: what is erased already stays as it is.

pub(crate) mod grpc;
mod redact;
pub(crate) mod store;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod worker;

use emend_core::{AcceptOrder, Caller, FeedbackId, Namespace, ReporterId, voter::VoterKey};
use jiff::Timestamp;

use crate::outbox::entry::NewEvent;

/// A request to erase the personal parts of one feedback.
#[derive(Debug, Clone)]
pub(crate) struct NewRedaction {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// Which feedback.
    pub(crate) id: FeedbackId,
    /// The authenticated client that asks for it.
    pub(crate) caller: Caller,
    /// The event that tells learning-svc.
    pub(crate) event: NewEvent,
}

/// That the personal parts of a feedback are erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redaction {
    /// When, by the database's clock.
    pub(crate) at: Timestamp,
    /// The pseudonym under which the vote counts.
    pub(crate) voter: VoterKey,
    /// Whether the reporter was known by an id of its own.
    pub(crate) identified: bool,
}

/// A request to erase everything about a reporter.
#[derive(Debug, Clone)]
pub(crate) struct NewErasure {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// The reporter.
    pub(crate) reporter: ReporterId,
    /// Its pseudonym.
    pub(crate) voter: VoterKey,
    /// The authenticated client that asks for it.
    pub(crate) caller: Caller,
    /// The event that tells learning-svc.
    pub(crate) event: NewEvent,
}

/// The erasure of a reporter some of whose feedback may not be redacted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    /// Its position in the order of all feedback.
    pub(crate) order: AcceptOrder,
    /// The search application.
    pub(crate) namespace: Namespace,
    /// The reporter.
    pub(crate) reporter: ReporterId,
    /// The client that asked for it.
    pub(crate) caller: Caller,
}

/// How far the erasure of a reporter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// Feedback that is still to be redacted.
    pub(crate) remaining: u64,
    /// Events of it that learning-svc has not confirmed yet.
    pub(crate) undelivered: u64,
}
