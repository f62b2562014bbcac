//! Rows as an audit reads them: with the columns that have to agree, and as stored where bytes matter.

use std::collections::HashMap;

use emend_core::{
    AcceptOrder, Ballot, Candidate, CandidateId, ContestId, EventId, FeedbackId, RatingClass, ResourceKey,
    ResourceValue, Roles, Status, UserId, voter::VoterKey,
};
use emend_proto::common::v1::Outcome;
use emend_store::StoreError;
use prost::Message as _;
use sqlx_macros::FromRow;

use crate::{
    audit::stored::{AppliedEvent, CastBallot, CastRating, Entry},
    codes,
    contests::{
        KeptCandidate,
        rows::{BallotRow, CandidateRow},
    },
    rows::{At, KeyRow, StoredId},
};

/// A contest's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedContest {
    /// Its key within the database.
    pub(crate) contest: i64,
    /// The parts of the key that it is about, and the id made of them.
    #[sqlx(flatten)]
    pub(crate) parts: KeyRow,
    key_hash: i64,
    pub(crate) pinned: i32,
    pub(crate) highest_accept_order: i64,
    /// The policy version that last evaluated it.
    pub(crate) policy_version: i64,
    pub(crate) pending: i32,
    /// Whether what it is about is known.
    pub(crate) target_known: i32,
    /// The number of the version that is current, and the last one given.
    pub(crate) current_version: i32,
    pub(crate) last_version: i32,
}

impl AuditedContest {
    /// Its id as stored.
    pub(crate) fn id(&self) -> StoredId<'_> {
        StoredId(&self.parts.contest_id)
    }

    /// Its key, which gives its id and the hash by which it is found.
    pub(crate) fn key(&self) -> Result<ResourceKey, StoreError> {
        let key = self.parts.parse("contests")?;
        if self.key_hash == key.contest_id().key_hash() {
            Ok(key)
        } else {
            let at = At {
                table: "contests",
                id: &self.id(),
            };
            Err(at.corrupt("key_hash", "not that of the key"))
        }
    }

    /// Whether a pseudonym stands in place of its user: then the log's values of it are gone.
    pub(crate) fn is_erased(&self) -> bool {
        UserId::parse(&self.parts.user_id).is_ok_and(|user| user.is_erased())
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
    /// The key of its contest.
    pub(crate) fn contest(&self) -> i64 {
        self.candidate.contest
    }

    /// Its own key within the database.
    pub(crate) fn number(&self) -> i64 {
        self.candidate.candidate
    }

    /// Its id as stored.
    pub(crate) fn id(&self) -> StoredId<'_> {
        StoredId(&self.candidate.candidate_id)
    }

    /// The encoded value.
    pub(crate) fn value(&self) -> &[u8] {
        self.candidate.value.as_deref().unwrap_or_default()
    }

    /// The candidate.
    pub(crate) fn parse(&self) -> Result<(Candidate, KeptCandidate), StoreError> {
        self.candidate.parse()
    }
}

/// A resource's row.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedResource {
    pub(crate) contest: i64,
    pub(crate) revision: i64,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) value_checksum: i64,
    pub(crate) committed_at: i64,
    /// When its revision was committed according to the log; none if the log does not have it.
    pub(crate) logged_at: Option<i64>,
}

impl AuditedResource {
    /// The encoded value; nothing if it is neither stored nor in the log.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.value.as_deref().unwrap_or_default()
    }

    /// Its value.
    pub(crate) fn parse(&self) -> Result<ResourceValue, StoreError> {
        let at = At {
            table: "resources",
            id: &self.contest,
        };
        let value = self.value.as_deref();
        at.value(
            "value",
            value.ok_or_else(|| at.corrupt("value", "is neither here nor in the log"))?,
        )
    }
}

/// A change in the log.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedChange {
    pub(crate) contest: i64,
    pub(crate) revision: i64,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) value_checksum: i64,
    pub(crate) before_value: Option<Vec<u8>>,
    /// The key of the candidate that was applied or removed.
    pub(crate) candidate: Option<i64>,
    /// The cause of its revision; none if that is missing.
    pub(crate) cause: Option<i32>,
}

impl AuditedChange {
    /// Checks that the value that it left can be read.
    pub(crate) fn parse_value(&self) -> Result<(), StoreError> {
        let id = format!("({}, {})", self.revision, self.contest);
        let at = At {
            table: "changes",
            id: &id,
        };
        let value = self.value.as_ref();
        value.map(|value| at.value("value", value)).transpose()?;
        Ok(())
    }

    /// Checks that its values can be read.
    pub(crate) fn parse(&self) -> Result<(), StoreError> {
        let id = format!("({}, {})", self.revision, self.contest);
        let at = At {
            table: "changes",
            id: &id,
        };
        for (column, value) in [("value", &self.value), ("before_value", &self.before_value)] {
            value.as_ref().map(|value| at.value(column, value)).transpose()?;
        }
        Ok(())
    }
}

/// A change of a candidate's status.
#[derive(Debug, FromRow)]
pub(crate) struct AuditedTransition {
    pub(crate) contest: i64,
    pub(crate) candidate: i64,
    pub(crate) sequence: i64,
    pub(crate) from_status: i32,
    pub(crate) to_status: i32,
    pub(crate) caller: String,
    pub(crate) on_behalf_of: String,
    pub(crate) revision: i64,
}

