//! Decides what is learned: `decide(state, event, policy, now) -> Decision`, pure.
//!
//! A contest may have many ballots, so `decide` takes it by value and gives it back: nothing is copied, and the tally
//! is maintained from one event to the next.
//!
//! Votes follow one rule: a candidate is promoted, superseding the applied value, when its net confirmations (its
//! supporters minus those of its strongest rival, the applied value included) reach the threshold. A tie changes
//! nothing. Votes never replace what a person set and never restore what a person removed.
//!
//! The rest of this module lists the other events in a contest and what each does. It must not know where the state
//! came from or how a decision is stored.

mod review;
#[cfg(test)]
mod tests;
mod votes;

use jiff::Timestamp;

use crate::{
    ballots::{Ballot, Tally},
    contest::{Candidate, ContestState, Hold, Origin, Status},
    ids::{CandidateId, Revision},
    outcome::{Outcome, Reason},
    policy::{MAX_SCOPES, Policy, RiskLevel},
    resource::ResourceValue,
};

/// Something that happens to a contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A correction proposes a value. Its ballot names the candidate given by [`ResourceValue::candidate_id`].
    Recorded {
        /// The vote it casts.
        ballot: Ballot,
        /// The proposed value.
        value: ResourceValue,
        /// The origin to record if this creates a candidate.
        origin: Origin,
        /// Personal data was found in a GLOBAL key or value.
        personal_data: bool,
    },
    /// A correction that counted is retracted.
    Retracted {
        /// The ballot it had cast.
        ballot: Ballot,
    },
    /// The policy changed.
    PolicyChanged,
    /// A person applies a candidate, as proposed or edited.
    Approve {
        /// The candidate.
        candidate: CandidateId,
        /// The value to apply instead.
        edited: Option<ResourceValue>,
        /// Why.
        reason: Option<String>,
    },
    /// A person rejects a candidate.
    Reject {
        /// The candidate.
        candidate: CandidateId,
        /// Why.
        reason: String,
    },
    /// A person sets the value.
    Put {
        /// The value.
        value: ResourceValue,
        /// By hand or by import.
        origin: Origin,
        /// Why.
        reason: Option<String>,
    },
    /// A person deletes the value.
    Delete {
        /// Why.
        reason: Option<String>,
    },
    /// A revision is reverted: the value before it is restored.
    Revert {
        /// The value before the revision.
        restore: Option<ResourceValue>,
        /// Why.
        reason: String,
    },
    /// The user whose own contest this is has been erased: the value goes, and with it everything proposed.
    Erase,
}

/// Why a resource changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Votes reached the threshold.
    Votes,
    /// A person approved or rejected a candidate.
    Review,
    /// An operator put or deleted the resource.
    Operator,
    /// A bulk import, as a person's decision.
    Import,
    /// A revision was reverted.
    Revert,
    /// A retraction left the value with fewer supporters than the threshold.
    Retraction,
    /// A changed policy was applied to pending candidates.
    Policy,
    /// The user whose own it was has been erased.
    Erasure,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 8] = [
        Self::Votes,
        Self::Review,
        Self::Operator,
        Self::Import,
        Self::Revert,
        Self::Retraction,
        Self::Policy,
        Self::Erasure,
    ];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Votes => 1,
            Self::Review => 2,
            Self::Operator => 3,
            Self::Import => 4,
            Self::Revert => 5,
            Self::Retraction => 6,
            Self::Policy => 7,
            Self::Erasure => 8,
        }
    }

    /// The cause with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.number() == number)
    }
}

/// Why an event was refused. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The contest has no such candidate.
    #[error("the contest has no such candidate")]
    UnknownCandidate,
    /// The candidate is already applied.
    #[error("the candidate is applied already")]
    AlreadyApplied,
    /// The candidate is already rejected.
    #[error("the candidate is rejected already")]
    AlreadyRejected,
    /// There is no resource to delete.
    #[error("there is no resource")]
    NoResource,
    /// The value's kind is not the contest's.
    #[error("the value is of another kind than the key")]
    WrongKind,
    /// The namespace holds as many resources of the kind as the policy allows, or this would be one more than
    /// [`MAX_SCOPES`] kinds in namespaces that hold any.
    #[error(
        "the namespace has as many resources of this kind as its policy allows, or {MAX_SCOPES} pairs of namespace \
         and kind, the maximum, have resources already"
    )]
    Full,
}

/// An event that was refused, with the contest as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The contest, unchanged.
    pub state: ContestState,
    /// Why.
    pub refusal: Refusal,
}

