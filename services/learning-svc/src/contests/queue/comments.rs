//! What reviewers ask and tell each other about a candidate. It only shows: whoever is asked need not answer, and anybody may decide.

use std::collections::HashMap;

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{Candidate, CandidateId, Status};
use emend_serve::auth::Access;
use learning_store::{
    contests::CandidateRecord,
    queue::{FirstApproval, MAX_COMMENTS, ReviewComment},
};

use super::{Opened, ReviewQueue};

/// The reason for which nobody is asked about a candidate.
const NOT_WAITING: &str = "NOT_WAITING";

impl ReviewQueue {
    /// Asks another reviewer about a candidate that waits: this one, or anybody else if the name is empty.
    pub async fn ask(
        &self,
        about: &Opened,
        (comment, asked): (&str, &str),
        access: &Access,
    ) -> Result<ReviewComment, Error> {
        let record = self.candidate(about, access).await?;
        if record.candidate.status != Status::AwaitingReview {
            let message = "nobody is asked about a candidate that does not await review".to_owned();
            return Err(Error::FailedPrecondition {
                reason: NOT_WAITING,
                message: message.clone(),
                violations: vec![PreconditionViolation {
                    kind: NOT_WAITING.into(),
                    subject: about.candidate.to_string(),
                    description: message,
                }],
            });
        }
        self.write(about, comment, Some(asked)).await
    }

    /// Comments on a candidate, which answers what others asked.
    pub async fn comment(
        &self,
        about: &Opened,
        comment: &str,
        access: &Access,
    ) -> Result<ReviewComment, Error> {
        self.candidate(about, access).await?;
        self.write(about, comment, None).await
    }

    async fn write(
        &self,
        about: &Opened,
        comment: &str,
        asked: Option<&str>,
    ) -> Result<ReviewComment, Error> {
        let written = self
            .store
            .comment(about.candidate, &about.actor, comment, asked)
            .await?;
        let written = written.ok_or_else(|| Error::ResourceExhausted {
            reason: "COMMENTS_FULL",
            message: format!("the candidate has {MAX_COMMENTS} comments already, which is the maximum"),
            retry_after: None,
        })?;
        self.feed.wake();
        Ok(written)
    }

    /// What was written about a candidate, the oldest first.
    pub async fn comments(&self, candidate: CandidateId) -> Result<Vec<ReviewComment>, Error> {
        Ok(self.store.comments(candidate).await?)
    }

    /// Of these candidates, what was asked about those that wait and nobody has answered.
    pub async fn questions(
        &self,
        records: &[CandidateRecord],
    ) -> Result<HashMap<CandidateId, ReviewComment>, Error> {
        let waits = |candidate: &Candidate| candidate.status == Status::AwaitingReview;
        match &those(records, waits)[..] {
            [] => Ok(HashMap::new()),
            waiting => Ok(self.store.open_questions(waiting).await?),
        }
    }

    /// Of these candidates, who approved those that wait for a second approval.
    pub async fn first_approvals(
        &self,
        records: &[CandidateRecord],
    ) -> Result<HashMap<CandidateId, FirstApproval>, Error> {
        match &those(records, Candidate::awaits_second)[..] {
            [] => Ok(HashMap::new()),
            approved => Ok(self.store.first_approvals(approved).await?),
        }
    }
}

fn those(records: &[CandidateRecord], are: impl Fn(&Candidate) -> bool) -> Vec<CandidateId> {
    let chosen = records.iter().map(|record| &record.candidate);
    chosen
        .filter(|candidate| are(candidate))
        .map(|candidate| candidate.id)
        .collect()
}
