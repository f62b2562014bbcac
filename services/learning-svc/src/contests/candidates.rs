//! What a reviewer needs to know about a candidate.

use std::collections::HashSet;

use emend_base::Error;
use emend_core::{CandidateId, FeedbackId, Kind, Namespace};
use emend_serve::auth::Access;
use jiff::Timestamp;
use learning_store::{
    contests::{CandidateFilter, CandidatePosition, CandidateRecord, FeedbackRecord, TransitionWrite},
    policies::PolicyKey,
    profiles::SuggestionDetails,
};

use crate::contests::Contests;

/// Maximum votes, rivals and feedbacks shown.
const SHOWN: u32 = 100;
/// Maximum transitions shown.
const HISTORY: u32 = 200;

/// A live vote.
#[derive(Debug, Clone)]
pub struct LiveVote {
    /// The reporter; empty if not given or erased.
    pub reporter: String,
    /// The client that sent it.
    pub caller: String,
    /// Whether the voter counts by itself.
    pub identified: bool,
    /// The feedback that cast it.
    pub feedback: FeedbackId,
    /// When that feedback was received.
    pub received_at: Timestamp,
}

/// A candidate with everything shown about it.
#[derive(Debug, Clone)]
pub struct CandidateDetails {
    /// The candidate.
    pub record: CandidateRecord,
    /// Its live votes, newest first.
    pub votes: Vec<LiveVote>,
    /// The other candidates of its contest, strongest first.
    pub rivals: Vec<CandidateRecord>,
    /// The feedbacks that proposed it, newest first.
    pub feedback: Vec<FeedbackRecord>,
    /// Its newest transitions, oldest first.
    pub history: Vec<TransitionWrite>,
    /// What is kept of it as a suggested entry of a profile.
    pub suggestion: Option<SuggestionDetails>,
}

impl Contests {
    /// A page of candidates, newest first, and whether there are more.
    pub async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<(Vec<CandidateRecord>, bool), Error> {
        let mut page = self.store.list_candidates(filter, after, limit + 1).await?;
        let more = page.len() > limit as usize;
        page.truncate(limit as usize);
        Ok((page, more))
    }

    /// A candidate with votes, rivals, feedback and history, if `access` permits: an entry of a user's profile needs the right
    /// to act for users.
    pub async fn candidate_details(
        &self,
        namespace: &Namespace,
        id: CandidateId,
        access: &Access,
    ) -> Result<CandidateDetails, Error> {
        let record = self.decisions.candidate(namespace, id).await?;
        let mut suggestion = None;
        if record.key.kind == Kind::Profile {
            access.speaks_for_users(namespace.as_str())?;
            suggestion = self.store.suggestion(id).await?;
        }
        Ok(CandidateDetails {
            suggestion,
            votes: self.live_votes(&record).await?,
            rivals: self.store.rivals(&record, SHOWN).await?,
            feedback: self.store.feedback(id, SHOWN).await?,
            history: self.store.transitions(id, HISTORY).await?,
            record,
        })
    }

    /// A voter's newest ballot in the contest is its live vote.
    async fn live_votes(&self, record: &CandidateRecord) -> Result<Vec<LiveVote>, Error> {
        let policy = self.store.policy(&PolicyKey::of(&record.key)).await?.policy;
        let ballots = self
            .store
            .ballots(record.key.contest_id(), policy.votes.max_counted_feedback)
            .await?;
        let mut voters = HashSet::with_capacity(ballots.len());
        let live: Vec<_> = ballots
            .into_iter()
            .filter(|ballot| voters.insert(ballot.voter) && ballot.candidate == record.candidate.id)
            .take(SHOWN as usize)
            .collect();
        let feedback: Vec<FeedbackId> = live.iter().map(|ballot| ballot.feedback_id).collect();
        let mut reporters = self.store.reporters(&feedback).await?;
        Ok(live
            .into_iter()
            .map(|ballot| LiveVote {
                reporter: reporters.remove(&ballot.feedback_id).unwrap_or_default(),
                caller: ballot.caller.to_string(),
                identified: ballot.identified,
                feedback: ballot.feedback_id,
                received_at: ballot.received_at,
            })
            .collect())
    }
}
