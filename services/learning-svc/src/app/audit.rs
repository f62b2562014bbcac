//! Whether what is stored agrees with itself: the log replayed from nothing gives the resources, and the ballots counted
//! anew give the candidates' figures.

use std::collections::{BTreeMap, HashMap, HashSet};

use emend_core::{CandidateId, ContestId, Revision};
use emend_runtime::store::StoreError;

use super::App;
use crate::store::decisions::AuditRecords;

impl App {
    /// Every disagreement, in words; none where all is well. Reads everything: for tests and for operators.
    pub async fn audit(&self) -> Result<Vec<String>, StoreError> {
        let records = self.store.audit().await?;
        let mut found = Vec::new();
        found.extend(gaps(&records));
        found.extend(replay_log(&records));
        found.extend(recount(&records));
        if records.counted.iter().any(|(key, count)| records.present.get(key).copied().unwrap_or(0) != *count)
            || records.present.keys().any(|key| !records.counted.contains_key(key))
        {
            found.push(format!(
                "resource counts are {:?}, present are {:?}",
                records.counted, records.present
            ));
        }
        Ok(found)
    }
}

/// Revisions are 1, 2, 3 … up to the head.
fn gaps(records: &AuditRecords) -> Option<String> {
    let expected = (1..=records.head.0).map(Revision);
    (!records.revisions.iter().copied().eq(expected)).then(|| {
        format!(
            "the head is {}, but {} revisions are in the log, or not in one sequence",
            records.head,
            records.revisions.len()
        )
    })
}

/// The log replayed from nothing gives the resources.
fn replay_log(records: &AuditRecords) -> Vec<String> {
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

/// Each candidate's occurrences are its ballots, and no more voters support it than have their newest ballot for it.
fn recount(records: &AuditRecords) -> Vec<String> {
    let mut occurrences: HashMap<(ContestId, CandidateId), i64> = HashMap::new();
    let mut newest = HashMap::new();
    for (contest, candidate, voter, order) in &records.ballots {
        *occurrences.entry((*contest, *candidate)).or_default() += 1;
        let live = newest.entry((*contest, *voter)).or_insert((*order, *candidate));
        if *order > live.0 {
            *live = (*order, *candidate);
        }
    }
    let mut voters: HashMap<CandidateId, i64> = HashMap::new();
    for (_, candidate) in newest.values() {
        *voters.entry(*candidate).or_default() += 1;
    }
    let mut found = Vec::new();
    for (contest, candidate, stored, reporters) in &records.candidates {
        let counted = occurrences.remove(&(*contest, *candidate)).unwrap_or(0);
        if counted != *stored {
            found.push(format!("candidate {candidate} has {stored} occurrences, but {counted} ballots"));
        }
        let live = voters.get(candidate).copied().unwrap_or(0);
        if *reporters > live {
            found.push(format!("candidate {candidate} has {reporters} reporters, but {live} live votes"));
        }
    }
    found.extend(occurrences.keys().map(|(_, candidate)| format!("ballots for unknown candidate {candidate}")));
    found
}
