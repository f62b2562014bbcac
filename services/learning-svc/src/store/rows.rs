//! Database rows, and how each becomes a value the rules know: parsed, never trusted.

pub(crate) mod audited;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod history;

use std::fmt;

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestId, EventId, FeedbackId, Invalid, Kind,
    Namespace, Policy, ResourceKey, ResourceValue, Revision,
    contest::{CurrentResource, VoterKey},
};
use emend_store::{CorruptRow, StoreError};
use jiff::{SignedDuration, Timestamp};
use sqlx::FromRow;
use uuid::Uuid;

use super::{
    codes,
    decisions::{Actor, CandidateRecord, KeptCandidate, KnownBallot, LockedContest, PolicyKey, StoredPolicy},
};

pub(super) use self::history::{ChangeRow, FeedbackRow, RevisionRow, TransitionRow, WrittenChangeRow};

/// The table and row of a column, to be named in errors.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub table: &'static str,
    pub id: &'a dyn fmt::Display,
}

/// An id as stored: the 16 bytes of a UUID. Shown as text; other bytes, in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredId<'a>(pub &'a [u8]);

impl fmt::Display for StoredId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(self.0) {
            Ok(id) => write!(f, "{id}"),
            Err(_) => self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The bytes of an id that may be missing.
pub(super) fn optional_id(id: Option<Uuid>) -> Option<Vec<u8>> {
    id.map(|id| id.as_bytes().to_vec())
}

impl At<'_> {
    pub(super) fn corrupt(self, column: &'static str, reason: impl std::fmt::Display) -> StoreError {
        CorruptRow::new(self.table, column, self.id, reason).into()
    }

    /// The parsed value of a column.
    pub(super) fn parse<T>(self, column: &'static str, parsed: Result<T, Invalid>) -> Result<T, StoreError> {
        parsed.map_err(|invalid| self.corrupt(column, invalid))
    }

    /// The value of a code, which must be known.
    pub(super) fn known<T>(
        self,
        column: &'static str,
        code: impl std::fmt::Display,
        known: Option<T>,
    ) -> Result<T, StoreError> {
        known.ok_or_else(|| self.corrupt(column, format_args!("unknown: {code}")))
    }

    /// A number that must fit the target type, for example not be negative.
    pub(super) fn number<T, N: TryInto<T> + std::fmt::Display + Copy>(
        self,
        column: &'static str,
        number: N,
    ) -> Result<T, StoreError> {
        number
            .try_into()
            .map_err(|_| self.corrupt(column, format_args!("out of range: {number}")))
    }

    /// Parses microseconds since 1970.
    pub(super) fn time(self, column: &'static str, micros: i64) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(micros).map_err(|error| self.corrupt(column, error))
    }

    pub(super) fn uuid(self, column: &'static str, bytes: &[u8]) -> Result<Uuid, StoreError> {
        Uuid::from_slice(bytes).map_err(|error| self.corrupt(column, error))
    }

    pub(super) fn value(self, column: &'static str, bytes: &[u8]) -> Result<ResourceValue, StoreError> {
        self.parse(column, emend_wire::value::decode(bytes))
    }
}

/// The parts of a resource key.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub contest_id: Vec<u8>,
    pub namespace: String,
    pub kind: i32,
    pub key: String,
    pub qualifier: String,
    pub user_id: String,
}

impl KeyRow {
    /// The key. Its parts must give the id it is stored under.
    pub(super) fn parse(&self, table: &'static str) -> Result<ResourceKey, StoreError> {
        let at = At {
            table,
            id: &StoredId(&self.contest_id),
        };
        let kind = at.known("kind", self.kind, Kind::from_number(self.kind))?;
        let key = ResourceKey::parse(
            &self.namespace,
            Some(kind),
            &self.key,
            &self.qualifier,
            &self.user_id,
        )
        .map_err(|violations| at.corrupt("key", violations))?;
        let id = ContestId(at.uuid("contest_id", &self.contest_id)?);
        if key.contest_id() == id {
            Ok(key)
        } else {
            Err(at.corrupt("key", "another key than the one that gives this id"))
        }
    }
}

#[derive(Debug, FromRow)]
pub(super) struct ContestRow {
    /// Its key within the database.
    pub contest: i64,
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub pinned: i32,
    pub highest_accept_order: i64,
    pub policy_version: i64,
    pub pending: i32,
    pub locked_at: i64,
}

