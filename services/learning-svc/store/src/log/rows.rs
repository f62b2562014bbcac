//! Rows of the log, and how each becomes a value the rules know.

use std::fmt;

use bytes::Bytes;
use emend_core::{Epoch, InstallationId, OperationId, ResourceValue, Revision, decide::Cause};
use emend_store::{CorruptRow, StoreError};
use sqlx_macros::FromRow;
use uuid::Uuid;

use super::{ChangeRecord, Head, LoggedChange, RevisionRecord, WrittenChange};
use crate::rows::{At, KeyRow, StoredId, actor};

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
    pub changed_since: i32,
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
            changed_since: self.changed_since != 0,
        })
    }
}

/// The head of the log.
#[derive(Debug, FromRow)]
pub(crate) struct HeadRow {
    pub installation_id: Vec<u8>,
    pub epoch: Vec<u8>,
    pub head: i64,
    pub tombstone_horizon: i64,
}

impl HeadRow {
    pub(crate) fn parse(&self) -> Result<Head, StoreError> {
        let uuid = |column, bytes: &[u8]| {
            Uuid::from_slice(bytes).map_err(|error| CorruptRow::new("head", column, 1, error))
        };
        Ok(Head {
            epoch: Epoch(uuid("epoch", &self.epoch)?),
            installation: InstallationId(uuid("installation_id", &self.installation_id)?),
            revision: self.head,
            horizon: self.tombstone_horizon,
        })
    }
}

/// A change with what is joined to it: of a revision, of a contest, and of the log.
#[derive(Debug, FromRow)]
pub(crate) struct LoggedChangeRow {
    pub contest: Option<i64>,
    pub revision: Option<i64>,
    pub committed_at: Option<i64>,
    pub cause: Option<i32>,
    pub namespace: Option<String>,
    pub kind: Option<i32>,
    pub key: Option<String>,
    pub qualifier: Option<String>,
    pub user_id: Option<String>,
    pub value: Option<Vec<u8>>,
    pub value_checksum: Option<i64>,
    pub feedback_received_at: Option<i64>,
    pub traceparent: Option<String>,
}

impl LoggedChangeRow {
    /// The revision and when it was committed; none where the head joins with no revision, after the last.
    pub(crate) fn place(&self) -> Result<Option<(i64, i64)>, StoreError> {
        let Some(revision) = self.revision else {
            return Ok(None);
        };
        let committed_at = self.committed_at;
        let committed_at = committed_at.ok_or_else(|| missing("revisions", "committed_at", revision))?;
        Ok(Some((revision, committed_at)))
    }

    /// A change that a resource comes from, which has a value.
    pub(crate) fn parse_resource(self) -> Result<LoggedChange, StoreError> {
        let contest = self.contest;
        let change = self.parse()?;
        if change.value.is_none() {
            let why = "it is neither here nor in the log";
            return Err(CorruptRow::new("resources", "value", StoredKey(contest), why).into());
        }
        Ok(change)
    }

    pub(crate) fn parse(self) -> Result<LoggedChange, StoreError> {
        let contest = StoredKey(self.contest);
        let revision = self
            .revision
            .ok_or_else(|| missing("changes", "revision", contest))?;
        let of_contest = |column| move || missing("contests", column, contest);
        let of_revision = |column| move || missing("revisions", column, revision);
        Ok(LoggedChange {
            revision,
            namespace: self.namespace.ok_or_else(of_contest("namespace"))?,
            kind: self.kind.ok_or_else(of_contest("kind"))?,
            key: self.key.ok_or_else(of_contest("key"))?,
            qualifier: self.qualifier.ok_or_else(of_contest("qualifier"))?,
            user_id: self.user_id.ok_or_else(of_contest("user_id"))?,
            committed_at: self.committed_at.ok_or_else(of_revision("committed_at"))?,
            cause: self.cause.ok_or_else(of_revision("cause"))?,
            value: self.value.map(Bytes::from),
            checksum: self
                .value_checksum
                .ok_or_else(|| missing("changes", "value_checksum", contest))?
                .cast_unsigned(),
            feedback_received_at: self.feedback_received_at.unwrap_or(0),
            traceparent: self.traceparent.unwrap_or_default(),
        })
    }
}

/// The error for a column without the value that it always has.
fn missing(table: &'static str, column: &'static str, id: impl fmt::Display) -> CorruptRow {
    CorruptRow::new(table, column, id, "is missing")
}

/// The database's key of a contest, for errors.
#[derive(Clone, Copy)]
struct StoredKey(Option<i64>);

impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(contest) => contest.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

/// A change after a revision, with the head as of the same moment; no change of what the revision did not change, and no revision
/// after the last.
#[derive(Debug, FromRow)]
pub(crate) struct LogRow {
    #[sqlx(flatten)]
    pub head: HeadRow,
    #[sqlx(flatten)]
    pub change: LoggedChangeRow,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> LoggedChangeRow {
        LoggedChangeRow {
            contest: Some(7),
            revision: Some(3),
            committed_at: Some(1),
            cause: Some(1),
            namespace: Some("funds".to_owned()),
            kind: Some(1),
            key: Some("k".to_owned()),
            qualifier: Some(String::new()),
            user_id: Some(String::new()),
            value: None,
            value_checksum: Some(0),
            feedback_received_at: None,
            traceparent: None,
        }
    }

    #[test]
    fn only_no_revision_at_all_is_no_place_and_a_revision_without_its_time_is_corrupt() {
        let row = LoggedChangeRow {
            revision: None,
            committed_at: None,
            ..row()
        };
        assert_eq!(row.place().unwrap(), None);
        let row = LoggedChangeRow {
            revision: Some(3),
            ..row
        };
        let told = row.place().unwrap_err().to_string();
        assert!(
            told.contains("revisions") && told.contains("committed_at"),
            "{told}"
        );
        let row = LoggedChangeRow {
            committed_at: Some(5),
            ..row
        };
        assert_eq!(row.place().unwrap(), Some((3, 5)));
    }

    /// Takes a value out of a row.
    type Forget = fn(&mut LoggedChangeRow);

    #[test]
    fn a_missing_value_is_a_corrupt_row_that_names_table_column_and_id() {
        assert_eq!(row().parse().unwrap().revision, 3);
        let cases: [(Forget, [&str; 3]); 6] = [
            (|row| row.revision = None, ["changes", "revision", "7"]),
            (
                |row| row.value_checksum = None,
                ["changes", "value_checksum", "7"],
            ),
            (|row| row.committed_at = None, ["revisions", "committed_at", "3"]),
            (|row| row.cause = None, ["revisions", "cause", "3"]),
            (|row| row.namespace = None, ["contests", "namespace", "7"]),
            (
                |row| (row.contest, row.key) = (None, None),
                ["contests", "key", "unknown"],
            ),
        ];
        for (damage, named) in cases {
            let mut row = row();
            damage(&mut row);
            let error = row.parse().unwrap_err();
            let StoreError::Corrupt(corrupt) = &error else {
                panic!("{error:?}")
            };
            let told = corrupt.to_string();
            assert!(
                named.iter().all(|name| told.contains(name)),
                "{named:?} in {told}"
            );
        }
    }
}
