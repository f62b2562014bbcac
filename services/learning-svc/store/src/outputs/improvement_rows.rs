//! Rows of improvements, and of what is counted of ratings.

use emend_core::{CandidateId, ContestId, Rated, RatingClass, candidate::Verdict};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{
    improvements::{Arrival, Counts, CurrentVersion, ImprovementRecord, Newest, Progress, VersionStats},
    rows::RatingRow,
};
use crate::{
    codes,
    contests::rows::TransitionRow,
    rows::{At, StoredId},
};

/// One of the newest improvements of a target.
#[derive(Debug, FromRow)]
pub(crate) struct ProgressRow {
    pub improvement_id: Vec<u8>,
    /// None while it is generated.
    pub candidate_id: Option<Vec<u8>>,
    /// 1: somebody has a lease of it.
    pub leased: i32,
    pub newest_rating: i64,
    /// Of its candidate.
    pub proposal_verdict: Option<i32>,
    pub created_at: Option<i64>,
}

impl ProgressRow {
    /// What the newest rows of a target come to.
    pub(crate) fn progress(rows: &[Self]) -> Result<Progress, StoreError> {
        let mut progress = Progress::default();
        for row in rows {
            match row.newest()? {
                None => progress.is_running |= row.leased != 0,
                newest => {
                    progress.newest = newest;
                    break;
                }
            }
        }
        Ok(progress)
    }

    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        let at = At {
            table: "improvements",
            id: &StoredId(&self.improvement_id),
        };
        let Some(candidate) = &self.candidate_id else {
            return Ok(None);
        };
        let verdict = at.known(
            "candidate_id",
            "no such candidate",
            self.proposal_verdict.and_then(codes::parse_verdict),
        )?;
        Ok(Some(Newest {
            candidate: CandidateId(at.uuid("candidate_id", candidate)?),
            is_open: verdict == Verdict::Open,
            newest_rating: Arrival(self.newest_rating),
            proposed_at: at.time("candidate_id", self.created_at.unwrap_or_default())?,
        }))
    }
}

/// The version of a prompt that is current.
#[derive(Debug, FromRow)]
pub(crate) struct CurrentVersionRow {
    pub current_version: i32,
    pub since_rating: i64,
}

impl CurrentVersionRow {
    pub(crate) fn parse(contest: ContestId, row: Option<Self>) -> Result<Option<CurrentVersion>, StoreError> {
        let at = At {
            table: "contests",
            id: &contest,
        };
        row.map(|row| {
            Ok(CurrentVersion {
                number: at.number("current_version", row.current_version)?,
                since: Arrival(row.since_rating),
            })
        })
        .transpose()
    }
}

/// What is kept of an improvement.
#[derive(Debug, FromRow)]
pub(crate) struct ImprovementRow {
    pub candidate_id: Vec<u8>,
    pub generator: String,
    pub reason: String,
    pub good_count: i32,
    pub neutral_count: i32,
    pub bad_count: i32,
    pub redacted: i64,
}

impl ImprovementRow {
    pub(crate) fn parse(self) -> Result<(CandidateId, ImprovementRecord), StoreError> {
        let at = At {
            table: "improvements",
            id: &StoredId(&self.candidate_id),
        };
        let record = ImprovementRecord {
            counts: Counts {
                good: at.number("good_count", self.good_count)?,
                neutral: at.number("neutral_count", self.neutral_count)?,
                bad: at.number("bad_count", self.bad_count)?,
            },
            redacted: at.number("redacted", self.redacted)?,
            generator: self.generator,
            reason: self.reason,
        };
        Ok((CandidateId(at.uuid("candidate_id", &self.candidate_id)?), record))
    }
}

/// A rating with its place by arrival.
#[derive(Debug, FromRow)]
pub(crate) struct ArrivedRow {
    pub rating: i64,
    #[sqlx(flatten)]
    pub row: RatingRow,
}

impl ArrivedRow {
    pub(crate) fn parse(self) -> Result<(Arrival, Rated), StoreError> {
        Ok((Arrival(self.rating), self.row.parse()?))
    }
}

/// How many ratings are of a class.
#[derive(Debug, FromRow)]
pub(crate) struct ClassCountRow {
    pub class: i32,
    pub count: i64,
}

impl ClassCountRow {
    /// What the rows of one window come to.
    pub(crate) fn counts(rows: &[Self]) -> Result<Counts, StoreError> {
        let at = At {
            table: "ratings",
            id: &"count",
        };
        let mut counts = Counts::default();
        for row in rows {
            let class = at.known("class", row.class, RatingClass::from_number(row.class))?;
            counts.add(class, at.number("count", row.count)?);
        }
        Ok(counts)
    }
}

/// The ratings of what one version of a prompt made.
#[derive(Debug, FromRow)]
pub(crate) struct VersionStatsRow {
    pub prompt_version: String,
    pub good: i64,
    pub neutral: i64,
    pub bad: i64,
    pub first_at: i64,
    pub last_at: i64,
}

impl VersionStatsRow {
    pub(crate) fn parse(self) -> Result<VersionStats, StoreError> {
        let at = At {
            table: "ratings",
            id: &self.prompt_version,
        };
        Ok(VersionStats {
            counts: Counts {
                good: at.number("good", self.good)?,
                neutral: at.number("neutral", self.neutral)?,
                bad: at.number("bad", self.bad)?,
            },
            first: at.time("received_at", self.first_at)?,
            last: at.time("received_at", self.last_at)?,
            prompt_version: self.prompt_version.clone(),
        })
    }
}

/// What was decided about a version of a prompt under a label.
#[derive(Debug, FromRow)]
pub(crate) struct DecisionRow {
    pub key: String,
    pub qualifier: String,
    pub proposal_version: i32,
    #[sqlx(flatten)]
    pub transition: TransitionRow,
}