/// A change of a candidate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The candidate.
    pub candidate: CandidateId,
    /// The previous status; `None` if the candidate was created.
    pub from: Option<Status>,
    /// The new status.
    pub to: Status,
    /// The reason for the new status.
    pub reason: Option<Reason>,
}

/// What happens to the contest's resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChange {
    /// It gets this value.
    Put {
        /// The candidate that is applied.
        candidate: CandidateId,
        /// Its value.
        value: ResourceValue,
    },
    /// It is deleted.
    Delete {
        /// The candidate that was applied.
        candidate: Option<CandidateId>,
    },
}

impl ResourceChange {
    /// The candidate that is applied or whose value is deleted.
    pub fn candidate(&self) -> Option<CandidateId> {
        match self {
            Self::Put { candidate, .. } => Some(*candidate),
            Self::Delete { candidate } => *candidate,
        }
    }
}

/// The result of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The contest to store. If a revision is written, [`Decision::stamp`] adds it.
    pub after: ContestState,
    /// Status changes, in order.
    pub transitions: Vec<Transition>,
    /// What happens to the resource; `None`: it stays as it is, and no revision is written.
    pub resource: Option<ResourceChange>,
    /// Why.
    pub cause: Cause,
    /// The version of the policy used.
    pub policy_version: i64,
    /// What the reporter is told; only for recorded and retracted corrections.
    pub outcome: Option<Outcome>,
}

impl Decision {
    /// Records the revision that was written in the state and the outcome.
    pub fn stamp(&mut self, revision: Revision) {
        let applied = match &self.resource {
            None => return,
            Some(ResourceChange::Delete { .. }) => {
                self.after.resource = None;
                None
            }
            Some(ResourceChange::Put { candidate, value }) => {
                self.after.resource = Some(crate::contest::CurrentResource {
                    revision,
                    value: value.clone(),
                });
                Some(*candidate)
            }
        };
        if let Some(candidate) = applied.and_then(|id| self.after.candidate_mut(id)) {
            candidate.applied_revision = revision;
        }
        if let Some(outcome) = &mut self.outcome {
            outcome.revision = revision;
        }
    }
}

/// Decides what follows from `event`. Pure: equal arguments give equal decisions.
pub fn decide(
    state: ContestState,
    event: &Event,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Box<Refused>> {
    // Insert a new ballot before the first count, so that recording counts only once.
    let cast = match event {
        Event::Recorded { ballot, .. } => Some(ballot),
        _ => None,
    };
    let mut evaluation = Evaluation::new(state, cast, policy, now);
    match happen(&mut evaluation, event) {
        Ok(()) => Ok(evaluation.finish()),
        Err(refusal) => Err(Box::new(Refused {
            state: evaluation.state,
            refusal,
        })),
    }
}

/// All refusals happen before anything changes.
fn happen(evaluation: &mut Evaluation<'_>, event: &Event) -> Result<(), Refusal> {
    match event {
        Event::Recorded {
            ballot,
            value,
            origin,
            personal_data,
        } => votes::record(evaluation, ballot, value, *origin, *personal_data),
        Event::Retracted { ballot } => votes::retract(evaluation, ballot),
        Event::PolicyChanged => votes::reevaluate(evaluation),
        Event::Approve {
            candidate,
            edited,
            reason,
        } => review::approve(evaluation, *candidate, edited.as_ref(), reason.as_deref())?,
        Event::Reject { candidate, reason } => review::reject(evaluation, *candidate, reason)?,
        Event::Put {
            value,
            origin,
            reason,
        } => review::put(evaluation, value, *origin, reason.as_deref())?,
        Event::Delete { reason } => review::delete(evaluation, reason.as_deref())?,
        Event::Revert { restore, reason } => review::revert(evaluation, restore.as_ref(), reason)?,
        Event::Erase => review::erase(evaluation),
    }
    Ok(())
}

/// The contest while a decision is being made.
struct Evaluation<'a> {
    state: ContestState,
    /// The candidate that was applied before the event.
    applied_before: Option<CandidateId>,
    policy: &'a Policy,
    now: Timestamp,
    tally: Tally,
    risk: RiskLevel,
    threshold: u32,
    cause: Cause,
    transitions: Vec<Transition>,
    /// The candidate whose outcome is reported, if the event reports one.
    reported: Option<ReportedCandidate>,
}

struct ReportedCandidate {
    candidate: CandidateId,
    was_new: bool,
    retracted: bool,
}

