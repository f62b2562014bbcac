//! Rows as an audit reads them: with the columns that have to agree, and as stored where bytes matter.

use std::collections::HashMap;

use emend_core::{
    Ballot, Candidate, ContestId, EventId, FeedbackId, ResourceKey, ResourceValue, Status, UserId,
    decide::Cause,
};
use emend_proto::common::v1::Outcome;
use emend_store::StoreError;
use prost::Message as _;
use sqlx::FromRow;

use super::{At, BallotRow, CandidateRow, KeyRow};
use crate::{
    audit::{AppliedEvent, CastBallot, Entry},
    store::{codes, decisions::KeptCandidate},
};

/// A contest's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedContest {
    #[sqlx(flatten)]
    key: KeyRow,
    pub(crate) pinned: i32,
    pub(crate) highest_accept_order: i64,
    /// The policy version that last evaluated it.
    pub(crate) policy_version: i64,
    pub(crate) pending: i32,
}

impl AuditedContest {
    /// Its id as stored.
    pub(crate) fn id(&self) -> &str {
        &self.key.contest_id
    }

    /// Its key, which gives its id.
    pub(crate) fn key(&self) -> Result<ResourceKey, StoreError> {
        self.key.parse("contests")
    }
}

/// A candidate's row, with the columns it repeats from its contest.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedCandidate {
    #[sqlx(flatten)]
    candidate: CandidateRow,
    pub(crate) namespace: String,
    pub(crate) kind: i32,
}

impl AuditedCandidate {
    /// Its contest's id as stored.
    pub(crate) fn contest(&self) -> &str {
        &self.candidate.contest_id
    }

    /// Its id as stored.
    pub(crate) fn id(&self) -> &str {
        &self.candidate.candidate_id
    }

    /// The encoded value.
    pub(crate) fn value(&self) -> &[u8] {
        &self.candidate.value
    }

    /// The candidate.
    pub(crate) fn parse(&self) -> Result<(Candidate, KeptCandidate), StoreError> {
        self.candidate.parse()
    }
}

/// A resource's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedResource {
    #[sqlx(flatten)]
    pub(crate) key: KeyRow,
    pub(crate) revision: i64,
    pub(crate) value: Vec<u8>,
    pub(crate) value_checksum: i64,
    pub(crate) committed_at: i64,
    /// When its revision was committed according to the log; none if the log does not have it.
    pub(crate) logged_at: Option<i64>,
}

impl AuditedResource {
    /// Its value. Also checks that the key can be read and gives the id.
    pub(crate) fn parse(&self) -> Result<ResourceValue, StoreError> {
        let at = At {
            table: "resources",
            id: &self.key.contest_id,
        };
        let value = at.value("value", &self.value)?;
        self.key.parse("resources")?;
        Ok(value)
    }
}

/// A change in the log.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedChange {
    #[sqlx(flatten)]
    pub(crate) key: KeyRow,
    pub(crate) revision: i64,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) value_checksum: i64,
    pub(crate) before_value: Option<Vec<u8>>,
    pub(crate) candidate_id: String,
    /// The cause of its revision; none if that is missing.
    pub(crate) cause: Option<i32>,
}

impl AuditedChange {
    /// Whether it is of an erased user: then its value is gone.
    pub(crate) fn is_erased(&self) -> bool {
        UserId::parse(&self.key.user_id).is_ok_and(|user| user.is_erased())
    }

    /// Whether its user was erased by it.
    pub(crate) fn erases(&self) -> bool {
        self.cause == Some(Cause::Erasure.number())
    }

    /// Checks that its key and values can be read and its key gives its id.
    pub(crate) fn parse(&self) -> Result<ResourceKey, StoreError> {
        let id = format!("({}, {})", self.revision, self.key.contest_id);
        let at = At {
            table: "changes",
            id: &id,
        };
        for (column, value) in [("value", &self.value), ("before_value", &self.before_value)] {
            if !self.is_erased() {
                value.as_ref().map(|value| at.value(column, value)).transpose()?;
            }
        }
        self.key.parse("changes")
    }
}

