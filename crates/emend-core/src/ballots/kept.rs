//! The tally of the counted ballots, maintained as ballots start and stop counting.
//!
//! Only for policies without decay, where nothing depends on the time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use uuid::Uuid;

use super::{Ballot, Newest, Rules, SortKey, Support, Tally, newest::Moved};
use crate::{
    ids::{AcceptOrder, Caller, CandidateId, FeedbackId},
    policy::Counting,
    voter::VoterKey,
};

/// Sorts before all other places.
const NEWEST: SortKey = SortKey {
    order: Reverse(AcceptOrder(i64::MAX)),
    feedback: FeedbackId(Uuid::nil()),
};

/// The tally of the counted ballots. All ballots of one voter agree on `identified` and `caller`.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    rules: Rules,
    /// Each voter's ballots, newest first; the first is its live vote.
    by_voter: BTreeMap<(VoterKey, SortKey), CandidateId>,
    /// How many ballots a voter cast for a candidate; maintained only for OCCURRENCES.
    cast: HashMap<(VoterKey, CandidateId), u64>,
    /// The live votes of derived voters, by caller.
    derived: HashMap<Caller, Newest<CandidateId>>,
    support: HashMap<CandidateId, Strength>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Strength {
    voters: u64,
    occurrences: u64,
}

impl Strength {
    fn gain_voter(&mut self) {
        self.voters += 1;
    }

    fn lose_voter(&mut self) {
        self.voters = self.voters.saturating_sub(1);
    }
}

impl Kept {
    /// The tally of no ballots.
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            by_voter: BTreeMap::new(),
            cast: HashMap::new(),
            derived: HashMap::new(),
            support: HashMap::new(),
        }
    }

    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    /// Starts counting a ballot.
    pub(super) fn admit(&mut self, ballot: &Ballot) {
        self.change(ballot, |kept, key| {
            kept.by_voter.insert(key, ballot.candidate);
            if kept.rules.counting == Counting::Occurrences {
                *kept.cast.entry((ballot.voter, ballot.candidate)).or_default() += 1;
            }
        });
    }

    /// Stops counting a ballot.
    pub(super) fn dismiss(&mut self, ballot: &Ballot) {
        self.change(ballot, |kept, key| {
            kept.by_voter.remove(&key);
            let cast = (ballot.voter, ballot.candidate);
            if let Some(times) = kept.cast.get_mut(&cast) {
                *times -= 1;
                if *times == 0 {
                    kept.cast.remove(&cast);
                }
            }
        });
    }

    /// Changes a voter's ballots and updates what the voter counts for.
    fn change(&mut self, ballot: &Ballot, change: impl FnOnce(&mut Self, (VoterKey, SortKey))) {
        let voter = ballot.voter;
        let before = self.live(voter);
        if let Some((_, candidate)) = before {
            let times = self.times_said(voter, candidate);
            self.strengthen(candidate, |strength| {
                strength.occurrences = strength.occurrences.saturating_sub(times);
            });
        }
        change(self, (voter, SortKey::of(ballot)));
        let after = self.live(voter);
        if let Some((_, candidate)) = after {
            let times = self.times_said(voter, candidate);
            self.strengthen(candidate, |strength| strength.occurrences += times);
        }
        if before != after {
            if let Some((place, candidate)) = before {
                self.unseat(ballot, place, candidate);
            }
            if let Some((place, candidate)) = after {
                self.seat(ballot, place, candidate);
            }
        }
    }

    /// A voter's live vote and its place.
    fn live(&self, voter: VoterKey) -> Option<(SortKey, CandidateId)> {
        let newest = self.by_voter.range((voter, NEWEST)..).next();
        newest
            .filter(|((other, _), _)| *other == voter)
            .map(|((_, place), candidate)| (*place, *candidate))
    }

    fn times_said(&self, voter: VoterKey, candidate: CandidateId) -> u64 {
        self.cast.get(&(voter, candidate)).copied().unwrap_or_default()
    }

    /// Counts a voter's live vote, unless the cap on derived voters excludes it.
    fn seat(&mut self, ballot: &Ballot, place: SortKey, candidate: CandidateId) {
        if ballot.identified {
            self.strengthen(candidate, Strength::gain_voter);
            return;
        }
        let derived = self
            .derived
            .entry(ballot.caller.clone())
            .or_insert_with(|| Newest::new(BTreeMap::new(), self.rules.derived));
        let moved = derived.insert(place, candidate);
        self.follow(&ballot.caller, &moved);
    }

    /// Stops counting a voter's live vote.
    fn unseat(&mut self, ballot: &Ballot, place: SortKey, candidate: CandidateId) {
        if ballot.identified {
            self.strengthen(candidate, Strength::lose_voter);
            return;
        }
        let Some(derived) = self.derived.get_mut(&ballot.caller) else {
            return;
        };
        let Some((candidate, moved)) = derived.remove(place) else {
            return;
        };
        if derived.len() == 0 {
            self.derived.remove(&ballot.caller);
        }
        if moved.left.is_some() {
            self.strengthen(candidate, Strength::lose_voter);
        }
        self.follow(
            &ballot.caller,
            &Moved {
                entered: moved.entered,
                left: None,
            },
        );
    }

    /// Applies a move across the cap on a caller's derived voters: counts the one that came under it, stops counting
    /// the one that went over it.
    fn follow(&mut self, caller: &Caller, moved: &Moved) {
        let Some(derived) = self.derived.get(caller) else {
            return;
        };
        let candidate_at = |place: Option<SortKey>| place.and_then(|place| derived.get(place).copied());
        let (entered, left) = (candidate_at(moved.entered), candidate_at(moved.left));
        if let Some(candidate) = entered {
            self.strengthen(candidate, Strength::gain_voter);
        }
        if let Some(candidate) = left {
            self.strengthen(candidate, Strength::lose_voter);
        }
    }

    fn strengthen(&mut self, candidate: CandidateId, change: impl FnOnce(&mut Strength)) {
        let strength = self.support.entry(candidate).or_default();
        change(strength);
        if *strength == Strength::default() {
            self.support.remove(&candidate);
        }
    }

    /// The tally as it stands.
    pub(super) fn tally(&self) -> Tally {
        let supporters = self.support.iter().map(|(candidate, strength)| {
            let counted = match self.rules.counting {
                Counting::DistinctVoters => strength.voters,
                Counting::Occurrences => strength.occurrences,
            };
            let support = Support {
                counted,
                undecayed: counted,
                voters: strength.voters,
            };
            (*candidate, support)
        });
        Tally {
            supporters: supporters.collect(),
        }
    }
}
