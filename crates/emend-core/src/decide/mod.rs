//! Decides what is learned: `decide(state, event, policy, now) -> Decision`, pure.
//!
//! A contest may have many ballots, so `decide` takes it by value and gives it back: nothing is copied, and the tally
//! is maintained from one event to the next.
//!
//! Votes follow one rule: a candidate is promoted, superseding the applied value, when its net confirmations (its
//! supporters minus those of its strongest rival, the applied value included) reach the threshold. A tie changes
//! nothing. Votes never replace what a person set and never restore what a person removed.
//!
//! A window decides without candidates: its value is a function of the outputs that were rated, each with what its live
//! ratings come to. There may be many of both, so the state holds only some:
//!
//! * Outputs: those that the events ahead are about, and the newest others of each class, as many as are shown.
//! * The newest live ratings of each such output and class: as many as an example is made of
//!   ([`voices`](crate::ratings::voices)), and one more for each event about the output.
//! * The ratings that the events ahead are about. For each of their voters and outputs also the newest ratings that are not
//!   excluded: one more than these events exclude.
//!
//! The rest of this module lists the other events in a contest and what each does. It must not know where the state
//! came from or how a decision is stored.

mod people;
mod review;
mod ruling;
#[cfg(test)]
mod tests;
mod votes;
mod window;

use jiff::Timestamp;

use crate::{
    ballots::{Ballot, Tally},
    candidate::{Candidate, Hold, Origin, Reason, Status},
    contest::{ContestState, Target},
    ids::{CandidateId, FeedbackId, Revision},
    kinds::{Rule, RulingRules},
    outcome::Outcome,
    policy::{MAX_SCOPES, Policy},
    ratings::Rated,
    resource::ResourceValue,
    roles::{RiskLevel, Roles},
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
        /// The sender's roles.
        sender: Roles,
        /// The roles of who retracted it, where that arrived first. A retracted vote is not recorded at all.
        retracted_by: Option<Roles>,
    },
    /// A correction that counted is retracted.
    Retracted {
        /// The ballot it had cast.
        ballot: Ballot,
        /// The roles of who retracts it.
        sender: Roles,
    },
    /// A rating arrives, for a kind that is decided by a window of ratings.
    Rated {
        /// The rating.
        rating: Box<Rated>,
        /// What arrived before it and excludes it.
        excluded: Option<Exclusion>,
    },
    /// A rating no longer counts.
    RatingExcluded {
        /// Its feedback.
        feedback: FeedbackId,
        /// Why.
        by: Exclusion,
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
        /// The revision.
        revision: Revision,
        /// The value before it.
        restore: Option<ResourceValue>,
        /// Why.
        reason: String,
    },
    /// A generator proposes a value for what is current; only where the kind is decided by review.
    Proposed {
        /// The proposal's own bytes: the same ones are the same proposal.
        proposal: Vec<u8>,
        /// The proposed value.
        value: ResourceValue,
    },
    /// A value is proposed that follows from what users did and nobody said; only where votes decide.
    Mined {
        /// The proposed value.
        value: ResourceValue,
    },
    /// A person makes a version current that was approved before; only where the kind is decided by review.
    MakeCurrent {
        /// The version's number.
        version: u32,
        /// What that version says; where the contest has the version itself, its own value applies.
        value: ResourceValue,
        /// Why.
        reason: Option<String>,
    },
    /// What the key names is known now.
    TargetArrived,
    /// What the key names was deleted. What was said of it waits, as if it had never been known.
    TargetGone,
    /// The user whose own contest this is has been erased: the value goes, and with it everything proposed.
    Erase,
}

impl Event {
    /// The value that it proposes, where votes decide.
    fn proposed(&self) -> Option<&ResourceValue> {
        match self {
            Self::Recorded { value, .. } | Self::Mined { value } | Self::Put { value, .. } => Some(value),
            Self::Approve { edited, .. } => edited.as_ref(),
            Self::Revert { restore, .. } => restore.as_ref(),
            _ => None,
        }
    }
}

/// Why a rating never counts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exclusion {
    /// It was retracted.
    Retraction,
    /// Its texts were erased.
    Redaction,
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
    /// A retraction left the value with fewer supporters than the threshold, or took a ruling back.
    Retraction,
    /// A changed policy was applied to pending candidates.
    Policy,
    /// The user whose own it was, or what a person had said, has been erased.
    Erasure,
    /// A correction of an entitled person or agent came into force.
    Ruling,
    /// A rating became an example, or took the place of one.
    Rating,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::Votes,
        Self::Review,
        Self::Operator,
        Self::Import,
        Self::Revert,
        Self::Retraction,
        Self::Policy,
        Self::Erasure,
        Self::Ruling,
        Self::Rating,
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
            Self::Ruling => 9,
            Self::Rating => 10,
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
    /// The ruling was rejected, which is for good.
    #[error("the ruling was rejected, which is for good")]
    RejectedForGood,
    /// The ruling was taken back.
    #[error("the ruling was taken back")]
    TakenBack,
    /// What was proposed was made for another version than the one that is current.
    #[error("it was made for another version than the one that is current")]
    BaseChanged,
    /// Only what was approved before can be made current.
    #[error("it was never approved: approve it instead")]
    NotApproved,
    /// The kind is not decided by review.
    #[error("this kind is not decided by review")]
    NotByReview,
    /// The kind is not decided by votes.
    #[error("this kind is not decided by votes")]
    NotByVotes,
    /// The value says that nothing applies.
    #[error("a clear has no value: delete the resource instead")]
    NoValue,
    /// A window of ratings decides what applies, and nobody else.
    #[error("its value follows from ratings: retract or redact a rating instead")]
    Window,
    /// The value's kind is not the contest's.
    #[error("the value is of another kind than the key")]
    WrongKind,
    /// Another key, or another value of the contest, has the same id.
    #[error("this id already belongs to another candidate; change the value slightly and try again")]
    SameId,
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
        /// The candidate that is applied; none where a window of ratings decides.
        candidate: Option<CandidateId>,
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
            Self::Put { candidate, .. } | Self::Delete { candidate } => *candidate,
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
    /// The candidate that was proposed, applied or rejected; none for events that are about no single one.
    pub subject: Option<CandidateId>,
}

