//! Rewordings that worked, which are proposed as synonyms.

use emend_core::Namespace;
use jiff::Timestamp;

use crate::records::event::NewEvent;

/// In how many sessions a rewording must have worked.
pub const MIN_SESSIONS: usize = 3;

/// A query of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// The session.
    pub session_id: String,
    /// What was searched for.
    pub text: String,
    /// When.
    pub at: Timestamp,
    /// Whether nothing was found, as it was reported.
    pub found_nothing: bool,
    /// When a result was first clicked.
    pub clicked_at: Option<Timestamp>,
}

/// What was searched for in a session, and clicked then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickedQuery {
    /// The session.
    pub session_id: String,
    /// What was searched for.
    pub text: String,
}

/// A query that found nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// What was searched for, as somebody wrote it.
    pub text: String,
    /// How often.
    pub queries: usize,
    /// In how many sessions.
    pub sessions: usize,
    /// In how many of them something else was searched for then, and clicked.
    pub clicks: usize,
}

/// How often users did what proposes a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A rewording worked, in so many sessions.
    Reworded(usize),
    /// This found nothing, and another spelling led to clicks.
    Respelled {
        /// How often it was searched.
        queries: usize,
        /// In how many sessions.
        sessions: usize,
        /// In how many of them something else was searched for then, and clicked.
        clicks: usize,
        /// In how many sessions the other spelling led to clicks.
        clicked: usize,
    },
}

/// A rewording to propose, or a query that found nothing.
#[derive(Debug, Clone)]
pub struct NewMined {
    /// The search application.
    pub namespace: Namespace,
    /// What found nothing, in normal form.
    pub failed: String,
    /// What was searched for instead, in normal form; empty where that is not known.
    pub worked: String,
    /// The event that tells learning-svc.
    pub event: NewEvent,
}
