//! The ballots of a contest and what they come to: counted from nothing, or kept as ballots come and go.
//!
//! A contest that many vote in is decided many times with one ballot more. [`Ballots`] keeps what its ballots come to, so
//! that one more costs a few steps in ordered maps however many there are; [`Tally::count`] counts them all from nothing.
//! Both give the same, which tests hold them to. Where votes decay nothing is kept: what each weighs depends on the time
//! at which it is asked for, so all that count are weighed each time.

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

/// One correction that supports a candidate and was not retracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ballot {
    /// The correction.
    pub feedback_id: FeedbackId,
    /// Decides which of a voter's ballots is newest.
    pub accept_order: AcceptOrder,
    /// Who cast it.
    pub voter: VoterKey,
    /// The voter is known by id and counts by itself.
    pub identified: bool,
    /// The authenticated client that sent it.
    pub caller: Caller,
    /// What it supports.
    pub candidate: CandidateId,
    /// When it was received; votes may decay from here.
    pub received_at: Timestamp,
}

/// Where a ballot stands among others: the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    order: Reverse<AcceptOrder>,
    feedback: FeedbackId,
}

impl Place {
    fn of(ballot: &Ballot) -> Self {
        Self {
            order: Reverse(ballot.accept_order),
            feedback: ballot.feedback_id,
        }
    }
}

/// The ballots of a contest: all, or the newest of them.
#[derive(Debug, Clone)]
pub struct Ballots {
    held: Newest<Ballot>,
    /// There are no others.
    complete: bool,
    kept: Option<Kept>,
}

impl Ballots {
    /// The newest ballots of a contest, in any order; `complete` says that there are no others.
    pub fn new(newest: impl IntoIterator<Item = Ballot>, complete: bool) -> Self {
        let held = newest
            .into_iter()
            .map(|ballot| (Place::of(&ballot), ballot))
            .collect();
        Self {
            held: Newest::new(held, usize::MAX),
            complete,
            kept: None,
        }
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// None is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those that are held, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Ballot> {
        self.held.iter()
    }

    /// All ballots of the contest are held, or at least the newest `count`.
    pub fn cover(&self, count: usize) -> bool {
        self.complete || self.len() >= count
    }

    /// Forgets all but the newest `count`, or as many as count by the rules that were counted by last.
    pub fn forget_beyond(&mut self, count: usize) {
        self.complete &= !self.held.forget_beyond(count);
    }

    /// One more. Where not all are held, one that is older than all that are stays out: others that are not held may be
    /// newer.
    pub fn insert(&mut self, ballot: Ballot) {
        let place = Place::of(&ballot);
        self.remove(&ballot);
        if !self.complete && self.held.oldest().is_some_and(|oldest| oldest < place) {
            return;
        }
        let moved = self.held.insert(place, ballot);
        self.follow(moved.entered, moved.left);
    }

    /// One less.
    pub fn remove(&mut self, ballot: &Ballot) {
        let Some((removed, moved)) = self.held.remove(Place::of(ballot)) else {
            return;
        };
        if let (Some(kept), Some(_)) = (&mut self.kept, moved.left) {
            kept.dismiss(&removed);
        }
        self.follow(moved.entered, None);
    }

    /// What is kept follows which ballots count.
    fn follow(&mut self, entered: Option<Place>, left: Option<Place>) {
        let Some(kept) = &mut self.kept else { return };
        if let Some(ballot) = left.and_then(|place| self.held.get(place)) {
            kept.dismiss(ballot);
        }
        if let Some(ballot) = entered.and_then(|place| self.held.get(place)) {
            kept.admit(ballot);
        }
    }

    /// What they come to: equal to what [`Tally::count`] gives of them.
    pub fn tally(&mut self, policy: &Policy, now: Timestamp) -> Tally {
        let rules = Rules::of(policy);
        if policy.half_life.is_some() {
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
    /// Of a contest that has none.
    fn default() -> Self {
        Self::new([], true)
    }
}

impl PartialEq for Ballots {
    /// Equal where they hold the same ballots, whatever was counted of them.
    fn eq(&self, other: &Self) -> bool {
        self.complete == other.complete && self.iter().eq(other.iter())
    }
}

impl Eq for Ballots {}

/// What of a policy decides which ballots count, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    counting: Counting,
    /// Only the newest so many ballots.
    counted: usize,
    /// Of one caller's derived voters only the newest so many.
    derived: usize,
}

impl Rules {
    fn of(policy: &Policy) -> Self {
        Self {
            counting: policy.counting,
            counted: policy.max_counted_feedback as usize,
            derived: policy.max_derived_voters as usize,
        }
    }
}

/// How strong each candidate of a contest is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    supporters: HashMap<CandidateId, Support>,
}

/// One candidate's support.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Support {
    /// By what the policy counts, decayed and rounded half up to a whole number.
    pub counted: u64,
    /// By what the policy counts, not decayed.
    pub undecayed: u64,
    /// Distinct voters.
    pub voters: u64,
}

impl Tally {
    /// Counts ballots from nothing. The result depends on which ballots there are, never on the order in which they came.
    ///
    /// A voter's newest ballot (by accept order) is its one live vote. Of the voters derived from one caller only the
    /// newest `max_derived_voters` count. With OCCURRENCES each ballot counts that is for what its voter supports now: who
    /// changes his mind takes away all that he said before for another choice. A half-life weighs each by
    /// 2^(−age / half-life); the sum is rounded half up, so that one vote alone counts until its half-life has passed.
    pub fn count(ballots: &[Ballot], policy: &Policy, now: Timestamp) -> Self {
        let mut newest_first: Vec<&Ballot> = ballots.iter().collect();
        // Stable: ballots come in this order from a store, but for the newest; such a sort sees that.
        newest_first.sort_by_key(|ballot| Place::of(ballot));
        count_newest_first(newest_first.into_iter(), policy, now)
    }

    /// One candidate's support.
    pub fn of(&self, candidate: CandidateId) -> Support {
        self.supporters.get(&candidate).copied().unwrap_or_default()
    }

    /// Who has most behind him, so that each candidate's net confirmations are at hand. Rejected candidates are nobody's
    /// rivals.
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

/// Who has most behind him, and how much the next has.
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
    let mut counted: Vec<&Ballot> = ballots.take(policy.max_counted_feedback as usize).collect();
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
            if *derived >= policy.max_derived_voters {
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
    let counted = match policy.counting {
        Counting::DistinctVoters => live,
        Counting::Occurrences => {
            counted.retain(|ballot| supports.get(&ballot.voter) == Some(&ballot.candidate));
            counted
        }
    };
    let mut weights: BTreeMap<CandidateId, f64> = BTreeMap::new();
    for ballot in counted {
        tally.supporters.entry(ballot.candidate).or_default().undecayed += 1;
        *weights.entry(ballot.candidate).or_default() += weight(ballot, policy.half_life, now);
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
