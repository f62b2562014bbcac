//! Requests to erase personal parts, and how far they are.

use emend_core::{AcceptOrder, Caller, FeedbackId, Namespace, ReporterId, voter::VoterKey};
use jiff::Timestamp;

use crate::records::event::NewEvent;

/// A request to erase the personal parts of one feedback.
#[derive(Debug, Clone)]
pub struct NewRedaction {
    /// The search application.
    pub namespace: Namespace,
    /// Which feedback.
    pub id: FeedbackId,
    /// The authenticated client that asks for it.
    pub caller: Caller,
    /// The event that tells learning-svc.
    pub event: NewEvent,
}

/// That the personal parts of a feedback are erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// When, by the database's clock.
    pub at: Timestamp,
    /// The pseudonym under which the vote counts.
    pub voter: VoterKey,
    /// Whether the reporter was known by an id of its own.
    pub identified: bool,
}

/// A request to erase everything about a reporter.
#[derive(Debug, Clone)]
pub struct NewErasure {
    /// The search application.
    pub namespace: Namespace,
    /// The reporter.
    pub reporter: ReporterId,
    /// Its pseudonym.
    pub voter: VoterKey,
    /// The authenticated client that asks for it.
    pub caller: Caller,
    /// The event that tells learning-svc.
    pub event: NewEvent,
}

/// The erasure of a reporter some of whose feedback may not be redacted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Its position in the order of all feedback.
    pub order: AcceptOrder,
    /// The search application.
    pub namespace: Namespace,
    /// The reporter.
    pub reporter: ReporterId,
    /// The client that asked for it.
    pub caller: Caller,
}

/// How far the erasure of a reporter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Feedback that is still to be redacted.
    pub remaining: u64,
    /// Events of it that learning-svc has not confirmed yet.
    pub undelivered: u64,
}
