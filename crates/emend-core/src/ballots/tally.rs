//! Counts votes: the support of each candidate, from the ballots of a contest.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::{Ballot, SortKey};
use crate::{
    candidate::{Candidate, Status},
    ids::{Caller, CandidateId},
    policy::{Counting, Policy},
    voter::VoterKey,
};

/// The support of each candidate in a contest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub(super) supporters: HashMap<CandidateId, Support>,
}

/// One candidate's support.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Support {
    /// As the policy counts, decayed and rounded half up to a whole number.
    pub counted: u64,
    /// As the policy counts, without decay.
    pub undecayed: u64,
    /// Number of distinct voters.
    pub voters: u64,
}

impl Tally {
    /// Counts ballots from scratch. The result depends on the set of ballots, not on their order of arrival.
    ///
    /// A voter's newest ballot (by accept order) is its one live vote. Of the voters derived from one caller, only the
    /// newest `max_derived_voters` count. With OCCURRENCES each ballot counts if it supports what its voter supports
    /// now: a voter who switches to another choice withdraws all earlier support for the old one. A half-life gives
    /// each ballot the weight 2^(−age / half-life); the sum is rounded half up, so that a single vote counts until its
    /// half-life has passed.
    pub fn count(ballots: &[Ballot], policy: &Policy, now: Timestamp) -> Self {
        let mut newest_first: Vec<&Ballot> = ballots.iter().collect();
        // A stable sort is fast here: stores return ballots in this order, apart from the newest.
        newest_first.sort_by_key(|ballot| SortKey::of(ballot));
        count_newest_first(newest_first.into_iter(), policy, now)
    }

    /// One candidate's support.
    pub fn of(&self, candidate: CandidateId) -> Support {
        self.supporters.get(&candidate).copied().unwrap_or_default()
    }

    /// Finds the strongest candidate and the runner-up, from which each candidate's net confirmations follow. Rejected
    /// candidates are not rivals.
    pub fn standings(&self, candidates: &[Candidate]) -> Standings<'_> {
        let mut standings = Standings {
            tally: self,
            first: None,
            second: 0,
        };
        for candidate in candidates {
            if candidate.status == Status::Rejected {
                continue;
            }
            let counted = self.of(candidate.id).counted;
            match standings.first {
                Some((_, most)) if counted <= most => standings.second = standings.second.max(counted),
                before => {
                    standings.second = before.map_or(0, |(_, most)| most);
                    standings.first = Some((candidate.id, counted));
                }
            }
        }
        standings
    }
}

/// The strongest candidate, and the support of the runner-up.
#[derive(Debug, Clone, Copy)]
pub struct Standings<'a> {
    tally: &'a Tally,
    first: Option<(CandidateId, u64)>,
    second: u64,
}

impl Standings<'_> {
    /// `candidate`'s supporters minus those of its strongest rival.
    pub fn net(&self, candidate: CandidateId) -> i64 {
        let strongest_rival = match self.first {
            Some((first, _)) if first == candidate => self.second,
            Some((_, most)) => most,
            None => 0,
        };
        signed(self.tally.of(candidate).counted) - signed(strongest_rival)
    }
}

pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn count_newest_first<'a>(
    ballots: impl Iterator<Item = &'a Ballot>,
    policy: &Policy,
    now: Timestamp,
) -> Tally {
    let mut counted: Vec<&Ballot> = ballots.take(policy.votes.max_counted_feedback as usize).collect();
    let mut supports: HashMap<VoterKey, CandidateId> = HashMap::with_capacity(counted.len());
    let mut derived_of: HashMap<&Caller, u32> = HashMap::new();
    let mut live = Vec::with_capacity(counted.len());
    for ballot in &counted {
        if supports.contains_key(&ballot.voter) {
            continue;
        }
        supports.insert(ballot.voter, ballot.candidate);
        if !ballot.identified {
            let derived = derived_of.entry(&ballot.caller).or_default();
            if *derived >= policy.votes.max_derived_voters {
                continue;
            }
            *derived += 1;
        }
        live.push(*ballot);
    }

    let mut tally = Tally::default();
    for ballot in &live {
        tally.supporters.entry(ballot.candidate).or_default().voters += 1;
    }
    let counted = match policy.votes.counting {
        Counting::DistinctVoters => live,
        Counting::Occurrences => {
            counted.retain(|ballot| supports.get(&ballot.voter) == Some(&ballot.candidate));
            counted
        }
    };
    let mut weights: BTreeMap<CandidateId, f64> = BTreeMap::new();
    for ballot in counted {
        tally.supporters.entry(ballot.candidate).or_default().undecayed += 1;
        *weights.entry(ballot.candidate).or_default() += weight(ballot, policy.votes.half_life, now);
    }
    for (candidate, weight) in weights {
        tally.supporters.entry(candidate).or_default().counted = round_half_up(weight);
    }
    tally
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ages and half-lives are far below 2^53 milliseconds"
)]
fn weight(ballot: &Ballot, half_life: Option<SignedDuration>, now: Timestamp) -> f64 {
    let Some(half_life) = half_life else { return 1.0 };
    let age = now.duration_since(ballot.received_at).as_millis().max(0);
    (-(age as f64) / half_life.as_millis().max(1) as f64).exp2()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 100,000 weights of at most 1"
)]
fn round_half_up(weight: f64) -> u64 {
    (weight + 0.5 + 1e-9).floor() as u64
}