impl<'a> Evaluation<'a> {
    fn new(mut state: ContestState, cast: Option<&Ballot>, policy: &'a Policy, now: Timestamp) -> Self {
        let risk = policy.risk_for(state.key.user.is_some());
        if let Some(ballot) = cast {
            state.ballots.insert(ballot.clone());
        }
        Self {
            tally: state.ballots.tally(policy, now),
            applied_before: state.applied().map(|applied| applied.id),
            state,
            policy,
            now,
            risk,
            threshold: policy.threshold_for(risk),
            cause: Cause::Votes,
            transitions: Vec::new(),
            reported: None,
        }
    }

    fn count(&mut self) {
        self.tally = self.state.ballots.tally(self.policy, self.now);
    }

    /// Changes a candidate's status and records the transition if there is one.
    fn move_to(&mut self, id: CandidateId, to: Status, reason: Option<Reason>) {
        let Some(candidate) = self.state.candidate_mut(id) else {
            return;
        };
        let from = candidate.status;
        candidate.status = to;
        candidate.reason = reason;
        if from != to {
            self.transitions.push(Transition {
                candidate: id,
                from: Some(from),
                to,
                reason,
            });
        }
    }

    /// The candidate that proposes `value`, created if there is none. Also returns whether it was created.
    fn candidate_for(
        &mut self,
        value: &ResourceValue,
        origin: Origin,
        status: Status,
    ) -> (CandidateId, bool) {
        let id = value.candidate_id(self.state.id());
        if self.state.candidate(id).is_some() {
            return (id, false);
        }
        self.state.candidates.push(Candidate {
            id,
            value: value.clone(),
            status,
            reason: None,
            origin,
            edited_from: None,
            hold: None,
            decision_reason: None,
            occurrences: 0,
            reporters: 0,
            net: 0,
            risk: self.risk,
            threshold: self.threshold,
            policy_version: self.policy.version,
            applied_threshold: None,
            applied_revision: Revision::default(),
        });
        self.transitions.push(Transition {
            candidate: id,
            from: None,
            to: status,
            reason: None,
        });
        (id, true)
    }

    /// Applies a candidate, superseding the one applied before.
    fn apply(&mut self, id: CandidateId, by_votes: bool) {
        if let Some(previous) = self.state.applied().map(|applied| applied.id)
            && previous != id
        {
            self.move_to(previous, Status::Superseded, None);
        }
        self.move_to(id, Status::Applied, None);
        let threshold = self.threshold;
        if let Some(candidate) = self.state.candidate_mut(id) {
            candidate.applied_threshold = by_votes.then_some(threshold);
        }
    }

    fn hold(&mut self, id: CandidateId, hold: Option<Hold>) {
        if let Some(candidate) = self.state.candidate_mut(id) {
            candidate.hold = hold;
        }
    }

    /// Updates the figures of all candidates and determines the change to the resource.
    fn finish(mut self) -> Decision {
        let standings = self.tally.standings(&self.state.candidates);
        for candidate in &mut self.state.candidates {
            candidate.net = standings.net(candidate.id);
            candidate.reporters = self.tally.of(candidate.id).voters;
            candidate.risk = self.risk;
            candidate.threshold = self.threshold;
            candidate.policy_version = self.policy.version;
            if candidate.status == Status::Pending {
                let enough = self.tally.of(candidate.id).counted >= u64::from(self.threshold);
                candidate.reason = Some(if enough {
                    Reason::Rivals
                } else {
                    Reason::BelowThreshold
                });
            }
        }

        let applied = self.state.applied();
        // Until the decision is stamped, the state holds the resource from before the event.
        let resource = match (&self.state.resource, applied) {
            (None, None) => None,
            (Some(_), None) => Some(ResourceChange::Delete {
                candidate: self.applied_before,
            }),
            (Some(current), Some(applied)) if current.value == applied.value => None,
            (_, Some(applied)) => Some(ResourceChange::Put {
                candidate: applied.id,
                value: applied.value.clone(),
            }),
        };
        let outcome = self.reported.as_ref().and_then(|reported| {
            let candidate = self.state.candidate(reported.candidate)?;
            let promoted = matches!(&resource, Some(ResourceChange::Put { candidate, .. }) if *candidate == reported.candidate);
            let mut outcome = Outcome::of(candidate, reported.was_new, promoted && !reported.retracted, self.now);
            if reported.retracted {
                let applied = self.applied_before == Some(reported.candidate);
                outcome = outcome.of_a_retraction(applied && candidate.status != Status::Applied);
            }
            Some(outcome)
        });
        Decision {
            after: self.state,
            transitions: self.transitions,
            resource,
            cause: self.cause,
            policy_version: self.policy.version,
            outcome,
        }
    }
}
