//! One contest while it is worked upon: as it was found, as it is now, and what of that is to be written.

use std::collections::HashMap;

use emend_core::{CandidateId, ContestState, Decision, Revision, Status, decide::Cause};
use jiff::Timestamp;

use super::{Because, Written};
use crate::store::decisions::{CandidateWrite, ContestWrite, KeptCandidate, StoredContest, TransitionWrite};

/// A contest while it is worked upon.
pub(super) struct Working {
    pub(super) before: StoredContest,
    pub(super) state: ContestState,
    pub(super) kept: HashMap<CandidateId, KeptCandidate>,
    pub(super) policy_version: i64,
    pub(super) decided: bool,
    pub(super) resource_changed: bool,
}

impl Working {
    /// Takes a decision over, and makes of its transitions what is to be written.
    pub(super) fn take(
        &mut self,
        decision: Decision,
        because: &Because,
        revision: Revision,
        now: Timestamp,
    ) -> Vec<TransitionWrite> {
        let Decision {
            after,
            transitions,
            cause,
            policy_version,
            ..
        } = decision;
        let writes = transitions.into_iter().map(|transition| {
            let kept = self
                .kept
                .entry(transition.candidate)
                .or_insert_with(|| KeptCandidate {
                    decided_by: because.actor.clone(),
                    created_at: now,
                    updated_at: now,
                    transitions: 0,
                    version: 0,
                });
            let sequence = kept.transitions;
            kept.transitions += 1;
            kept.decided_by = because.actor.clone();
            let reason = match transition.reason {
                // A person's words say more than the name of the rule.
                Some(reason) if because.reason.is_empty() || !is_by_person(cause) => reason.name().to_owned(),
                _ if is_by_person(cause) => because.reason.clone(),
                _ => String::new(),
            };
            TransitionWrite {
                candidate: transition.candidate,
                sequence,
                from: transition.from,
                to: transition.to,
                cause,
                reason,
                actor: because.actor.clone(),
                at: now,
                revision,
                policy_version,
            }
        });
        let writes = writes.collect();
        self.state = after;
        self.policy_version = policy_version;
        self.decided = true;
        writes
    }

    /// The contest's row, where it changed.
    pub(super) fn row(&self) -> Option<ContestWrite> {
        let pending = self
            .state
            .candidates
            .iter()
            .any(|candidate| matches!(candidate.status, Status::Pending | Status::AwaitingReview));
        let before = &self.before.row;
        let same = before.pinned == self.state.pinned
            && before.highest_accept_order == self.state.highest_accept_order
            && before.policy_version == self.policy_version
            && before.pending == pending;
        (!same).then(|| ContestWrite {
            key: self.state.key.clone(),
            pinned: self.state.pinned,
            highest_accept_order: self.state.highest_accept_order,
            policy_version: self.policy_version,
            pending,
        })
    }

    pub(super) fn settle(&mut self, written: &Written) {
        if let Some(resource) = &mut self.state.resource {
            resource.revision = written.settle(resource.revision);
        }
        for candidate in &mut self.state.candidates {
            candidate.applied_revision = written.settle(candidate.applied_revision);
        }
    }

    pub(super) fn changed_candidates(&mut self, now: Timestamp) -> Vec<CandidateWrite> {
        let mut changed = Vec::new();
        for candidate in &self.state.candidates {
            // What a group of events brings back to where it was has a history all the same, whose length is kept.
            let went_through =
                |of: &HashMap<CandidateId, KeptCandidate>| of.get(&candidate.id).map(|kept| kept.transitions);
            let before = self.before.state.candidate(candidate.id);
            if before == Some(candidate) && went_through(&self.before.kept) == went_through(&self.kept) {
                continue;
            }
            if let Some(kept) = self.kept.get_mut(&candidate.id) {
                kept.version += 1;
                kept.updated_at = now;
                changed.push(CandidateWrite {
                    key: self.state.key.clone(),
                    candidate: candidate.clone(),
                    kept: kept.clone(),
                });
            }
        }
        changed
    }
}

fn is_by_person(cause: Cause) -> bool {
    match cause {
        Cause::Votes | Cause::Retraction | Cause::Policy => false,
        Cause::Review | Cause::Operator | Cause::Import | Cause::Revert => true,
    }
}
