//! The ballots of a contest and their tally: counted from scratch, or maintained incrementally.
//!
//! A busy contest is decided again for every new ballot. [`Ballots`] maintains its tally, so that one more ballot costs
//! a few steps in ordered maps, however many there are; [`Tally::count`] counts all ballots from scratch. Tests hold
//! the two to equal results. With a half-life nothing is maintained: every weight depends on the current time, so all
//! counted ballots are weighed on each call.

mod kept;
mod newest;
mod tally;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use jiff::Timestamp;

pub use self::tally::{Standings, Support, Tally};
use self::{kept::Kept, newest::Newest, tally::count_newest_first};
use crate::{
    ids::{AcceptOrder, Caller, CandidateId, FeedbackId},
    policy::{Counting, Policy},
    voter::VoterKey,
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
