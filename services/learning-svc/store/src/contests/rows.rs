//! Rows of contests, and how each becomes a value the rules know.

use std::collections::BTreeMap;

use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, FeedbackId, Revision, Ruling, Target,
    candidate::Proposed,
    contest::{CurrentResource, Versions},
    decide::Cause,
    voter::VoterKey,
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{CandidateRecord, FeedbackRecord, KeptCandidate, KnownBallot, LockedContest, TransitionWrite};
use crate::{
    codes,
    rows::{At, KeyRow, StoredId, actor},
};

#[derive(Debug, FromRow)]
pub(crate) struct ContestRow {
    /// Its key within the database.
    pub contest: i64,
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub pinned: i32,
    pub highest_accept_order: i64,
    pub policy_version: i64,
    pub pending: i32,
    pub target_known: i32,
    pub current_version: i32,
    pub last_version: i32,
    pub decisions: i64,
    pub locked_at: i64,
}

impl ContestRow {
    pub(crate) fn parse(&self) -> Result<LockedContest, StoreError> {
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
            target: at.known(
                "target_known",
                self.target_known,
                Target::from_number(self.target_known),
            )?,
            versions: Versions {
                current: at.number("current_version", self.current_version)?,
                last: at.number("last_version", self.last_version)?,
            },
            decisions: self.decisions.unsigned_abs(),
            locked_at: at.time("locked_at", self.locked_at)?,
            is_stored: true,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct CandidateRow {
    /// Its key within the database.
    pub candidate: i64,
    pub candidate_id: Vec<u8>,
    pub contest: i64,
    /// Where it is not stored beside the log, that of the log.
    pub value: Option<Vec<u8>>,
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
    pub ruling_order: i64,
    pub ruling_roles: String,
    pub ruling_approved: i32,
    pub ruling_taken_back: i32,
    pub proposal_version: i32,
    pub proposal_base: i32,
    pub proposal_verdict: i32,
    pub proposal_decided_at: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub transitions: i64,
    pub version: i64,
}

impl CandidateRow {
    /// What is kept of it as a ruling.
    fn ruling(&self, at: At<'_>) -> Result<Option<Ruling>, StoreError> {
        if self.ruling_order == 0 {
            return Ok(None);
        }
        Ok(Some(Ruling {
            accept_order: AcceptOrder(self.ruling_order),
            roles: at.roles("ruling_roles", &self.ruling_roles)?,
            approved: self.ruling_approved != 0,
            taken_back: at.known(
                "ruling_taken_back",
                self.ruling_taken_back,
                codes::parse_taken_back(self.ruling_taken_back),
            )?,
        }))
    }

    /// What is kept of it as a proposal under review.
    fn proposal(&self, at: At<'_>) -> Result<Option<Proposed>, StoreError> {
        if self.proposal_version == 0 {
            return Ok(None);
        }
        let decided_at = match self.proposal_decided_at {
            0 => None,
            microseconds => Some(at.time("proposal_decided_at", microseconds)?),
        };
        Ok(Some(Proposed {
            version: at.number("proposal_version", self.proposal_version)?,
            base: at.number("proposal_base", self.proposal_base)?,
            verdict: at.known(
                "proposal_verdict",
                self.proposal_verdict,
                codes::parse_verdict(self.proposal_verdict),
            )?,
            decided_at,
        }))
    }

    pub(crate) fn parse(&self) -> Result<(Candidate, KeptCandidate), StoreError> {
        let at = At {
            table: "candidates",
            id: &StoredId(&self.candidate_id),
        };
        let edited_from = self
            .edited_from
            .as_ref()
            .map(|id| at.uuid("edited_from", id).map(CandidateId))
            .transpose()?;
        let value = self
            .value
            .as_deref()
            .ok_or_else(|| at.corrupt("value", "is neither here nor in the log"))?;
        let applied_threshold: u32 = at.number("applied_threshold", self.applied_threshold)?;
        let candidate = Candidate {
            id: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            value: at.value("value", value)?,
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
            ruling: self.ruling(at)?,
            proposal: self.proposal(at)?,
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

/// A candidate with the key of its contest.
#[derive(Debug, FromRow)]
pub(crate) struct CandidateRecordRow {
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
    pub(crate) fn parse(self) -> Result<CandidateRecord, StoreError> {
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
    pub(crate) fn parse(&self) -> Result<Ballot, StoreError> {
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
pub(crate) struct KnownBallotRow {
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
    pub(crate) fn parse(self) -> Result<KnownBallot, StoreError> {
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

#[derive(Debug, FromRow)]
pub(crate) struct ResourceRow {
    pub contest: i64,
    pub revision: i64,
    /// Where it is not stored beside the log, that of the log.
    pub value: Option<Vec<u8>>,
    pub committed_at: i64,
}

impl ResourceRow {
    pub(crate) fn parse(&self) -> Result<CurrentResource, StoreError> {
        let at = At {
            table: "resources",
            id: &self.contest,
        };
        let value = self
            .value
            .as_deref()
            .ok_or_else(|| at.corrupt("value", "is neither here nor in the log"))?;
        Ok(CurrentResource {
            revision: Revision(self.revision),
            value: at.value("value", value)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct FeedbackRow {
    pub feedback_id: Vec<u8>,
    pub system_choice: String,
    pub received_at: i64,
    pub retracted: i32,
    /// None where the details were erased.
    pub reason: Option<String>,
    pub context: Option<String>,
    pub query_id: Option<String>,
}

impl FeedbackRow {
    pub(crate) fn parse(self) -> Result<FeedbackRecord, StoreError> {
        let at = At {
            table: "ballot_details",
            id: &StoredId(&self.feedback_id),
        };
        let context: BTreeMap<String, String> = match &self.context {
            None => BTreeMap::new(),
            Some(json) => serde_json::from_str(json).map_err(|error| at.corrupt("context", error))?,
        };
        Ok(FeedbackRecord {
            feedback: FeedbackId(at.uuid("feedback_id", &self.feedback_id)?),
            received_at: at.time("received_at", self.received_at)?,
            retracted: self.retracted != 0,
            system_choice: self.system_choice,
            reason: self.reason.unwrap_or_default(),
            context,
            query_id: self.query_id.unwrap_or_default(),
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct TransitionRow {
    pub candidate_id: Vec<u8>,
    pub sequence: i64,
    pub from_status: i32,
    pub to_status: i32,
    pub cause: i32,
    pub reason: String,
    pub caller: String,
    pub on_behalf_of: String,
    pub made_at: i64,
    pub revision: i64,
    pub policy_version: i64,
}

impl TransitionRow {
    pub(crate) fn parse(self) -> Result<TransitionWrite, StoreError> {
        let at = At {
            table: "transitions",
            id: &StoredId(&self.candidate_id),
        };
        let from = match self.from_status {
            0 => None,
            number => Some(at.known("from_status", number, codes::parse_status(number))?),
        };
        Ok(TransitionWrite {
            candidate: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            sequence: self.sequence,
            from,
            to: at.known("to_status", self.to_status, codes::parse_status(self.to_status))?,
            cause: at.known("cause", self.cause, Cause::from_number(self.cause))?,
            actor: actor(at, "caller", &self.caller, &self.on_behalf_of)?,
            at: at.time("made_at", self.made_at)?,
            revision: Revision(self.revision),
            policy_version: self.policy_version,
            reason: self.reason,
        })
    }
}
