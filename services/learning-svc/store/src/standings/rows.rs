//! Rows of what feedbacks support.

use emend_core::{
    CandidateId, FeedbackId, Kind, RatingClass, Revision, decide::Exclusion, standing::RatingPlace,
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{BallotNow, CandidateNow, RatingNow};
use crate::{
    contests::rows::CandidateRow,
    outputs::rows::KnownRatingRow,
    rows::{At, StoredId},
};

#[derive(Debug, FromRow)]
pub(crate) struct BallotNowRow {
    pub feedback_id: Vec<u8>,
    pub candidate_id: Vec<u8>,
    pub kind: i32,
    pub retracted: i32,
}

impl BallotNowRow {
    pub(crate) fn parse(&self) -> Result<BallotNow, StoreError> {
        let at = At {
            table: "ballots",
            id: &StoredId(&self.feedback_id),
        };
        Ok(BallotNow {
            feedback: FeedbackId(at.uuid("feedback_id", &self.feedback_id)?),
            candidate: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            kind: at.known("kind", self.kind, Kind::from_number(self.kind))?,
            retracted: self.retracted != 0,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct CandidateNowRow {
    #[sqlx(flatten)]
    pub candidate: CandidateRow,
    /// None where there is no resource.
    pub resource_revision: Option<i64>,
}

impl CandidateNowRow {
    pub(crate) fn parse(&self) -> Result<CandidateNow, StoreError> {
        let (candidate, _) = self.candidate.parse()?;
        Ok(CandidateNow {
            candidate,
            resource: self.resource_revision.map(Revision),
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct RatingNowRow {
    #[sqlx(flatten)]
    pub known: KnownRatingRow,
    /// Whether there is a mark of a retraction.
    pub marked: i32,
    /// None where its output has no row: nobody rated it good or bad.
    pub output_class: Option<i32>,
    pub newer: i64,
}

impl RatingNowRow {
    pub(crate) fn parse(self) -> Result<RatingNow, StoreError> {
        let known = self.known.parse()?;
        let at = At {
            table: "ratings",
            id: &known.rated.feedback,
        };
        let excluded = known.rated.excluded.then_some(if self.marked != 0 {
            Exclusion::Retraction
        } else {
            Exclusion::Redaction
        });
        let class = match self.output_class.unwrap_or(0) {
            0 => None,
            class => Some(at.known("class", class, RatingClass::from_number(class))?),
        };
        let newer = at.number("newer", self.newer)?;
        Ok(RatingNow {
            known,
            place: RatingPlace {
                excluded,
                class,
                newer,
            },
        })
    }
}
