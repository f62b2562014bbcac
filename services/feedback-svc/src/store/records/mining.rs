//! Rewordings that worked, which are proposed as synonyms.

use emend_core::Namespace;
use jiff::Timestamp;

use crate::store::records::event::NewEvent;

/// In how many sessions a rewording must have worked.
pub(crate) const MIN_SESSIONS: usize = 3;

/// A query of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionQuery {
    /// The session.
    pub(crate) session_id: String,
    /// What was searched for.
    pub(crate) text: String,
    /// When.
    pub(crate) at: Timestamp,
    /// Whether nothing was found, as it was reported.
    pub(crate) found_nothing: bool,
    /// When a result was first clicked.
    pub(crate) clicked_at: Option<Timestamp>,
}

/// A rewording to propose.
#[derive(Debug, Clone)]
pub(crate) struct NewMined {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// What found nothing, in normal form.
    pub(crate) failed: String,
    /// What was searched for instead, in normal form.
    pub(crate) worked: String,
    /// The event that tells learning-svc.
    pub(crate) event: NewEvent,
}
