//! Rows of ratings, and of the outputs that were rated.

use emend_core::{
    AcceptOrder, FeedbackId, OutputTally, Rated, RatedId, RatedTexts, RatingClass, voter::VoterKey,
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::KnownRating;
use crate::rows::{At, KeyRow, StoredId};

/// A rating, with its texts if they were asked for.
#[derive(Debug, FromRow)]
pub(crate) struct RatingRow {
    pub feedback_id: Vec<u8>,
    /// The key of its contest within the database.
    pub contest: i64,
    pub accept_order: i64,
    pub voter: Vec<u8>,
    pub rated: Vec<u8>,
    pub class: i32,
    pub prompt_version: String,
    pub received_at: i64,
    pub excluded: i32,
    pub live: i32,
    pub input: Option<String>,
    pub output: Option<String>,
    pub corrected: Option<String>,
    pub judgement: Option<String>,
    pub issues: Option<String>,
}

impl RatingRow {
    pub(crate) fn parse(self) -> Result<Rated, StoreError> {
        let at = At {
            table: "ratings",
            id: &StoredId(&self.feedback_id),
        };
        let issues = match &self.issues {
            None => Vec::new(),
            Some(json) => serde_json::from_str(json).map_err(|error| at.corrupt("issues", error))?,
        };
        Ok(Rated {
            feedback: FeedbackId(at.uuid("feedback_id", &self.feedback_id)?),
            accept_order: AcceptOrder(self.accept_order),
            voter: VoterKey(at.uuid("voter", &self.voter)?),
            rated: RatedId(at.uuid("rated", &self.rated)?),
            class: at.known("class", self.class, RatingClass::from_number(self.class))?,
            received_at: at.time("received_at", self.received_at)?,
            excluded: self.excluded != 0,
            live: self.live != 0,
            prompt_version: self.prompt_version,
            texts: RatedTexts {
                input: self.input.unwrap_or_default(),
                output: self.output.unwrap_or_default(),
                issues,
                corrected: self.corrected.unwrap_or_default(),
                judgement: self.judgement.unwrap_or_default(),
            },
        })
    }
}

/// A rating with the key of its contest.
#[derive(Debug, FromRow)]
pub(crate) struct KnownRatingRow {
    #[sqlx(flatten)]
    pub rating: RatingRow,
    #[sqlx(flatten)]
    pub key: KeyRow,
}

impl KnownRatingRow {
    pub(crate) fn parse(self) -> Result<KnownRating, StoreError> {
        Ok(KnownRating {
            key: self.key.parse("contests")?,
            rated: self.rating.parse()?,
        })
    }
}

/// What an output comes to.
#[derive(Debug, FromRow)]
pub(crate) struct OutputRow {
    /// The key of its contest within the database.
    pub contest: i64,
    pub rated: Vec<u8>,
    pub good: i32,
    pub bad: i32,
    pub class: i32,
    pub accept_order: Option<i64>,
    pub feedback_id: Option<Vec<u8>>,
}

/// The number of what an output counts as; 0 of one that is neither.
pub(crate) fn class_number(output: &OutputTally) -> i32 {
    output.class().map_or(0, RatingClass::number)
}

impl OutputRow {
    pub(crate) fn parse(&self) -> Result<OutputTally, StoreError> {
        let at = At {
            table: "rated_outputs",
            id: &StoredId(&self.rated),
        };
        let place = match (self.accept_order, &self.feedback_id) {
            (Some(order), Some(feedback)) => {
                Some((AcceptOrder(order), FeedbackId(at.uuid("feedback_id", feedback)?)))
            }
            (None, None) => None,
            _ => return Err(at.corrupt("accept_order", "half of a place")),
        };
        let output = OutputTally {
            rated: RatedId(at.uuid("rated", &self.rated)?),
            good: at.number("good", self.good)?,
            bad: at.number("bad", self.bad)?,
            place,
        };
        if class_number(&output) != self.class || output.class().is_some() != place.is_some() {
            return Err(at.corrupt("class", "it is not what its counts say"));
        }
        Ok(output)
    }
}
