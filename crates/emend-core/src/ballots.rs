//! The ballots of a contest and their tally: counted from scratch, or maintained incrementally.
//!
//! A busy contest is decided again for every new ballot. [`Ballots`] maintains its tally, so that one more ballot costs
//! a few steps in ordered maps, however many there are; [`Tally::count`] counts all ballots from scratch. Tests hold
//! the two to equal results. With a half-life nothing is maintained: every weight depends on the current time, so all
//! counted ballots are weighed on each call.

mod kept;
mod newest;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use jiff::{SignedDuration, Timestamp};

use self::{kept::Kept, newest::Newest};
use crate::{
    contest::{Candidate, Status, VoterKey},
    ids::{AcceptOrder, Caller, CandidateId, FeedbackId},
    policy::{Counting, Policy},
};

/// One correction that supports a candidate and has not been retracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ballot {
    /// The correction.
    pub feedback_id: FeedbackId,
    /// Decides which of a voter's ballots is newest.
    pub accept_order: AcceptOrder,
    /// The voter who cast it.
    pub voter: VoterKey,
    /// Whether the voter is known by id and counts by itself.
    pub identified: bool,
    /// The authenticated client that sent it.
    pub caller: Caller,
    /// The candidate it supports.
    pub candidate: CandidateId,
    /// When it was received; decay starts here.
    pub received_at: Timestamp,
}

/// Sort key of a ballot: newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    order: Reverse<AcceptOrder>,
    feedback: FeedbackId,
}

impl SortKey {
    fn of(ballot: &Ballot) -> Self {
        Self {
            order: Reverse(ballot.accept_order),
            feedback: ballot.feedback_id,
        }
    }
}

/// The ballots of a contest: all of them, or only the newest.
#[derive(Debug, Clone)]
pub struct Ballots {
    held: Newest<Ballot>,
    /// Whether all ballots of the contest are held.
    complete: bool,
    kept: Option<Kept>,
}

impl Ballots {
    /// The newest ballots of a contest, in any order. `complete` says that there are no others.
    pub fn new(newest: impl IntoIterator<Item = Ballot>, complete: bool) -> Self {
        let held = newest
            .into_iter()
            .map(|ballot| (SortKey::of(&ballot), ballot))
            .collect();
        Self {
            held: Newest::new(held, usize::MAX),
            complete,
            kept: None,
        }
    }

    /// Number of ballots held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no ballot is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ballots held, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Ballot> {
        self.held.iter()
    }

    /// Whether all ballots of the contest are held, or at least the newest `count`.
    pub fn cover(&self, count: usize) -> bool {
        self.complete || self.len() >= count
    }

    /// Drops all but the newest `count` ballots, but never one that counts under the policy last used by
    /// [`Ballots::tally`].
    pub fn forget_beyond(&mut self, count: usize) {
        self.complete &= !self.held.forget_beyond(count);
    }

    /// Adds a ballot. If not all ballots are held, one older than all held ballots is ignored: ballots that are not
    /// held may be newer.
    pub fn insert(&mut self, ballot: Ballot) {
        let place = SortKey::of(&ballot);
        self.remove(&ballot);
        if !self.complete && self.held.oldest().is_some_and(|oldest| oldest < place) {
            return;
        }
        let moved = self.held.insert(place, ballot);
        self.follow(moved.entered, moved.left);
    }

    /// Removes a ballot.
    pub fn remove(&mut self, ballot: &Ballot) {
        let Some((removed, moved)) = self.held.remove(SortKey::of(ballot)) else {
            return;
        };
        if let (Some(kept), Some(_)) = (&mut self.kept, moved.left) {
            kept.dismiss(&removed);
        }
        self.follow(moved.entered, None);
    }

    /// Updates the maintained tally when ballots start or stop counting.
    fn follow(&mut self, entered: Option<SortKey>, left: Option<SortKey>) {
        let Some(kept) = &mut self.kept else { return };
        if let Some(ballot) = left.and_then(|place| self.held.get(place)) {
            kept.dismiss(ballot);
        }
        if let Some(ballot) = entered.and_then(|place| self.held.get(place)) {
            kept.admit(ballot);
        }
    }

    /// The tally of these ballots, equal to what [`Tally::count`] computes from them.
    pub fn tally(&mut self, policy: &Policy, now: Timestamp) -> Tally {
        let rules = Rules::of(policy);
        if policy.votes.half_life.is_some() {
            self.kept = None;
            self.held.limit_to(rules.counted);
            return count_newest_first(self.held.within(), policy, now);
        }
        if self.kept.as_ref().is_none_or(|kept| kept.rules() != rules) {
            self.held.limit_to(rules.counted);
            let mut kept = Kept::new(rules);
            self.held.within().for_each(|ballot| kept.admit(ballot));
            self.kept = Some(kept);
        }
        self.kept.as_ref().map(Kept::tally).unwrap_or_default()
    }
}

impl Default for Ballots {
    /// The ballots of a contest that has none.
    fn default() -> Self {
        Self::new([], true)
    }
}

impl PartialEq for Ballots {
    /// Compares the ballots held, not what was computed from them.
    fn eq(&self, other: &Self) -> bool {
        self.complete == other.complete && self.iter().eq(other.iter())
    }
}

impl Eq for Ballots {}

/// The parts of a policy that decide which ballots count, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    counting: Counting,
    /// How many of the newest ballots count.
    counted: usize,
    /// How many of the newest voters derived from one caller count.
    derived: usize,
}

impl Rules {
    fn of(policy: &Policy) -> Self {
        Self {
            counting: policy.votes.counting,
            counted: policy.votes.max_counted_feedback as usize,
            derived: policy.votes.max_derived_voters as usize,
        }
    }
}

/// The support of each candidate in a contest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    supporters: HashMap<CandidateId, Support>,
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

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count_newest_first<'a>(
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