impl ContestRow {
    pub(super) fn parse(&self) -> Result<LockedContest, StoreError> {
        let at = At {
            table: "contests",
            id: &StoredId(&self.key.contest_id),
        };
        Ok(LockedContest {
            key: self.key.parse("contests")?,
            pinned: self.pinned != 0,
            highest_accept_order: AcceptOrder(self.highest_accept_order),
            policy_version: self.policy_version,
            pending: self.pending != 0,
            locked_at: at.time("locked_at", self.locked_at)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct CandidateRow {
    /// Its key within the database.
    pub candidate: i64,
    pub candidate_id: Vec<u8>,
    pub contest: i64,
    pub value: Vec<u8>,
    pub status: i32,
    pub status_reason: String,
    pub origin: i32,
    pub edited_from: Option<Vec<u8>>,
    pub hold: String,
    pub decision_reason: String,
    pub decided_caller: String,
    pub decided_for: String,
    pub occurrences: i64,
    pub reporters: i64,
    pub net: i64,
    pub risk: i32,
    pub threshold: i32,
    pub policy_version: i64,
    pub applied_threshold: i32,
    pub applied_revision: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub transitions: i64,
    pub version: i64,
}

impl CandidateRow {
    pub(super) fn parse(&self) -> Result<(Candidate, KeptCandidate), StoreError> {
        let at = At {
            table: "candidates",
            id: &StoredId(&self.candidate_id),
        };
        let edited_from = self
            .edited_from
            .as_ref()
            .map(|id| at.uuid("edited_from", id).map(CandidateId))
            .transpose()?;
        let applied_threshold: u32 = at.number("applied_threshold", self.applied_threshold)?;
        let candidate = Candidate {
            id: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            value: at.value("value", &self.value)?,
            status: at.known("status", self.status, codes::parse_status(self.status))?,
            reason: at.known(
                "status_reason",
                &self.status_reason,
                codes::parse_reason(&self.status_reason),
            )?,
            origin: at.known("origin", self.origin, codes::parse_origin(self.origin))?,
            edited_from,
            hold: at.known("hold", &self.hold, codes::parse_hold(&self.hold))?,
            decision_reason: (!self.decision_reason.is_empty()).then(|| self.decision_reason.clone()),
            occurrences: at.number("occurrences", self.occurrences)?,
            reporters: at.number("reporters", self.reporters)?,
            net: self.net,
            risk: at.known("risk", self.risk, codes::parse_risk(self.risk))?,
            threshold: at.number("threshold", self.threshold)?,
            policy_version: self.policy_version,
            applied_threshold: (applied_threshold > 0).then_some(applied_threshold),
            applied_revision: Revision(self.applied_revision),
        };
        let kept = KeptCandidate {
            decided_by: actor(at, "decided_caller", &self.decided_caller, &self.decided_for)?,
            created_at: at.time("created_at", self.created_at)?,
            updated_at: at.time("updated_at", self.updated_at)?,
            transitions: self.transitions,
            version: self.version,
        };
        Ok((candidate, kept))
    }
}

fn actor(at: At<'_>, column: &'static str, caller: &str, on_behalf_of: &str) -> Result<Actor, StoreError> {
    Ok(Actor {
        caller: at.parse(column, Caller::parse(caller))?,
        on_behalf_of: on_behalf_of.to_owned(),
    })
}

/// A candidate with the key of its contest.
#[derive(Debug, FromRow)]
pub(super) struct CandidateRecordRow {
    #[sqlx(flatten)]
    pub candidate: CandidateRow,
    pub contest_id: Vec<u8>,
    pub namespace: String,
    pub kind: i32,
    pub key: String,
    pub qualifier: String,
    pub user_id: String,
    pub pinned: i32,
}

impl CandidateRecordRow {
    pub(super) fn parse(self) -> Result<CandidateRecord, StoreError> {
        let (candidate, kept) = self.candidate.parse()?;
        let key = KeyRow {
            contest_id: self.contest_id,
            namespace: self.namespace,
            kind: self.kind,
            key: self.key,
            qualifier: self.qualifier,
            user_id: self.user_id,
        };
        Ok(CandidateRecord {
            candidate,
            key: key.parse("contests")?,
            contest_pinned: self.pinned != 0,
            kept,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct BallotRow {
    pub feedback_id: Vec<u8>,
    pub contest: i64,
    pub candidate_id: Vec<u8>,
    pub accept_order: i64,
    pub voter: Vec<u8>,
    pub identified: i32,
    pub caller: String,
    pub received_at: i64,
}

impl BallotRow {
    pub(super) fn parse(&self) -> Result<Ballot, StoreError> {
        let at = At {
            table: "ballots",
            id: &StoredId(&self.feedback_id),
        };
        Ok(Ballot {
            feedback_id: FeedbackId(at.uuid("feedback_id", &self.feedback_id)?),
            accept_order: AcceptOrder(self.accept_order),
            voter: VoterKey(at.uuid("voter", &self.voter)?),
            identified: self.identified != 0,
            caller: at.parse("caller", Caller::parse(&self.caller))?,
            candidate: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            received_at: at.time("received_at", self.received_at)?,
        })
    }
}

/// A ballot with the key of its contest.
#[derive(Debug, FromRow)]
pub(super) struct KnownBallotRow {
    #[sqlx(flatten)]
    pub ballot: BallotRow,
    pub retracted: i32,
    pub contest_id: Vec<u8>,
    pub namespace: String,
    pub kind: i32,
    pub key: String,
    pub qualifier: String,
    pub user_id: String,
}

impl KnownBallotRow {
    pub(super) fn parse(self) -> Result<KnownBallot, StoreError> {
        let ballot = self.ballot.parse()?;
        let key = KeyRow {
            contest_id: self.contest_id,
            namespace: self.namespace,
            kind: self.kind,
            key: self.key,
            qualifier: self.qualifier,
            user_id: self.user_id,
        };
        Ok(KnownBallot {
            key: key.parse("contests")?,
            ballot,
            retracted: self.retracted != 0,
        })
    }
}

/// One of: an applied event (1), a retraction mark (2), a redaction mark (3).
#[derive(Debug, FromRow)]
pub(super) struct SeenRow {
    pub what: i32,
    pub id: Vec<u8>,
    pub outcome: Option<Vec<u8>>,
}

impl SeenRow {
    pub(super) fn event(&self) -> Result<EventId, StoreError> {
        let at = At {
            table: "inbox",
            id: &StoredId(&self.id),
        };
        Ok(EventId(at.uuid("event_id", &self.id)?))
    }

    pub(super) fn feedback(&self) -> Result<FeedbackId, StoreError> {
        let at = At {
            table: "retraction_marks or redaction_marks",
            id: &StoredId(&self.id),
        };
        Ok(FeedbackId(at.uuid("feedback_id", &self.id)?))
    }

    pub(super) fn outcome(self) -> Bytes {
        self.outcome.unwrap_or_default().into()
    }
}

#[derive(Debug, FromRow)]
pub(super) struct ResourceRow {
    pub contest: i64,
    pub revision: i64,
    pub value: Vec<u8>,
    pub committed_at: i64,
}

impl ResourceRow {
    pub(super) fn parse(&self) -> Result<CurrentResource, StoreError> {
        let at = At {
            table: "resources",
            id: &self.contest,
        };
        Ok(CurrentResource {
            revision: Revision(self.revision),
            value: at.value("value", &self.value)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(super) struct CountRow {
    pub namespace: String,
    pub kind: i32,
    pub count: i64,
}

impl CountRow {
    pub(super) fn parse(&self) -> Result<(PolicyKey, u64), StoreError> {
        let at = At {
            table: "resource_counts",
            id: &self.namespace,
        };
        let key = PolicyKey {
            namespace: at.parse("namespace", Namespace::parse(&self.namespace))?,
            kind: at.known("kind", self.kind, Kind::from_number(self.kind))?,
        };
        Ok((key, at.number("count", self.count)?))
    }
}

#[derive(Debug, FromRow)]
pub(super) struct PolicyRow {
    pub namespace: String,
    pub kind: i32,
    pub version: i64,
    pub risk: i32,
    pub threshold: i32,
    pub counting: i32,
    pub half_life: i64,
    pub max_derived_voters: i32,
    pub max_resources: i64,
    pub max_value_bytes: i32,
    pub max_counted_feedback: i32,
    pub updated_at: i64,
}

impl PolicyRow {
    pub(super) fn parse(&self) -> Result<(PolicyKey, StoredPolicy), StoreError> {
        let id = format!("({}, {}, {})", self.namespace, self.kind, self.version);
        let at = At {
            table: "policies",
            id: &id,
        };
        let key = PolicyKey {
            namespace: at.parse("namespace", Namespace::parse(&self.namespace))?,
            kind: at.known("kind", self.kind, Kind::from_number(self.kind))?,
        };
        let policy = Policy {
            version: self.version,
            risk: at.known("risk", self.risk, codes::parse_risk(self.risk))?,
            threshold: at.number("threshold", self.threshold)?,
            counting: at.known("counting", self.counting, codes::parse_counting(self.counting))?,
            half_life: (self.half_life > 0).then(|| SignedDuration::from_secs(self.half_life)),
            max_derived_voters: at.number("max_derived_voters", self.max_derived_voters)?,
            max_resources: at.number("max_resources", self.max_resources)?,
            max_value_bytes: at.number("max_value_bytes", self.max_value_bytes)?,
            max_counted_feedback: at.number("max_counted_feedback", self.max_counted_feedback)?,
        };
        policy
            .validate()
            .map_err(|violations| at.corrupt("threshold", violations))?;
        let stored = StoredPolicy {
            policy,
            updated_at: Some(at.time("updated_at", self.updated_at)?),
        };
        Ok((key, stored))
    }
}
