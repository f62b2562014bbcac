//! One contest being worked on: as found, as it is now, and what of that has to be written.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use emend_core::{
    CandidateId, ContestState, Decision, Event, FeedbackId, OutputTally, Rated, RatedId, Revision, Rule,
    Status, decide::Cause,
};
use jiff::Timestamp;
use learning_store::{
    contests::{CandidateWrite, ContestWrite, KeptCandidate, StoredContest, TransitionWrite},
    outputs::{NewRating, RatingChange, RatingWrites},
};

use crate::decisions::{ballot_cache::Fingerprint, numbering::Numbers, open::Attribution};

/// A contest being worked on.
pub(super) struct Working {
    pub(super) before: StoredContest,
    pub(super) state: ContestState,
    pub(super) kept: HashMap<CandidateId, KeptCandidate>,
    pub(super) policy_version: i64,
    /// Whether each rating that was read was live and excluded.
    pub(super) found_ratings: HashMap<FeedbackId, (bool, bool)>,
    /// What each output that was read came to.
    pub(super) found_outputs: HashMap<RatedId, OutputTally>,
    pub(super) decided: bool,
    pub(super) resource_changed: bool,
    /// Candidates for which a ballot was cast or retracted.
    pub(super) voted_for: HashSet<CandidateId>,
}

impl Working {
    /// Whether votes decide it.
    pub(super) fn is_by_votes(&self) -> bool {
        matches!(self.state.key.kind.rules().rule, Rule::Votes { .. })
    }

    /// Whether a window of ratings decides it.
    pub(super) fn is_window(&self) -> bool {
        matches!(self.state.key.kind.rules().rule, Rule::Window(_))
    }

    /// Whether anything was decided in it, or counted by it for another one.
    pub(super) fn is_touched(&self) -> bool {
        let before = &self.before.row;
        self.decided
            || self.state.versions != before.versions
            || self.state.highest_accept_order != before.highest_accept_order
    }

    /// Adds a rating as found, unless it is there already.
    pub(super) fn add_rating(&mut self, rated: Rated) {
        if let Entry::Vacant(unknown) = self.found_ratings.entry(rated.feedback) {
            unknown.insert((rated.live, rated.excluded));
            self.state.ratings.push(rated);
        }
    }

    /// Adds an output as found.
    pub(super) fn add_output(&mut self, output: OutputTally) {
        self.found_outputs.insert(output.rated, output);
        self.state.outputs.push(output);
    }

    /// Ratings that are new, or count otherwise than they were found; and outputs that come to something else.
    pub(super) fn write_ratings(&self, writes: &mut RatingWrites) {
        for rated in &self.state.ratings {
            match self.found_ratings.get(&rated.feedback) {
                None => writes.new.push(NewRating {
                    contest: self.state.id(),
                    rated: rated.clone(),
                }),
                Some(found) if *found != (rated.live, rated.excluded) => writes.changed.push(RatingChange {
                    feedback: rated.feedback,
                    live: rated.live,
                    excluded: rated.excluded,
                }),
                Some(_) => {}
            }
        }
        for output in &self.state.outputs {
            let found = self.found_outputs.get(&output.rated);
            if *output != found.copied().unwrap_or(OutputTally::new(output.rated)) {
                writes.outputs.push((self.state.id(), *output));
            }
        }
    }

