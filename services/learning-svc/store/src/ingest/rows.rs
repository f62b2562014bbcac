//! Rows of the inbox and of marks.

use bytes::Bytes;
use emend_core::{EventId, FeedbackId, Roles};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use crate::rows::{At, StoredId};

/// One of: an applied event (1), a retraction mark (2), a redaction mark (3).
#[derive(Debug, FromRow)]
pub(crate) struct SeenRow {
    pub what: i32,
    pub id: Vec<u8>,
    pub outcome: Option<Vec<u8>>,
    pub roles: String,
}

impl SeenRow {
    pub(crate) fn event(&self) -> Result<EventId, StoreError> {
        let at = At {
            table: "inbox",
            id: &StoredId(&self.id),
        };
        Ok(EventId(at.uuid("event_id", &self.id)?))
    }

    pub(crate) fn feedback(&self) -> Result<FeedbackId, StoreError> {
        let at = At {
            table: "retraction_marks or redaction_marks",
            id: &StoredId(&self.id),
        };
        Ok(FeedbackId(at.uuid("feedback_id", &self.id)?))
    }

    pub(crate) fn roles(&self) -> Result<Roles, StoreError> {
        let at = At {
            table: "retraction_marks",
            id: &StoredId(&self.id),
        };
        at.roles("sender_roles", &self.roles)
    }

    pub(crate) fn outcome(self) -> Bytes {
        self.outcome.unwrap_or_default().into()
    }
}
