//! Checks that the stored data is consistent with itself: the log replayed from the start gives the resources, and the
//! ballots recounted give the candidates' figures.

use std::collections::{BTreeMap, HashMap, HashSet};

use emend_core::{CandidateId, ContestId, Revision};
use emend_store::StoreError;
use learning_store::{Store, contents::Contents};

/// Describes every inconsistency; empty where all is well. Reads everything, so it is for tests: operators have
/// `emend doctor`.
pub async fn inconsistencies(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    let records = store.contents().await?;
    let mut found = Vec::new();
    found.extend(gaps(&records));
    found.extend(replay_log(&records));
    found.extend(recount(&records));
    if records
        .counted
        .iter()
        .any(|(key, count)| records.present.get(key).copied().unwrap_or(0) != *count)
        || records
            .present
            .keys()
            .any(|key| !records.counted.contains_key(key))
    {
        found.push(format!(
            "resource counts are {:?}, present are {:?}",
            records.counted, records.present
        ));
    }
    Ok(found)
}

/// Revisions must be 1, 2, 3 … up to the head.
fn gaps(records: &Contents) -> Option<String> {
    let expected = (1..=records.head.0).map(Revision);
    (!records.revisions.iter().copied().eq(expected)).then(|| {
        format!(
            "the head is {}, but {} revisions are in the log, or not in one sequence",
            records.head,
            records.revisions.len()
        )
    })
}

/// The log replayed from the start must give the resources.
fn replay_log(records: &Contents) -> Vec<String> {
    let mut replayed: BTreeMap<ContestId, (Revision, &[u8])> = BTreeMap::new();
    for (contest, revision, value) in &records.changes {
        match value {
            Some(value) => replayed.insert(*contest, (*revision, value)),
            None => replayed.remove(contest),
        };
    }
    let stored: BTreeMap<ContestId, (Revision, &[u8])> = records
        .resources
        .iter()
        .map(|(contest, revision, value)| (*contest, (*revision, value.as_slice())))
        .collect();
    let contests: HashSet<_> = replayed.keys().chain(stored.keys()).collect();
    let differ = contests
        .into_iter()
        .filter(|contest| replayed.get(contest) != stored.get(contest));
    differ
        .map(|contest| format!("the log and the resource of contest {contest} differ"))
        .collect()
}

/// This many ballots count in every contest, whatever its policy.
const ALWAYS_COUNTED: usize = 100;

/// A candidate's occurrences must equal its ballots. Its reporters must equal the voters whose newest ballot supports
/// it, or be fewer where the policy bounds what counts.
fn recount(records: &Contents) -> Vec<String> {
    let mut occurrences: HashMap<CandidateId, i64> = HashMap::new();
    let mut newest = HashMap::new();
    let mut ballots: HashMap<ContestId, usize> = HashMap::new();
    let mut bounded: HashSet<ContestId> = HashSet::new();
    for ballot in &records.ballots {
        *occurrences.entry(ballot.candidate).or_default() += 1;
        let count = ballots.entry(ballot.contest).or_default();
        *count += 1;
        if !ballot.identified || *count > ALWAYS_COUNTED {
            bounded.insert(ballot.contest);
        }
        let vote = (ballot.accept_order, ballot.candidate);
        let live = newest.entry((ballot.contest, ballot.voter)).or_insert(vote);
        *live = (*live).max(vote);
    }
    let mut voters: HashMap<CandidateId, i64> = HashMap::new();
    for (_, candidate) in newest.values() {
        *voters.entry(*candidate).or_default() += 1;
    }
    let mut found = Vec::new();
    for (contest, candidate, stored, reporters, is_ruling) in &records.candidates {
        let counted = occurrences.remove(candidate).unwrap_or(0);
        if counted != *stored {
            found.push(format!(
                "candidate {candidate} has {stored} occurrences, but {counted} ballots"
            ));
        }
        // A ruling is nobody's rival: its sender may have made others.
        let live = if *is_ruling {
            counted
        } else {
            voters.get(candidate).copied().unwrap_or(0)
        };
        if *reporters > live || (*reporters < live && !bounded.contains(contest)) {
            found.push(format!(
                "candidate {candidate} has {reporters} reporters, but {live} live votes"
            ));
        }
    }
    let unknown = occurrences.keys();
    found.extend(unknown.map(|candidate| format!("ballots for unknown candidate {candidate}")));
    found
}
