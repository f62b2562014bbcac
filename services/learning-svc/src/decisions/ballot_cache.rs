//! Cache of the ballots of hot contests, those with many votes, from one unit of work to the next.
//!
//! A contest is decided from its newest ballots, possibly thousands; reading them all for each vote would make a
//! contest slower the more people vote in it. After a commit, a contest's ballots are left here, and the next decision
//! takes them if nobody, on this replica or another, has written to the contest since.
//!
//! A [`Fingerprint`] tells whether anybody did. It is made from the contest's candidates, which are read under the
//! contest's lock anyway: every transaction that writes or retracts a ballot gives its candidate a new version. So a
//! cached entry may be useless but is never wrong, and losing one costs one more read.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use emend_core::{Ballots, CandidateId, ContestId, ContestState};
use learning_store::contests::KeptCandidate;
use xxhash_rust::xxh3::xxh3_128;

/// Minimum number of ballots worth caching; fewer are as well read again.
pub const MIN_BALLOTS: usize = 200;
/// Maximum ballots cached, of all contests together; about 60 MB.
const MAX_BALLOTS: usize = 200_000;

/// Identifies the ballots of a contest: equal fingerprints mean equal ballots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The fingerprint of a contest as stored. Versions alone would suffice but for databases that are restored, or fail
    /// over and lose their newest writes: times and counts distinguish a version written a second time from the first.
    pub fn of(state: &ContestState, kept: &HashMap<CandidateId, KeptCandidate>) -> Self {
        let mut candidates: Vec<_> = state
            .candidates
            .iter()
            .map(|candidate| {
                let kept = kept.get(&candidate.id);
                let version = kept.map_or(0, |kept| kept.version);
                let updated_at = kept.map_or(0, |kept| kept.updated_at.as_microsecond());
                (candidate.id, version, updated_at, candidate.occurrences)
            })
            .collect();
        candidates.sort_unstable();
        let mut bytes = state.highest_accept_order.0.to_le_bytes().to_vec();
        for (id, version, updated_at, occurrences) in candidates {
            bytes.extend_from_slice(id.0.as_bytes());
            bytes.extend_from_slice(&version.to_le_bytes());
            bytes.extend_from_slice(&updated_at.to_le_bytes());
            bytes.extend_from_slice(&occurrences.to_le_bytes());
        }
        Self(xxh3_128(&bytes))
    }
}

/// The cached ballots, of the most recently decided contests.
#[derive(Debug)]
pub struct BallotCache {
    max: usize,
    entries: Mutex<Entries>,
}

impl Default for BallotCache {
    fn default() -> Self {
        Self::with_capacity(MAX_BALLOTS)
    }
}

#[derive(Debug, Default)]
struct Entries {
    contests: HashMap<ContestId, Entry>,
    /// Ballots of all entries together.
    ballots: usize,
    /// Grows with each use; orders entries for eviction.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    fingerprint: Fingerprint,
    ballots: Ballots,
    used: u64,
}

impl BallotCache {
    /// A cache of at most `max` ballots.
    pub fn with_capacity(max: usize) -> Self {
        Self {
            max,
            entries: Mutex::default(),
        }
    }

    /// Moves the cached ballots of a contest with this fingerprint to the caller. Ballots cached under another one are
    /// discarded. The caller must hold the contest's lock.
    pub fn take(&self, contest: ContestId, fingerprint: impl FnOnce() -> Fingerprint) -> Option<Ballots> {
        let entry = self.entries().remove(contest)?;
        (entry.fingerprint == fingerprint()).then_some(entry.ballots)
    }

    /// Caches the ballots of a contest committed with this fingerprint, evicting the least recently used entries to
    /// make room.
    pub fn keep(&self, contest: ContestId, fingerprint: Fingerprint, ballots: Ballots) {
        let mut entries = self.entries();
        entries.remove(contest);
        if !(MIN_BALLOTS..=self.max).contains(&ballots.len()) {
            return;
        }
        while entries.ballots + ballots.len() > self.max {
            let oldest = entries.contests.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(contest, _)| *contest) else {
                break;
            };
            entries.remove(oldest);
        }
        entries.uses += 1;
        entries.ballots += ballots.len();
        let used = entries.uses;
        entries.contests.insert(
            contest,
            Entry {
                fingerprint,
                ballots,
                used,
            },
        );
    }

    /// How many ballots are cached.
    #[cfg(test)]
    pub(crate) fn ballots(&self) -> usize {
        self.entries().ballots
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, contest: ContestId) -> Option<Entry> {
        let entry = self.contests.remove(&contest)?;
        self.ballots -= entry.ballots.len();
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{AcceptOrder, Ballot, Caller, FeedbackId, voter::VoterKey};
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn ballots(count: u128) -> Ballots {
        let ballot = |n| Ballot {
            feedback_id: FeedbackId(Uuid::from_u128(n)),
            accept_order: AcceptOrder(0),
            voter: VoterKey(Uuid::from_u128(n)),
            identified: true,
            caller: Caller::anonymous(),
            candidate: CandidateId(Uuid::nil()),
            received_at: Timestamp::UNIX_EPOCH,
        };
        Ballots::new((0..count).map(ballot), true)
    }

    fn contest(n: u128) -> ContestId {
        ContestId(Uuid::from_u128(n))
    }

    #[test]
    fn cached_ballots_are_taken_once_and_only_under_their_fingerprint() {
        let cache = BallotCache::default();
        cache.keep(contest(1), Fingerprint(7), ballots(300));
        assert_eq!(cache.take(contest(2), || Fingerprint(7)), None);
        assert_eq!(cache.take(contest(1), || Fingerprint(7)), Some(ballots(300)));
        assert_eq!(cache.take(contest(1), || Fingerprint(7)), None);
        cache.keep(contest(1), Fingerprint(7), ballots(300));
        assert_eq!(
            cache.take(contest(1), || Fingerprint(8)),
            None,
            "the contest has changed since"
        );
        assert_eq!(cache.entries().ballots, 0);
    }

    #[test]
    fn the_least_recently_used_contest_makes_room() {
        let cache = BallotCache::with_capacity(1_000);
        for n in 1..=3 {
            cache.keep(contest(n), Fingerprint(n), ballots(300));
        }
        let first = cache.take(contest(1), || Fingerprint(1)).unwrap();
        cache.keep(contest(1), Fingerprint(1), first);
        cache.keep(contest(4), Fingerprint(4), ballots(400));
        let here: Vec<bool> = (1..=4)
            .map(|n| cache.entries().contests.contains_key(&contest(n)))
            .collect();
        assert_eq!(here, [true, false, true, true]);
        assert_eq!(cache.entries().ballots, 1_000);
    }

    #[test]
    fn too_few_and_too_many_ballots_are_not_cached() {
        let cache = BallotCache::with_capacity(1_000);
        for (n, count) in [(1, 199), (2, 1_001)] {
            cache.keep(contest(n), Fingerprint(n), ballots(count));
            assert_eq!(cache.take(contest(n), || Fingerprint(n)), None);
        }
    }
}
