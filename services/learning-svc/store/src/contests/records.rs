//! Contests as read, parsed into values the rules know.

use std::collections::{BTreeMap, HashMap};

use emend_core::{
    AcceptOrder, Ballot, Caller, Candidate, CandidateId, ContestId, ContestState, FeedbackId, ResourceKey,
    Target, UndoableDecision, contest::Versions,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::actor::Actor;

/// A contest whose row is locked for this unit of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedContest {
    /// Its key, equal to the one asked for.
    pub key: ResourceKey,
    /// Whether a person set what applies.
    pub pinned: bool,
    /// The highest accept order seen.
    pub highest_accept_order: AcceptOrder,
    /// The policy version that last evaluated it.
    pub policy_version: i64,
    /// Whether anything in it is pending.
    pub pending: bool,
    /// What is known of what the key names, where rulings need that.
    pub target: Target,
    /// The numbers of versions, where the kind is decided by review.
    pub versions: Versions,
    /// How many decisions it has seen.
    pub decisions: u64,
    /// The database's time when it was locked.
    pub locked_at: Timestamp,
    /// Whether its row is there; if not, it is written with the votes.
    pub is_stored: bool,
}

impl LockedContest {
    /// A contest of which nothing is stored, except its row if `is_stored`.
    pub fn new(key: ResourceKey, locked_at: Timestamp, is_stored: bool) -> Self {
        Self {
            pinned: false,
            highest_accept_order: AcceptOrder::default(),
            policy_version: 0,
            pending: false,
            target: Target::at_first(key.kind),
            versions: Versions::default(),
            decisions: 0,
            locked_at,
            is_stored,
            key,
        }
    }
}

/// A contest with everything a decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContest {
    /// Its row.
    pub row: LockedContest,
    /// The state to decide on. `full`, the ballots and the ratings are yet to be filled in.
    pub state: ContestState,
    /// What is stored of its candidates beyond that state.
    pub kept: HashMap<CandidateId, KeptCandidate>,
    /// When its resource was committed, in microseconds since 1970; 0 if there is none.
    pub committed_at: i64,
}

/// What is stored of a candidate beyond the decided state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCandidate {
    /// Who last changed its status.
    pub decided_by: Actor,
    /// When it was first proposed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How many transitions it has had.
    pub transitions: i64,
    /// Grows with each change.
    pub version: i64,
}

/// A candidate as reviewers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateRecord {
    /// The candidate.
    pub candidate: Candidate,
    /// The key of its contest.
    pub key: ResourceKey,
    /// Whether a person set what applies in its contest.
    pub contest_pinned: bool,
    /// What else is stored of it.
    pub kept: KeptCandidate,
}

/// The newest approval or rejection in a contest, and what it takes to undo it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoableRecord {
    /// The contest.
    pub contest: ContestId,
    /// What it changed.
    pub decision: UndoableDecision,
    /// Who decided.
    pub actor: Actor,
    /// When, by the database's clock.
    pub made_at: Timestamp,
}

/// A stored ballot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBallot {
    /// The contest it was cast in.
    pub key: ResourceKey,
    /// The ballot.
    pub ballot: Ballot,
    /// Whether it was retracted and no longer counts.
    pub retracted: bool,
}

/// A feedback that proposed a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackRecord {
    /// The feedback's id.
    pub feedback: FeedbackId,
    /// What the system had chosen; may be empty.
    pub system_choice: String,
    /// The reason given; empty if there was none or it was erased.
    pub reason: String,
    /// Context for the reviewer; empty if there was none or it was erased.
    pub context: BTreeMap<String, String>,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// When it was received.
    pub received_at: Timestamp,
    /// Whether it was retracted and no longer counts.
    pub retracted: bool,
}

/// The UUID namespace for the feedback ids of imported votes (RFC 9562, version 5).
const VOTES: Uuid = Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e03);

/// The id under which an import casts a client's vote for a candidate.
pub fn imported_vote_id(caller: &Caller, contest: ContestId, candidate: CandidateId) -> FeedbackId {
    // Two fixed-length ids, then the caller: different votes never give the same bytes.
    let name = [
        contest.0.as_bytes(),
        candidate.0.as_bytes(),
        caller.as_str().as_bytes(),
    ]
    .concat();
    FeedbackId(Uuid::new_v5(&VOTES, &name))
}
