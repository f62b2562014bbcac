//! Rows of what happened: feedback, transitions, revisions and changes.

use std::collections::BTreeMap;

use emend_core::{CandidateId, FeedbackId, ResourceValue, Revision, decide::Cause};
use emend_store::StoreError;
use sqlx::FromRow;

use super::{At, KeyRow, StoredId, actor};
use crate::store::{
    codes,
    decisions::{ChangeRecord, FeedbackRecord, RevisionRecord, TransitionWrite, WrittenChange},
};

#[derive(Debug, FromRow)]
pub(in crate::store) struct WrittenChangeRow {
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub before_value: Option<Vec<u8>>,
    pub newest: i64,
    pub cause: i32,
}

impl WrittenChangeRow {
    pub(in crate::store) fn parse(self) -> Result<WrittenChange, StoreError> {
        let at = At {
            table: "changes",
            id: &StoredId(&self.key.contest_id),
        };
        Ok(WrittenChange {
            key: self.key.parse("changes")?,
            before: optional_value(at, "before_value", self.before_value.as_deref())?,
            newest: Revision(self.newest),
            by_erasure: self.cause == Cause::Erasure.number(),
        })
    }
}

/// The text of an id; empty if there is none.
fn id_text(at: At<'_>, column: &'static str, id: Option<&[u8]>) -> Result<String, StoreError> {
    id.map_or(Ok(String::new()), |id| Ok(at.uuid(column, id)?.to_string()))
}

fn optional_value(
    at: At<'_>,
    column: &'static str,
    bytes: Option<&[u8]>,
) -> Result<Option<ResourceValue>, StoreError> {
    // Of an erased user's values nothing is left but that they were there.
    bytes
        .filter(|bytes| !bytes.is_empty())
        .map(|bytes| at.value(column, bytes))
        .transpose()
}

#[derive(Debug, FromRow)]
pub(in crate::store) struct FeedbackRow {
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
    pub(in crate::store) fn parse(self) -> Result<FeedbackRecord, StoreError> {
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
pub(in crate::store) struct TransitionRow {
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
    pub(in crate::store) fn parse(self) -> Result<TransitionWrite, StoreError> {
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

#[derive(Debug, FromRow)]
pub(in crate::store) struct RevisionRow {
    pub revision: i64,
    pub operation_id: Option<Vec<u8>>,
    pub cause: i32,
    pub caller: String,
    pub on_behalf_of: String,
    pub reason: String,
    pub committed_at: i64,
}

impl RevisionRow {
    pub(in crate::store) fn parse(self) -> Result<RevisionRecord, StoreError> {
        let at = At {
            table: "revisions",
            id: &self.revision,
        };
        Ok(RevisionRecord {
            revision: Revision(self.revision),
            cause: at.known("cause", self.cause, Cause::from_number(self.cause))?,
            actor: actor(at, "caller", &self.caller, &self.on_behalf_of)?,
            committed_at: at.time("committed_at", self.committed_at)?,
            operation: id_text(at, "operation_id", self.operation_id.as_deref())?,
            reason: self.reason,
            changes: Vec::new(),
        })
    }
}

#[derive(Debug, FromRow)]
pub(in crate::store) struct ChangeRow {
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub revision: i64,
    pub value: Option<Vec<u8>>,
    pub before_value: Option<Vec<u8>>,
    pub candidate_id: Option<Vec<u8>>,
    pub feedback_id: Option<Vec<u8>>,
    pub policy_version: i64,
}

impl ChangeRow {
    pub(in crate::store) fn parse(self) -> Result<ChangeRecord, StoreError> {
        let id = format!("({}, {})", self.revision, StoredId(&self.key.contest_id));
        let at = At {
            table: "changes",
            id: &id,
        };
        Ok(ChangeRecord {
            key: self.key.parse("changes")?,
            before: optional_value(at, "before_value", self.before_value.as_deref())?,
            after: optional_value(at, "value", self.value.as_deref())?,
            candidate: id_text(at, "candidate_id", self.candidate_id.as_deref())?,
            feedback: id_text(at, "feedback_id", self.feedback_id.as_deref())?,
            policy_version: self.policy_version,
        })
    }
}
