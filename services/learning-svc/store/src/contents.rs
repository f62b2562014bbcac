//! Everything a store holds, read whole, for tests that check it for consistency.
//!
//! It must know nothing of SQL.

use std::collections::HashMap;

use emend_core::{AcceptOrder, CandidateId, ContestId, Revision, voter::VoterKey};

use crate::policies::PolicyKey;

/// Everything a store holds, for tests that check it for consistency.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// The newest revision.
    pub head: Revision,
    /// All revision numbers, in order.
    pub revisions: Vec<Revision>,
    /// All changes, in log order: contest, revision, encoded value.
    pub changes: Vec<(ContestId, Revision, Option<Vec<u8>>)>,
    /// All resources: contest, revision, encoded value.
    pub resources: Vec<(ContestId, Revision, Vec<u8>)>,
    /// All candidates: contest, candidate, occurrences, reporters, whether it is a ruling.
    pub candidates: Vec<(ContestId, CandidateId, i64, i64, bool)>,
    /// All ballots that count.
    pub ballots: Vec<ContentsBallot>,
    /// The number of resources according to the counters.
    pub counted: HashMap<PolicyKey, u64>,
    /// The actual number of resources.
    pub present: HashMap<PolicyKey, u64>,
}

/// A ballot that counts.
#[derive(Debug, Clone, Copy)]
pub struct ContentsBallot {
    /// The contest it was cast in.
    pub contest: ContestId,
    /// The candidate it supports.
    pub candidate: CandidateId,
    /// The voter who cast it.
    pub voter: VoterKey,
    /// Decides which of a voter's ballots is newest.
    pub accept_order: AcceptOrder,
    /// Whether the voter counts by itself.
    pub identified: bool,
}
