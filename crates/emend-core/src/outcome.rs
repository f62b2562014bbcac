//! What a reporter is told about a correction.

use jiff::Timestamp;

use crate::{
    candidate::{Candidate, Reason, Status},
    ids::{CandidateId, Revision},
    kinds::Learned,
    resource::ResourceValue,
    roles::RiskLevel,
};

/// The state of a correction after evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeState {
    /// Below the threshold.
    Pending,
    /// The proposed value is the resource.
    Applied,
    /// A person has to decide.
    AwaitingReview,
    /// A person rejected this value before.
    Rejected,
    /// Evaluated but changed nothing.
    NoEffect,
    /// Cannot be learned.
    Refused,
    /// A retraction withdrew the value: it applies no longer.
    Withdrawn,
}

impl OutcomeState {
    /// How far a correction in this state has come towards what it wants; more is further.
    pub fn advancement(self) -> u8 {
        match self {
            Self::Withdrawn => 0,
            Self::Refused => 1,
            Self::Rejected => 2,
            Self::NoEffect => 3,
            Self::Pending => 4,
            Self::AwaitingReview => 5,
            Self::Applied => 6,
        }
    }
}

/// The result of evaluating one correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The state of the correction.
    pub state: OutcomeState,
    /// The reason, if the state alone does not say.
    pub reason: Option<Reason>,
    /// The candidate it supports; none where the kind is decided by a window of ratings.
    pub candidate_id: Option<CandidateId>,
    /// What was learned, or would be, as this correction says it.
    pub learned: Learned,
    /// What the user says, as this correction has it, or in normal form; never as another reporter wrote it.
    pub input: String,
    /// The risk level that applied.
    pub risk: RiskLevel,
    /// How often this value was proposed.
    pub occurrences: u64,
    /// Number of distinct voters that support it.
    pub reporters: u64,
    /// Net confirmations still missing; 0 if none.
    pub confirmations_needed: u32,
    /// The threshold that applied.
    pub threshold: u32,
    /// Whether it created the candidate.
    pub was_new: bool,
    /// Whether it caused the promotion.
    pub auto_applied: bool,
    /// One sentence for the reporter. It says nothing that others wrote.
    pub message: String,
    /// Where a person rejected the value: why, as that person wrote it.
    pub decision_reason: Option<String>,
    /// When it was evaluated.
    pub evaluated_at: Timestamp,
    /// The revision that this evaluation wrote; else that of the contest's current resource; 0 if there is none.
    pub revision: Revision,
    /// The outcome of each effect of a correction that has several; empty for all others.
    pub effects: Vec<Self>,
}

impl Outcome {
    /// The outcome of a correction with these effects: that of the least advanced one, with the newest revision, and each
    /// of them if there are several. `None` without any.
    pub fn of_effects(mut effects: Vec<Self>) -> Option<Self> {
        if effects.len() <= 1 {
            return effects.pop();
        }
        let least = effects.iter().min_by_key(|effect| effect.state.advancement());
        let mut outcome = least.cloned()?;
        let applied = effects
            .iter()
            .filter(|effect| effect.state == OutcomeState::Applied);
        outcome.message = format!(
            "{} of {} apply. {}",
            applied.count(),
            effects.len(),
            outcome.message
        );
        outcome.revision = effects
            .iter()
            .map(|effect| effect.revision)
            .max()
            .unwrap_or_default();
        outcome.was_new = effects.iter().any(|effect| effect.was_new);
        outcome.auto_applied = effects.iter().any(|effect| effect.auto_applied);
        outcome.effects = effects;
        Some(outcome)
    }

    /// The figures of a correction that `proposed` this for a key and supports `candidate`, after evaluation, and no message yet.
    /// If a revision is written, it is filled in later.
    pub(crate) fn figures(
        key: &str,
        proposed: ResourceValue,
        candidate: &Candidate,
        was_new: bool,
        auto_applied: bool,
        now: Timestamp,
    ) -> Self {
        let (state, reason, confirmations_needed) = state_of(candidate);
        Self {
            state,
            reason,
            candidate_id: Some(candidate.id),
            input: proposed.written(key).to_owned(),
            learned: proposed.learned,
            risk: candidate.risk,
            occurrences: candidate.occurrences,
            reporters: candidate.reporters,
            confirmations_needed,
            threshold: candidate.threshold,
            was_new,
            auto_applied,
            message: String::new(),
            decision_reason: None,
            evaluated_at: now,
            revision: candidate.applied_revision,
            effects: Vec::new(),
        }
    }

    /// The same figures, for a reporter whose correction supports `candidate`.
    pub(crate) fn of_support(mut self, candidate: &Candidate) -> Self {
        self.message = self.sentence();
        if self.state == OutcomeState::Rejected {
            self.decision_reason.clone_from(&candidate.decision_reason);
        }
        self
    }

    /// The same figures, for a ruling that is in force and says that nothing applies, as was so before.
    pub(crate) fn of_nothing_to_clear(mut self) -> Self {
        self.state = OutcomeState::NoEffect;
        self.reason = Some(Reason::NothingToClear);
        self.message = self.sentence();
        self
    }

    /// The same figures, for somebody who retracted a ruling that others decided on and was not entitled to.
    pub(crate) fn of_a_retraction_without_right(mut self) -> Self {
        self.state = OutcomeState::NoEffect;
        self.reason = Some(Reason::NotEntitled);
        let description = self.learned.describe(&self.input);
        self.message =
            format!("Not taken back: who asked for it is not entitled to decide this. {description}.");
        self
    }