/// A ruling that a correction made, with what is stored of that.
#[derive(Debug, FromRow)]
pub(crate) struct SentRulingRow {
    pub(crate) contest: i64,
    candidate_id: Vec<u8>,
    pub(crate) accept_order: i64,
    /// The roles of who retracted it, if anybody did.
    sender_roles: Option<String>,
}

impl SentRulingRow {
    /// The ruling, and the roles of who retracted it.
    pub(crate) fn parse(&self) -> Result<(CandidateId, Option<Roles>), StoreError> {
        let at = At {
            table: "retraction_marks",
            id: &StoredId(&self.candidate_id),
        };
        let roles = self.sender_roles.as_ref();
        Ok((
            CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            roles.map(|roles| at.roles("sender_roles", roles)).transpose()?,
        ))
    }
}

impl AuditedTransition {
    /// The status before (none: it was created) and after.
    pub(crate) fn parse(&self) -> Result<(Option<Status>, Status), StoreError> {
        let at = At {
            table: "transitions",
            id: &self.candidate,
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
    /// The key of its contest.
    pub(crate) fn contest(&self) -> i64 {
        self.ballot.contest
    }

    /// The ballot.
    pub(crate) fn parse(&self) -> Result<Ballot, StoreError> {
        self.ballot.parse()
    }
}

/// Everything stored about one feedback, with one of its applied events.
#[derive(Debug, FromRow)]
pub(crate) struct EntryRow {
    pub(crate) feedback_id: Vec<u8>,
    event_id: Option<Vec<u8>>,
    outcome: Option<Vec<u8>>,
    contest: Option<i64>,
    contest_id: Option<Vec<u8>>,
    candidate_id: Option<Vec<u8>>,
    accept_order: Option<i64>,
    voter: Option<Vec<u8>>,
    identified: Option<i32>,
    caller: Option<String>,
    received_at: Option<i64>,
    retracted: Option<i32>,
    system_choice: Option<String>,
    traceparent: Option<String>,
    retraction: Option<Vec<u8>>,
    redaction: Option<Vec<u8>>,
    details: i32,
    rating_contest: Option<Vec<u8>>,
    rating_order: Option<i64>,
    rating_voter: Option<Vec<u8>>,
    rating_class: Option<i32>,
    rating_excluded: Option<i32>,
}

impl EntryRow {
    /// The entry made of all rows of one feedback.
    pub(crate) fn entry_of(rows: &[Self]) -> Result<Entry, StoreError> {
        let id = StoredId(&rows[0].feedback_id);
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
        let feedback = FeedbackId(inbox.uuid("feedback_id", id.0)?);
        let mut events: Vec<AppliedEvent> = events
            .into_iter()
            .map(|(id, outcome)| AppliedEvent { id, outcome })
            .collect();
        events.sort_by_key(|event| event.id);
        let mark = |table: &'static str, event: &Option<Vec<u8>>| {
            let at = At { table, id: &id };
            event
                .as_ref()
                .map(|event| at.uuid("event_id", event).map(EventId))
                .transpose()
        };
        let mut ballots: Vec<CastBallot> = Vec::new();
        for row in rows {
            if let Some(ballot) = row.ballot()?
                && !ballots.iter().any(|known| known.contest == ballot.contest)
            {
                ballots.push(ballot);
            }
        }
        let first = &rows[0];
        Ok(Entry {
            feedback,
            events,
            retraction: mark("retraction_marks", &first.retraction)?,
            redaction: mark("redaction_marks", &first.redaction)?,
            details: first.details != 0,
            ballots,
            rating: first.rating()?,
        })
    }

    fn rating(&self) -> Result<Option<CastRating>, StoreError> {
        let at = At {
            table: "ratings",
            id: &StoredId(&self.feedback_id),
        };
        let (Some(order), Some(voter), Some(class), Some(excluded)) = (
            self.rating_order,
            &self.rating_voter,
            self.rating_class,
            self.rating_excluded,
        ) else {
            return Ok(None);
        };
        let Some(contest) = &self.rating_contest else {
            return Err(at.corrupt("contest", "there is no such contest"));
        };
        Ok(Some(CastRating {
            contest: ContestId(at.uuid("contest_id", contest)?),
            accept_order: AcceptOrder(order),
            voter: VoterKey(at.uuid("voter", voter)?),
            class: at.known("class", class, RatingClass::from_number(class))?,
            excluded: excluded != 0,
        }))
    }

    fn ballot(&self) -> Result<Option<CastBallot>, StoreError> {
        let at = At {
            table: "ballots",
            id: &StoredId(&self.feedback_id),
        };
        let Some(contest) = self.contest else {
            return Ok(None);
        };
        let Some(contest_id) = &self.contest_id else {
            return Err(at.corrupt("contest", "there is no such contest"));
        };
        let row = BallotRow {
            feedback_id: self.feedback_id.clone(),
            contest,
            candidate_id: self.candidate_id.clone().unwrap_or_default(),
            accept_order: self.accept_order.unwrap_or_default(),
            voter: self.voter.clone().unwrap_or_default(),
            identified: self.identified.unwrap_or_default(),
            caller: self.caller.clone().unwrap_or_default(),
            received_at: self.received_at.unwrap_or_default(),
        };
        Ok(Some(CastBallot {
            contest: ContestId(at.uuid("contest_id", contest_id)?),
            ballot: row.parse()?,
            retracted: self.retracted != Some(0),
            system_choice: self.system_choice.clone().unwrap_or_default(),
            traceparent: self.traceparent.clone().unwrap_or_default(),
        }))
    }
}