    /// The fingerprint of the contest as found.
    pub(super) fn found_fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.before.state, &self.before.kept)
    }

    /// Adopts the decision on an event and returns its transitions as writes.
    pub(super) fn take(
        &mut self,
        event: &Event,
        decision: Decision,
        attribution: &Attribution,
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
                    decided_by: attribution.actor.clone(),
                    created_at: now,
                    updated_at: now,
                    transitions: 0,
                    version: 0,
                });
            let sequence = kept.transitions;
            kept.transitions += 1;
            kept.decided_by = attribution.actor.clone();
            let reason = match transition.reason {
                // A person's words say more than a rule's name.
                Some(reason) if attribution.reason.is_empty() || !is_by_person(cause) => {
                    reason.name().to_owned()
                }
                // What a reporter says is personal, and kept apart; what the system proposes says why here.
                _ if is_by_person(cause) || attribution.trigger.is_none() => attribution.reason.clone(),
                _ => String::new(),
            };
            TransitionWrite {
                candidate: transition.candidate,
                sequence,
                from: transition.from,
                to: transition.to,
                cause,
                reason,
                actor: attribution.actor.clone(),
                at: now,
                revision,
                policy_version,
            }
        });
        let writes = writes.collect();
        self.state = after;
        // A pending contest keeps its old policy version, and so stays due for re-evaluation, unless this event
        // evaluated it; so does one that is pending again, because a decision was undone.
        if evaluates(event) || !self.before.row.pending && !matches!(event, Event::Undo { .. }) {
            self.policy_version = policy_version;
        }
        self.decided = true;
        writes
    }

    /// The contest's row, if it changed or is not there yet.
    pub(super) fn row(&self) -> Option<ContestWrite> {
        let pending = self
            .state
            .candidates
            .iter()
            .any(|candidate| matches!(candidate.status, Status::Pending | Status::AwaitingReview))
            || self.is_window();
        let before = &self.before.row;
        let same = before.is_stored
            && before.pinned == self.state.pinned
            && before.highest_accept_order == self.state.highest_accept_order
            && before.policy_version == self.policy_version
            && before.pending == pending
            && before.target == self.state.target
            && before.versions == self.state.versions
            && before.decisions == self.state.decisions;
        (!same).then(|| ContestWrite {
            key: self.state.key.clone(),
            pinned: self.state.pinned,
            highest_accept_order: self.state.highest_accept_order,
            policy_version: self.policy_version,
            pending,
            target: self.state.target,
            versions: self.state.versions,
            decisions: self.state.decisions,
        })
    }

    /// Gives the revisions in it their final numbers.
    pub(super) fn number(&mut self, numbers: &Numbers) {
        if let Some(resource) = &mut self.state.resource {
            resource.revision = numbers.of(resource.revision);
        }
        for candidate in &mut self.state.candidates {
            candidate.applied_revision = numbers.of(candidate.applied_revision);
        }
    }

    /// The candidates to write: those that changed, and those that changed and changed back, since their next
    /// transition must be numbered after the new history.
    pub(super) fn changed_candidates(&mut self, now: Timestamp) -> Vec<CandidateWrite> {
        let mut changed = Vec::new();
        for candidate in &self.state.candidates {
            let before = &self.before;
            let known = before.kept.get(&candidate.id).map(|kept| kept.transitions);
            let as_before = before.state.candidate(candidate.id) == Some(candidate);
            if let Some(kept) = self.kept.get_mut(&candidate.id) {
                // A candidate whose ballots changed gets a new version even if all its figures came out the same, so
                // that caches notice.
                if as_before && known == Some(kept.transitions) && !self.voted_for.contains(&candidate.id) {
                    continue;
                }
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

/// Whether an event evaluates everything pending by the current policy. What a person sets or deletes does not.
fn evaluates(event: &Event) -> bool {
    match event {
        Event::Recorded { .. }
        | Event::Retracted { .. }
        | Event::Rated { .. }
        | Event::RatingExcluded { .. }
        | Event::PolicyChanged
        | Event::TargetArrived
        | Event::TargetGone
        | Event::Reject { .. } => true,
        Event::Approve { .. }
        | Event::Undo { .. }
        | Event::Put { .. }
        | Event::Delete { .. }
        | Event::Revert { .. }
        | Event::Proposed { .. }
        | Event::Mined { .. }
        | Event::MakeCurrent { .. }
        | Event::Erase => false,
    }
}

fn is_by_person(cause: Cause) -> bool {
    match cause {
        Cause::Votes | Cause::Ruling | Cause::Rating | Cause::Retraction | Cause::Policy | Cause::Erasure => {
            false
        }
        Cause::Review | Cause::Undo | Cause::Operator | Cause::Import | Cause::Revert => true,
    }
}
