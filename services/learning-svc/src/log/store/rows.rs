//! Rows of the log, and how each becomes a value the rules know.

use emend_core::{OperationId, ResourceValue, Revision, decide::Cause};
use emend_store::StoreError;
use sqlx::FromRow;

use super::{ChangeRecord, RevisionRecord, WrittenChange};
use crate::store::rows::{At, KeyRow, StoredId, actor};

#[derive(Debug, FromRow)]
pub(crate) struct WrittenChangeRow {
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub before_value: Option<Vec<u8>>,
    pub newest: i64,
    pub newest_operation: Option<Vec<u8>>,
    pub cause: i32,
}

impl WrittenChangeRow {
    pub(crate) fn parse(self) -> Result<WrittenChange, StoreError> {
        let at = At {
            table: "changes",
            id: &StoredId(&self.key.contest_id),
        };
        Ok(WrittenChange {
            key: self.key.parse("changes")?,
            before: optional_value(at, "before_value", self.before_value.as_deref())?,
            newest: Revision(self.newest),
            newest_operation: self
                .newest_operation
                .map(|id| at.uuid("operation_id", &id).map(OperationId))
                .transpose()?,
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
    // Of an erased user's values, and of those before the newest of a window, nothing is left but that they were there.
    bytes
        .filter(|bytes| !bytes.is_empty())
        .map(|bytes| at.value(column, bytes))
        .transpose()
}

#[derive(Debug, FromRow)]
pub(crate) struct RevisionRow {
    pub revision: i64,
    pub operation_id: Option<Vec<u8>>,
    pub cause: i32,
    pub caller: String,
    pub on_behalf_of: String,
    pub reason: String,
    pub committed_at: i64,
}

impl RevisionRow {
    pub(crate) fn parse(self) -> Result<RevisionRecord, StoreError> {
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
pub(crate) struct ChangeRow {
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub revision: i64,
    pub value: Option<Vec<u8>>,
    pub value_checksum: i64,
    pub before_value: Option<Vec<u8>>,
    pub candidate_id: Option<Vec<u8>>,
    pub feedback_id: Option<Vec<u8>>,
    pub policy_version: i64,
}

impl ChangeRow {
    pub(crate) fn parse(self) -> Result<ChangeRecord, StoreError> {
        let id = format!("({}, {})", self.revision, StoredId(&self.key.contest_id));
        let at = At {
            table: "changes",
            id: &id,
        };
        Ok(ChangeRecord {
            key: self.key.parse("changes")?,
            before: optional_value(at, "before_value", self.before_value.as_deref())?,
            after: optional_value(at, "value", self.value.as_deref())?,
            is_dropped: self.value.as_ref().is_some_and(Vec::is_empty),
            checksum: self.value_checksum.cast_unsigned(),
            candidate: id_text(at, "candidate_id", self.candidate_id.as_deref())?,
            feedback: id_text(at, "feedback_id", self.feedback_id.as_deref())?,
            policy_version: self.policy_version,
        })
    }
}
