//! The contest while a decision is being made.

use jiff::Timestamp;

use super::{Cause, Decision, ResourceChange, Transition, window};
use crate::{
    ballots::{Ballot, Tally},
    candidate::{Candidate, Hold, Origin, Reason, Status},
    contest::{ContestState, Target},
    ids::{CandidateId, Revision},
    kinds::{Rule, RulingRules},
    outcome::Outcome,
    policy::Policy,
    resource::ResourceValue,
    roles::RiskLevel,
};

/// The contest while a decision is being made.
pub(super) struct Evaluation<'a> {
    pub(super) state: ContestState,
    /// The candidate that was applied before the event.
    applied_before: Option<CandidateId>,
    pub(super) policy: &'a Policy,
    pub(super) now: Timestamp,
    pub(super) tally: Tally,
    pub(super) risk: RiskLevel,
    pub(super) threshold: u32,
    pub(super) cause: Cause,
    transitions: Vec<Transition>,
    /// The candidate whose outcome is reported, if the event reports one.
    pub(super) reported: Option<ReportedCandidate>,
    pub(super) subject: Option<CandidateId>,
    /// What a window of ratings comes to.
    pub(super) window: Option<window::WindowValue>,
}

pub(super) struct ReportedCandidate {
    pub(super) candidate: CandidateId,
    /// What the correction itself says; `None`: that is not known any more, or the candidate is the correction's own.
    pub(super) proposed: Option<ResourceValue>,
    pub(super) was_new: bool,
    pub(super) retracted: bool,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        mut state: ContestState,
        cast: Option<&Ballot>,
        policy: &'a Policy,
        now: Timestamp,
    ) -> Self {
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
            subject: None,
            window: None,
        }
    }

    pub(super) fn count(&mut self) {
        self.tally = self.state.ballots.tally(self.policy, self.now);
    }

    /// The candidates, which may be changed one after the other.
    pub(super) fn candidate_ids(&self) -> Vec<CandidateId> {
        self.state
            .candidates
            .iter()
            .map(|candidate| candidate.id)
            .collect()
    }

    /// Reports the outcome of a correction whose candidate is its own, or which is retracted.
    pub(super) fn report(&mut self, candidate: CandidateId, was_new: bool, retracted: bool) {
        self.reported = Some(ReportedCandidate {
            candidate,
            proposed: None,
            was_new,
            retracted,
        });
    }

    /// Whether the approval of another reviewer is missing.
    pub(super) fn needs_second(&self, is_second: bool) -> bool {
        !is_second && self.policy.needs_two(self.state.key.user.is_some())
    }

    /// Changes a candidate's status and records the transition if there is one. A first approval of two is one, and so is its end,
    /// although the status may stay.
    pub(super) fn move_to(&mut self, id: CandidateId, to: Status, reason: Option<Reason>) {
        let Some(candidate) = self.state.candidate_mut(id) else {
            return;
        };
        let from = candidate.status;
        let of_approval = from == to
            && (candidate.reason == Some(Reason::SecondReviewer)) != (reason == Some(Reason::SecondReviewer));
        candidate.status = to;
        candidate.reason = reason;
        if from != to || of_approval {
            self.transitions.push(Transition {
                candidate: id,
                from: Some(from),
                to,
                reason,
            });
        }
    }

    /// The candidate that proposes `value`, created if there is none. Also returns whether it was created.
    pub(super) fn candidate_for(
        &mut self,
        value: &ResourceValue,
        origin: Origin,
        status: Status,
    ) -> (CandidateId, bool) {
        let id = value.candidate_id(self.state.id());
        if self.state.candidate(id).is_some() {
            return (id, false);
        }
        self.create(id, value, origin, status);
        (id, true)
    }

    pub(super) fn create(&mut self, id: CandidateId, value: &ResourceValue, origin: Origin, status: Status) {
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
            ruling: None,
            proposal: None,
        });
        self.transitions.push(Transition {
            candidate: id,
            from: None,
            to: status,
            reason: None,
        });
    }

    /// Applies a candidate, superseding the one applied before.
    pub(super) fn apply(&mut self, id: CandidateId, by_votes: bool) {
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

    pub(super) fn hold(&mut self, id: CandidateId, hold: Option<Hold>) {
        if let Some(candidate) = self.state.candidate_mut(id) {
            candidate.hold = hold;
        }
    }

    /// Updates the figures of all candidates and determines the change to the resource.
    pub(super) fn finish(mut self, rule: &Rule) -> Decision {
        let value = match rule {
            Rule::Votes { .. } => {
                self.weigh();
                self.state.applied().map(|applied| applied.value.clone())
            }
            Rule::Ruling(rules) => self.in_force(rules),
            Rule::Window(_) => self.window.as_ref().and_then(|shown| shown.value.clone()),
            Rule::Review(_) => self.state.applied().map(|applied| applied.value.clone()),
        };
        let applied = self.state.applied().map(|applied| applied.id);
        // Until the decision is stamped, the state holds the resource from before the event.
        let resource = match (&self.state.resource, value) {
            (Some(current), Some(value)) if current.value == value => None,
            (Some(_), None) => Some(ResourceChange::Delete {
                candidate: applied.or(self.applied_before),
            }),
            (_, Some(value)) if applied.is_some() || matches!(rule, Rule::Window(_)) => {
                Some(ResourceChange::Put {
                    candidate: applied,
                    value,
                })
            }
            (None, None) | (_, Some(_)) => None,
        };
        let outcome = match (rule, &self.reported) {
            (Rule::Window(rules), _) => window::outcome(&self, rules, resource.as_ref()),
            (_, Some(reported)) => self.outcome_of(reported, resource.as_ref()),
            (_, None) => None,
        };
        Decision {
            after: self.state,
            transitions: self.transitions,
            resource,
            cause: self.cause,
            policy_version: self.policy.version,
            outcome,
            subject: self.subject,
            undoable: None,
        }
    }

    /// The figures of candidates that votes decide about.
    fn weigh(&mut self) {
        let standings = self.tally.standings(&self.state.candidates);
        for candidate in &mut self.state.candidates {
            candidate.net = standings.net(candidate.id);
            candidate.reporters = self.tally.of(candidate.id).voters;
            candidate.risk = self.risk;
            candidate.threshold = self.threshold;
            candidate.policy_version = self.policy.version;
            if candidate.status == Status::Pending {
                let threshold = u64::from(self.threshold);
                candidate.reason = Some(if self.tally.of(candidate.id).counted < threshold {
                    Reason::BelowThreshold
                } else if self.policy.frozen && candidate.net >= i64::from(self.threshold) {
                    Reason::Frozen
                } else {
                    Reason::Rivals
                });
            }
        }
    }

    /// What the effective rulings come to.
    fn in_force(&self, rules: &RulingRules) -> Option<ResourceValue> {
        if rules.needs_target && self.state.target != Target::Known {
            return None;
        }
        let effective = self.state.effective();
        let learned: Vec<_> = effective.iter().map(|ruling| &ruling.value.learned).collect();
        let learned = (rules.in_force)(&learned)?;
        let newest = effective.first()?;
        Some(ResourceValue {
            learned,
            ..newest.value.clone()
        })
    }

    fn outcome_of(&self, reported: &ReportedCandidate, change: Option<&ResourceChange>) -> Option<Outcome> {
        let candidate = self.state.candidate(reported.candidate)?;
        let applies = candidate.status == Status::Applied;
        let is_its_own = match change {
            Some(change) => change.candidate() == Some(candidate.id) && applies,
            None => false,
        };
        let is_its_alone = candidate.ruling.is_some() || candidate.proposal.is_some();
        let proposed = match &reported.proposed {
            Some(proposed) => proposed.clone(),
            None if is_its_alone => candidate.value.clone(),
            // What others wrote is not shown: the key is what all wrote.
            None => ResourceValue::of(candidate.value.learned.in_normal_form(&self.state.key.qualifier)),
        };
        let figures = Outcome::figures(
            self.state.key.key.as_str(),
            proposed,
            candidate,
            reported.was_new,
            is_its_own && !reported.retracted,
            self.now,
        );
        let was_applied = self.applied_before == Some(candidate.id);
        Some(match (&candidate.ruling, reported.retracted) {
            (Some(_), true) if candidate.is_effective() => figures.of_a_retraction_without_right(),
            (_, true) => figures.of_a_retraction(was_applied && !applies && change.is_some()),
            (Some(_), false) if applies && change.is_none() && self.state.resource.is_none() => {
                figures.of_nothing_to_clear()
            }
            (_, false) => figures.of_support(candidate),
        })
    }
}
