//! Events of feedback-svc, parsed.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{
    AcceptOrder, Caller, EventId, FeedbackId, Namespace, NormalizedKey, Proposal, Reporter, ReporterId,
    Roles, voter::VoterKey,
};
use emend_proto::common::v1 as pb;
use jiff::Timestamp;

/// A valid event.
#[derive(Debug, Clone)]
pub struct IngestEvent {
    /// The unique event id.
    pub id: EventId,
    /// The feedback it is about; [none](FeedbackId::none) for the erasure of a reporter and for what was mined.
    pub feedback: FeedbackId,
    /// The feedback's search application.
    pub namespace: Namespace,
    /// The feedback's accept order.
    pub accept_order: AcceptOrder,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
    /// W3C trace context under which it is applied, if different.
    pub applied_under: Option<String>,
    /// What happened.
    pub change: FeedbackChange,
}

/// What happened to a feedback.
#[derive(Debug, Clone)]
pub enum FeedbackChange {
    /// It was stored.
    Recorded(Box<Recorded>),
    /// It was retracted.
    Retracted {
        /// The client that retracted it.
        caller: Caller,
        /// When.
        at: Timestamp,
        /// The client's roles at that time.
        sender: Roles,
    },
    /// Its personal parts are to be erased.
    Redacted {
        /// The client that asked for it.
        caller: Caller,
        /// When.
        at: Timestamp,
    },
    /// Not of one feedback: proposals that follow from what users did.
    Mined {
        /// What it proposes, each in a contest that votes decide.
        effects: Vec<Proposal>,
        /// What it follows from, for people.
        reason: String,
    },
    /// Not of one feedback: a query that found nothing again and again. What it is near to is proposed.
    Unanswered {
        /// What was searched for, in normal form.
        phrase: NormalizedKey,
        /// As it was written.
        display: String,
        /// How often it was searched, in how many sessions, and in how many of these something else was clicked, for people.
        evidence: String,
    },
    /// Not of one feedback: everything learned for one reporter alone is to be erased.
    ReporterErased {
        /// The client that asked for it.
        caller: Caller,
        /// The reporter.
        reporter: ReporterId,
    },
}

/// A stored feedback.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The reporter.
    pub reporter: Reporter,
    /// The client that sent it.
    pub caller: Caller,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// The reason given; may be empty.
    pub reason: String,
    /// Context for the reviewer.
    pub context: BTreeMap<String, String>,
    /// What it proposes, each in a contest of its own; at least one.
    pub effects: Vec<Proposal>,
    /// The client's roles when it sent it.
    pub sender: Roles,
    /// Under which pseudonym its vote counts, if its personal parts were erased before it came.
    pub erased: Option<ErasedVoter>,
    /// When it was received.
    pub received_at: Timestamp,
}

/// A voter whose name is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasedVoter {
    /// Its pseudonym.
    pub key: VoterKey,
    /// Whether it counts by itself.
    pub identified: bool,
    /// Whether the correction was for this voter alone.
    pub own: bool,
}

/// The outcome of an event.
pub type EventResult = Result<pb::Outcome, Error>;
impl IngestEvent {
    pub(super) fn erases_a_reporter(&self) -> bool {
        matches!(self.change, FeedbackChange::ReporterErased { .. })
    }

    /// Whether it is of a query that found nothing.
    pub(super) fn is_of_a_query(&self) -> bool {
        matches!(self.change, FeedbackChange::Unanswered { .. })
    }

    /// The voter, if it proposes something for that voter alone.
    pub(super) fn own_voter(&self) -> Option<VoterKey> {
        match &self.change {
            FeedbackChange::Recorded(recorded) if recorded.is_own() => {
                Some(recorded.voter(&self.namespace).key)
            }
            _ => None,
        }
    }
}

impl Recorded {
    pub(super) fn is_own(&self) -> bool {
        self.is_for_a_user() || self.erased.is_some_and(|voter| voter.own)
    }

    pub(super) fn is_for_a_user(&self) -> bool {
        self.effects.iter().any(|effect| effect.key.user.is_some())
    }

    /// The voter, by its pseudonym.
    pub(crate) fn voter(&self, namespace: &Namespace) -> ErasedVoter {
        self.erased.unwrap_or_else(|| {
            let voter = self.reporter.voter(&self.caller);
            ErasedVoter {
                key: voter.key(namespace),
                identified: voter.is_identified(),
                own: self.is_for_a_user(),
            }
        })
    }
}
