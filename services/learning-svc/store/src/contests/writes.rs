//! What a unit of work writes of contests, in the rules' terms.

use std::collections::BTreeMap;

use emend_core::{
    AcceptOrder, Ballot, Candidate, CandidateId, ContestId, FeedbackId, Reporter, ResourceKey, Revision,
    Status, Target, contest::Versions, decide::Cause,
};
use jiff::Timestamp;

use super::KeptCandidate;
use crate::actor::Actor;

/// A ballot to store.
#[derive(Debug, Clone)]
pub struct NewBallot {
    /// The contest it is cast in.
    pub contest: ContestId,
    /// The ballot.
    pub ballot: Ballot,
    /// Whether its retraction came first, so that it does not count.
    pub retracted: bool,
    /// What the system chose; may be empty.
    pub system_choice: String,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
}

/// The personal parts of a ballot, kept apart from what counts.
#[derive(Debug, Clone)]
pub struct BallotDetails {
    /// The feedback they belong to.
    pub feedback: FeedbackId,
    /// The reporter.
    pub reporter: Reporter,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// The reason given; may be empty.
    pub reason: String,
    /// Context for the reviewer.
    pub context: BTreeMap<String, String>,
}

/// What is written before the head is locked: everything that names no revision.
#[derive(Debug, Clone, Default)]
pub struct VoteWrites {
    /// Inserted.
    pub ballots: Vec<NewBallot>,
    /// Inserted.
    pub details: Vec<BallotDetails>,
    /// Ballots to mark as no longer counted.
    pub retracted: Vec<FeedbackId>,
    /// Details to erase.
    pub erased: Vec<FeedbackId>,
    /// Changed contests.
    pub contests: Vec<ContestWrite>,
}

/// A contest's row to write.
#[derive(Debug, Clone)]
pub struct ContestWrite {
    /// Its key.
    pub key: ResourceKey,
    /// Whether a person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version that evaluated it.
    pub policy_version: i64,
    /// Whether anything in it is pending.
    pub pending: bool,
    /// What is known of what the key names, where rulings need that.
    pub target: Target,
    /// The numbers of versions, where the kind is decided by review.
    pub versions: Versions,
    /// How many decisions it has seen.
    pub decisions: u64,
}

impl ContestWrite {
    /// The row of a contest in which nothing was decided yet.
    pub fn first(key: ResourceKey) -> Self {
        Self {
            pinned: false,
            highest_accept_order: AcceptOrder::default(),
            policy_version: 0,
            pending: false,
            target: Target::at_first(key.kind),
            versions: Versions::default(),
            decisions: 0,
            key,
        }
    }
}

/// A candidate to write.
#[derive(Debug, Clone)]
pub struct CandidateWrite {
    /// The key of its contest.
    pub key: ResourceKey,
    /// The candidate.
    pub candidate: Candidate,
    /// What else is stored of it.
    pub kept: KeptCandidate,
}

/// A change of a candidate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionWrite {
    /// The candidate.
    pub candidate: CandidateId,
    /// Its place among the candidate's transitions, from 0.
    pub sequence: i64,
    /// The status before; none: it was created.
    pub from: Option<Status>,
    /// The status after.
    pub to: Status,
    /// The cause.
    pub cause: Cause,
    /// In words or as a reason's name; may be empty.
    pub reason: String,
    /// Who did it.
    pub actor: Actor,
    /// When, by the service's clock.
    pub at: Timestamp,
    /// The revision it belongs to; 0 if no resource changed.
    pub revision: Revision,
    /// The version of the policy that decided.
    pub policy_version: i64,
}