/// A change of a candidate's status.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedTransition {
    pub(crate) contest_id: String,
    pub(crate) candidate_id: String,
    pub(crate) sequence: i64,
    pub(crate) from_status: i32,
    pub(crate) to_status: i32,
    pub(crate) revision: i64,
}

impl AuditedTransition {
    /// The status before (none: it was created) and after.
    pub(crate) fn parse(&self) -> Result<(Option<Status>, Status), StoreError> {
        let at = At {
            table: "transitions",
            id: &self.candidate_id,
        };
        let from = match self.from_status {
            0 => None,
            number => Some(at.known("from_status", number, codes::parse_status(number))?),
        };
        let to = at.known("to_status", self.to_status, codes::parse_status(self.to_status))?;
        Ok((from, to))
    }
}

/// A ballot that counts.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedBallot {
    #[sqlx(flatten)]
    ballot: BallotRow,
}

impl AuditedBallot {
    /// Its contest's id as stored.
    pub(crate) fn contest(&self) -> &str {
        &self.ballot.contest_id
    }

    /// The ballot.
    pub(crate) fn parse(&self) -> Result<Ballot, StoreError> {
        self.ballot.parse()
    }
}

/// Everything stored about one feedback, with one of its applied events.
#[derive(Debug, FromRow)]
pub(crate) struct EntryRow {
    pub(crate) feedback_id: String,
    event_id: Option<String>,
    outcome: Option<Vec<u8>>,
    contest_id: Option<String>,
    candidate_id: Option<String>,
    accept_order: Option<i64>,
    voter: Option<String>,
    identified: Option<i32>,
    caller: Option<String>,
    received_at: Option<i64>,
    retracted: Option<i32>,
    system_choice: Option<String>,
    traceparent: Option<String>,
    retraction: Option<String>,
    redaction: Option<String>,
    details: i32,
}

impl EntryRow {
    /// The entry made of all rows of one feedback.
    pub(crate) fn entry_of(rows: &[Self]) -> Result<Entry, StoreError> {
        let id = rows[0].feedback_id.clone();
        let inbox = At {
            table: "inbox",
            id: &id,
        };
        let mut events = HashMap::with_capacity(rows.len());
        for row in rows {
            if let Some(event) = &row.event_id {
                let outcome = Outcome::decode(row.outcome.as_deref().unwrap_or_default())
                    .map_err(|error| inbox.corrupt("outcome", error))?;
                events.insert(EventId(inbox.uuid("event_id", event)?), outcome);
            }
        }
        let feedback = FeedbackId(inbox.uuid("feedback_id", &id)?);
        let mut events: Vec<AppliedEvent> = events
            .into_iter()
            .map(|(id, outcome)| AppliedEvent { id, outcome })
            .collect();
        events.sort_by_key(|event| event.id);
        let mark = |table: &'static str, event: &Option<String>| {
            let at = At { table, id: &id };
            event
                .as_ref()
                .map(|event| at.uuid("event_id", event).map(EventId))
                .transpose()
        };
        let first = &rows[0];
        Ok(Entry {
            feedback,
            events,
            retraction: mark("retraction_marks", &first.retraction)?,
            redaction: mark("redaction_marks", &first.redaction)?,
            details: first.details != 0,
            ballot: first.ballot()?,
        })
    }

    fn ballot(&self) -> Result<Option<CastBallot>, StoreError> {
        let at = At {
            table: "ballots",
            id: &self.feedback_id,
        };
        let Some(contest) = &self.contest_id else {
            return Ok(None);
        };
        let row = BallotRow {
            feedback_id: self.feedback_id.clone(),
            contest_id: contest.clone(),
            candidate_id: self.candidate_id.clone().unwrap_or_default(),
            accept_order: self.accept_order.unwrap_or_default(),
            voter: self.voter.clone().unwrap_or_default(),
            identified: self.identified.unwrap_or_default(),
            caller: self.caller.clone().unwrap_or_default(),
            received_at: self.received_at.unwrap_or_default(),
        };
        Ok(Some(CastBallot {
            contest: ContestId(at.uuid("contest_id", contest)?),
            ballot: row.parse()?,
            retracted: self.retracted != Some(0),
            system_choice: self.system_choice.clone().unwrap_or_default(),
            traceparent: self.traceparent.clone().unwrap_or_default(),
        }))
    }
}
