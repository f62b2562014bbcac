//! What a reviewer needs to know about a candidate.

use std::collections::HashSet;

use emend_base::Error;
use emend_core::{CandidateId, FeedbackId, Kind, Namespace};
use emend_serve::auth::Access;
use jiff::Timestamp;
use learning_store::{
    contests::{
        CandidateFilter, CandidatePosition, CandidateRecord, FeedbackRecord, Listing, TransitionWrite,
    },
    policies::PolicyKey,
    profiles::SuggestionDetails,
};

use crate::contests::Contests;

/// Maximum votes, rivals and feedbacks shown.
const SHOWN: u32 = 100;
/// Candidates that are searched for a text at once.
const SEARCHED_AT_ONCE: u32 = 500;
/// Candidates that one page passes over at most: reading so many takes some tens of milliseconds.
const PASSED_OVER: u32 = 1_500;
/// Maximum transitions shown.
const HISTORY: u32 = 200;

/// What a reviewer asks for.
#[derive(Debug, Clone)]
pub struct QueueQuery {
    /// Which candidates.
    pub filter: CandidateFilter,
    /// In which order, and of which time.
    pub listing: Listing,
    /// Only those that have this text.
    pub text: Option<SearchText>,
}

/// A page of the review queue.
#[derive(Debug, Clone)]
pub struct QueuePage {
    /// The candidates, in the order asked for.
    pub candidates: Vec<CandidateRecord>,
    /// From where the next page goes on; none if there are no more.
    pub rest: Option<CandidatePosition>,
    /// Where a text was looked for: in how many candidates.
    pub searched: u32,
}

/// A text that is looked for in the key and the value of candidates, whatever the case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchText(String);

impl SearchText {
    /// Looks for this text.
    pub fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// The text, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_in(&self, record: &CandidateRecord) -> bool {
        let value = &record.candidate.value;
        let texts = [
            record.key.key.as_str(),
            record.key.qualifier.as_str(),
            &value.display,
            value.learned.maps_to(),
        ];
        texts.iter().any(|text| text.to_lowercase().contains(&self.0))
    }
}

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
        let listing = Listing::default();
        let mut page = self
            .store
            .list_candidates(filter, &listing, after, limit + 1)
            .await?;
        let more = page.len() > limit as usize;
        page.truncate(limit as usize);
        Ok((page, more))
    }

    /// A page of the review queue.
    pub async fn queue(
        &self,
        query: &QueueQuery,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<QueuePage, Error> {
        let QueueQuery {
            filter,
            listing,
            text,
        } = query;
        let (mut found, mut after, mut passed) = (Vec::new(), after, 0);
        loop {
            // Of what is searched for a text, many are passed over.
            let wanted = limit - u32::try_from(found.len()).unwrap_or(limit);
            let chunk = if text.is_some() { SEARCHED_AT_ONCE } else { wanted };
            let mut page = self
                .store
                .list_candidates(filter, listing, after, chunk + 1)
                .await?;
            let more = page.len() > chunk as usize;
            page.truncate(chunk as usize);
            let mut page = page.into_iter();
            for record in page.by_ref() {
                after = Some(CandidatePosition::by(listing.order, &record));
                passed += 1;
                if text.as_ref().is_none_or(|text| text.is_in(&record)) {
                    found.push(record);
                    if found.len() >= limit as usize {
                        break;
                    }
                }
            }
            let more = more || page.len() > 0;
            if !more || found.len() >= limit as usize || passed >= PASSED_OVER {
                return Ok(QueuePage {
                    candidates: found,
                    rest: after.filter(|_| more),
                    searched: if text.is_some() { passed } else { 0 },
                });
            }
        }
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