impl Decision {
    /// Records the revision that was written in the state and the outcome.
    pub fn stamp(&mut self, revision: Revision) {
        let Some(change) = &self.resource else { return };
        let applied = self.after.applied().map(|applied| applied.id);
        self.after.resource = match change {
            ResourceChange::Delete { .. } => None,
            ResourceChange::Put { value, .. } => Some(crate::contest::CurrentResource {
                revision,
                value: value.clone(),
            }),
        };
        let subject = self.subject;
        if let Some(candidate) = applied.and_then(|id| self.after.candidate_mut(id)) {
            // A ruling that is in force again came into force by an earlier revision.
            let is_again = candidate.ruling.is_some() && candidate.applied_revision != Revision::default();
            if !is_again || subject == Some(candidate.id) {
                candidate.applied_revision = revision;
            }
        }
        // A ruling may change what another one that is in force comes to.
        if let Some(candidate) = subject.and_then(|id| self.after.candidate_mut(id))
            && candidate.is_effective()
        {
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
    let rule = &state.key.kind.rules().rule;
    decide_by(rule, state, event, policy, now)
}

/// Decides by that rule, whatever the kind of the contest is.
pub(crate) fn decide_by(
    rule: &Rule,
    state: ContestState,
    event: &Event,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Box<Refused>> {
    if matches!(rule, Rule::Votes { .. })
        && let Some(value) = event.proposed()
        && !has_an_id_of_its_own(value, event, &state)
    {
        let refusal = Refusal::SameId;
        return Err(Box::new(Refused { state, refusal }));
    }
    // Insert a new ballot before the first count, so that recording counts only once. Rulings are not counted.
    let cast = match (event, rule) {
        (Event::Recorded { ballot, .. }, Rule::Votes { .. }) => Some(ballot),
        _ => None,
    };
    let mut evaluation = Evaluation::new(state, cast, policy, now);
    let happened = match rule {
        Rule::Votes { .. } => apply_event(&mut evaluation, event),
        Rule::Ruling(rules) => ruling::apply_event(&mut evaluation, rules, event),
        Rule::Window(rules) => window::apply_event(&mut evaluation, rules, event),
        Rule::Review(rules) => review::apply_event(&mut evaluation, *rules, event),
    };
    match happened {
        Ok(()) => Ok(evaluation.finish(rule)),
        Err(refusal) => Err(Box::new(Refused {
            state: evaluation.state,
            refusal,
        })),
    }
}

/// Whether no other value of the contest has the id of this one, which is a hash.
fn has_an_id_of_its_own(value: &ResourceValue, event: &Event, state: &ContestState) -> bool {
    let id = match event {
        // The same, and derived already.
        Event::Recorded { ballot, .. } => ballot.candidate,
        _ => value.candidate_id(state.id()),
    };
    state.candidate(id).is_none_or(|known| known.value.is_same(value))
}

/// All refusals happen before anything changes.
fn apply_event(evaluation: &mut Evaluation<'_>, event: &Event) -> Result<(), Refusal> {
    match event {
        Event::Recorded {
            ballot,
            value,
            origin,
            personal_data,
            ..
        } => votes::record(evaluation, ballot, value, *origin, *personal_data),
        Event::Retracted { ballot, .. } => votes::retract(evaluation, ballot),
        Event::Mined { value } => votes::mine(evaluation, value),
        Event::Rated { .. } | Event::RatingExcluded { .. } => return Err(Refusal::WrongKind),
        Event::PolicyChanged => votes::reevaluate(evaluation),
        Event::Approve {
            candidate,
            edited,
            reason,
        } => people::approve(evaluation, *candidate, edited.as_ref(), reason.as_deref())?,
        Event::Reject { candidate, reason } => people::reject(evaluation, *candidate, reason)?,
        Event::Put {
            value,
            origin,
            reason,
        } => people::put(evaluation, value, *origin, reason.as_deref())?,
        Event::Delete { reason } => people::delete(evaluation, reason.as_deref())?,
        Event::Revert { restore, reason, .. } => people::revert(evaluation, restore.as_ref(), reason)?,
        Event::Erase => people::erase(evaluation),
        Event::TargetArrived | Event::TargetGone => {}
        Event::Proposed { .. } | Event::MakeCurrent { .. } => return Err(Refusal::NotByReview),
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
    subject: Option<CandidateId>,
    /// What a window of ratings comes to.
    window: Option<window::Shown>,
}

struct ReportedCandidate {
    candidate: CandidateId,
    /// What the correction itself says; `None`: that is not known any more, or the candidate is the correction's own.
    said: Option<ResourceValue>,
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
            subject: None,
            window: None,
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
        self.create(id, value, origin, status);
        (id, true)
    }

    fn create(&mut self, id: CandidateId, value: &ResourceValue, origin: Origin, status: Status) {
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
    fn finish(mut self, rule: &Rule) -> Decision {
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
        let said = match &reported.said {
            Some(said) => said.clone(),
            None if is_its_alone => candidate.value.clone(),
            // What others wrote is not shown: the key is what all wrote.
            None => ResourceValue::of(candidate.value.learned.in_normal_form(&self.state.key.qualifier)),
        };
        let figures = Outcome::figures(
            self.state.key.key.as_str(),
            said,
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