    /// The same figures, for a reporter who retracted a correction, which `withdrew` the value or did not.
    pub(crate) fn of_a_retraction(mut self, withdrew: bool) -> Self {
        self.state = if withdrew {
            OutcomeState::Withdrawn
        } else {
            OutcomeState::NoEffect
        };
        self.reason = Some(Reason::Retracted);
        self.confirmations_needed = 0;
        self.message = self.sentence();
        self
    }

    /// The outcome of a correction that will never count, for example one whose retraction arrived before it.
    pub fn without_effect(
        state: OutcomeState,
        reason: Reason,
        candidate_id: CandidateId,
        (key, value): (&str, &ResourceValue),
        risk: RiskLevel,
        threshold: u32,
        now: Timestamp,
    ) -> Self {
        let mut outcome = Self {
            candidate_id: Some(candidate_id),
            risk,
            threshold,
            ..Self::bare(state, Some(reason), key, value, now)
        };
        outcome.message = outcome.sentence();
        outcome
    }

    /// The outcome of a rating, with what its target now shows.
    pub(crate) fn of_rating(
        state: OutcomeState,
        reason: Option<Reason>,
        (key, value): (&str, &ResourceValue),
        auto_applied: bool,
        now: Timestamp,
    ) -> Self {
        let target = value.written(key);
        let why = reason.map_or("", Reason::explanation);
        let message = match state {
            OutcomeState::Applied => format!("Learned: it is an example for “{target}” now."),
            OutcomeState::Pending => {
                format!("Noted: it would be an example for “{target}”. It waits because {why}.")
            }
            OutcomeState::Withdrawn => {
                format!("Withdrawn: it is no example for “{target}” any more: {why}.")
            }
            _ => format!("Without effect: it is no example for “{target}”; {why}."),
        };
        Self {
            auto_applied,
            message,
            ..Self::bare(state, reason, key, value, now)
        }
    }

    /// An outcome without figures and message.
    fn bare(
        state: OutcomeState,
        reason: Option<Reason>,
        key: &str,
        value: &ResourceValue,
        now: Timestamp,
    ) -> Self {
        Self {
            state,
            reason,
            candidate_id: None,
            learned: value.learned.clone(),
            input: value.written(key).to_owned(),
            risk: RiskLevel::Low,
            occurrences: 0,
            reporters: 0,
            confirmations_needed: 0,
            threshold: 0,
            was_new: false,
            auto_applied: false,
            message: String::new(),
            decision_reason: None,
            evaluated_at: now,
            revision: Revision::default(),
            effects: Vec::new(),
        }
    }

    fn sentence(&self) -> String {
        let description = self.learned.describe(&self.input);
        let why = match (self.reason, &self.learned) {
            (Some(Reason::HighRisk), Learned::DomainRule(_)) => {
                "it is a shared suffix: the names below it are not its owner's"
            }
            (reason, _) => reason.map_or("", Reason::explanation),
        };
        let state = state_sentence(self.state, self.confirmations_needed, why);
        match self.state {
            OutcomeState::Applied => format!("Learned: {description}. {state}"),
            OutcomeState::Pending if self.reason == Some(Reason::TargetNotFound) => {
                let target = self.learned.kind().rules().short_name;
                format!(
                    "Noted: {description}. It takes effect when the {target} is upserted: it is not known yet."
                )
            }
            OutcomeState::Pending | OutcomeState::AwaitingReview => {
                format!("Proposed: {description}. {state}")
            }
            OutcomeState::Withdrawn => format!("Withdrawn: {description}. {state}"),
            OutcomeState::Rejected => format!("Not learned: {description}. It was rejected before."),
            OutcomeState::NoEffect => format!("Without effect: {description}; {why}."),
            OutcomeState::Refused => format!("Not learned: {description}; {why}."),
        }
    }
}

/// The state of a correction that supports `candidate`, why, and how many confirmations are missing.
pub(crate) fn state_of(candidate: &Candidate) -> (OutcomeState, Option<Reason>, u32) {
    match candidate.status {
        Status::Applied => (OutcomeState::Applied, None, 0),
        Status::AwaitingReview => (OutcomeState::AwaitingReview, candidate.reason, 0),
        Status::Rejected => (OutcomeState::Rejected, None, 0),
        Status::Withdrawn => (OutcomeState::NoEffect, candidate.reason, 0),
        Status::Superseded if candidate.ruling.is_some() => (OutcomeState::NoEffect, candidate.reason, 0),
        // A value that once applied may have enough support and wait for the next vote.
        Status::Pending | Status::Superseded => (
            OutcomeState::Pending,
            candidate.reason,
            candidate.confirmations_needed(),
        ),
    }
}

/// A state in a sentence, without the value that it is of.
pub(crate) fn state_sentence(state: OutcomeState, confirmations_needed: u32, why: &str) -> String {
    match state {
        OutcomeState::Applied => "It applies.".to_owned(),
        OutcomeState::Pending if confirmations_needed == 0 => format!("It waits because {why}."),
        OutcomeState::Pending if confirmations_needed == 1 => "It needs 1 more confirmation.".to_owned(),
        OutcomeState::Pending => format!("It needs {confirmations_needed} more confirmations."),
        OutcomeState::AwaitingReview => format!("It awaits review because {why}."),
        OutcomeState::Rejected => "It was rejected.".to_owned(),
        OutcomeState::NoEffect => format!("Without effect: {why}."),
        OutcomeState::Refused => format!("Not learned: {why}."),
        OutcomeState::Withdrawn => format!("It applies no longer: {why}."),
    }
}
