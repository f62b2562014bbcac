//! Rows of profiles, activities and suggestions.

use emend_core::{
    Revision,
    outputs::{Activity, SURE, SuggestionType},
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{StoredProfile, SuggestionDetails, SuggestionRecord};
use crate::{
    contests::rows::CandidateRecordRow,
    rows::{At, KeyRow, StoredId},
};

/// An entry of a profile, also one that is gone.
#[derive(Debug, FromRow)]
pub(crate) struct EntryRow {
    #[sqlx(flatten)]
    pub key: KeyRow,
    /// NULL: it is gone, or only suggested.
    pub value: Option<Vec<u8>>,
    /// The newest revision that changed it; NULL: none did.
    pub changed: Option<i64>,
}

impl EntryRow {
    /// The profile of all rows of a user.
    pub(crate) fn profile(rows: &[Self]) -> Result<StoredProfile, StoreError> {
        let mut stored = StoredProfile::default();
        for row in rows {
            let key = row.key.parse("contests")?;
            stored.revision = stored.revision.max(Revision(row.changed.unwrap_or(0)));
            if let Some(value) = &row.value {
                let at = At {
                    table: "resources",
                    id: &StoredId(&row.key.contest_id),
                };
                stored.entries.push((key, at.value("value", value)?));
            }
        }
        Ok(stored)
    }
}

/// Something that a user did.
#[derive(Debug, FromRow)]
pub(crate) struct ActivityRow {
    pub source_type: String,
    pub source_id: String,
    pub occurred_at: i64,
    pub summary: String,
    pub technologies: String,
    pub topics: String,
    pub goals: String,
    pub experience_years: i32,
}

impl ActivityRow {
    pub(crate) fn parse(self) -> Result<Activity, StoreError> {
        let at = At {
            table: "activities",
            id: &self.source_id,
        };
        let list = |column: &'static str, json: &str| {
            serde_json::from_str::<Vec<String>>(json).map_err(|error| at.corrupt(column, error))
        };
        Ok(Activity {
            occurred_at: at.time("occurred_at", self.occurred_at)?,
            technologies: list("technologies", &self.technologies)?,
            topics: list("topics", &self.topics)?,
            goals: list("goals", &self.goals)?,
            experience_years: match self.experience_years {
                -1 => None,
                years => Some(at.number("experience_years", years)?),
            },
            source_type: self.source_type,
            source_id: self.source_id,
            summary: self.summary,
        })
    }
}

/// What is kept of a suggestion.
#[derive(Debug, FromRow)]
pub(crate) struct SuggestionRow {
    pub suggested: i64,
    pub suggestion_type: i32,
    pub suggestion_reason: String,
    pub source_type: String,
    pub source_id: String,
    pub confidence: i32,
}

impl SuggestionRow {
    pub(crate) fn parse(self) -> Result<SuggestionDetails, StoreError> {
        let at = At {
            table: "suggestions",
            id: &self.suggested,
        };
        let confidence: u16 = at.number("confidence", self.confidence)?;
        if confidence > SURE {
            return Err(at.corrupt("confidence", "more than 1,000 thousandths"));
        }
        Ok(SuggestionDetails {
            suggestion: at.known(
                "type",
                self.suggestion_type,
                SuggestionType::from_number(self.suggestion_type),
            )?,
            reason: self.suggestion_reason,
            source_type: self.source_type,
            source_id: self.source_id,
            confidence,
        })
    }
}

/// A suggestion with its candidate.
#[derive(Debug, FromRow)]
pub(crate) struct SuggestionRecordRow {
    #[sqlx(flatten)]
    pub candidate: CandidateRecordRow,
    #[sqlx(flatten)]
    pub suggestion: SuggestionRow,
}

impl SuggestionRecordRow {
    pub(crate) fn parse(self) -> Result<SuggestionRecord, StoreError> {
        Ok(SuggestionRecord {
            record: self.candidate.parse()?,
            details: self.suggestion.parse()?,
        })
    }
}
