//! Contests and candidates as tests need them stored, without what decides.

use emend_core::{
    Caller, Candidate, ContestState, Event, Origin, Policy, ResourceKey, ResourceValue, decide,
};
use jiff::Timestamp;

use super::{CandidateWrite, ContestWrite, KeptCandidate, VoteWrites};
use crate::{UnitOfWork, actor::Actor};

/// Creates and locks contests, and writes their rows, as a decision that changes nothing would.
pub(crate) async fn store_empty(tx: &mut dyn UnitOfWork, keys: &[&ResourceKey]) {
    tx.contests().create(keys, Timestamp::UNIX_EPOCH).await.unwrap();
    tx.contests().lock(keys).await.unwrap();
    let rows = keys.iter().map(|key| ContestWrite::first((*key).clone()));
    let writes = VoteWrites {
        contests: rows.collect(),
        ..VoteWrites::default()
    };
    tx.contests().save_votes(&writes).await.unwrap();
}

/// The candidate that an operator's value becomes where there is no other.
pub(crate) fn put(key: &ResourceKey, value: ResourceValue) -> Candidate {
    let put = Event::Put {
        value,
        origin: Origin::Operator,
        reason: None,
    };
    let state = ContestState::new(key.clone());
    let decided = decide(state, &put, &Policy::default_for(key.kind), Timestamp::UNIX_EPOCH).unwrap();
    decided.after.candidates[0].clone()
}

/// The write of a candidate that was written `version` times.
pub(crate) fn write(key: &ResourceKey, candidate: Candidate, version: i64) -> CandidateWrite {
    CandidateWrite {
        key: key.clone(),
        candidate,
        kept: KeptCandidate {
            decided_by: Actor::caller(Caller::anonymous()),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            transitions: version,
            version,
        },
    }
}
