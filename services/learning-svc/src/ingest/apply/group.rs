//! What the events of a group say, one after the other in accept order, decided on the contests that the group opened.

use std::collections::{HashMap, HashSet};

use emend_base::Error;
use emend_core::{
    Ballot, Caller, Event, EventId, FeedbackId, Origin, Outcome, OutcomeState, Proposal, Reason, Roles, Rule,
    decide::Exclusion,
};
use emend_proto::common::v1 as pb;
use emend_wire::render;
use jiff::Timestamp;
use learning_store::{
    actor::Actor,
    contests::{BallotDetails, KnownBallot, NewBallot},
    ingest::{Mark, Seen},
    log::Trigger,
    outputs::KnownRating,
};

use crate::{
    decisions::{
        answers::{answered_before, no_effect},
        numbering::RevisionChoice,
        open::{Attribution, Decided, OpenContests},
    },
    failure::{Failure, refused},
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
};

/// The answer to one event of a group.
pub(super) enum Answer {
    /// Decided now: its index in the written outcomes.
    Now(usize),
    /// The outcome it got before.
    Before(Box<pb::Outcome>),
    /// It can never be applied.
    Refused(Error),
}

/// A group being applied.
pub(super) struct Group {
    pub(super) now: Timestamp,
    pub(super) unit: OpenContests,
    pub(super) seen: Seen,
    /// Feedbacks that were retracted, and the roles of who did with most right.
    pub(super) retracted: HashMap<FeedbackId, Roles>,
    pub(super) redacted: HashSet<FeedbackId>,
    /// What was said for a user alone before that user was erased.
    pub(super) of_erased: HashSet<FeedbackId>,
    /// Ballots of this group, and stored ones it changed.
    pub(super) ballots: HashMap<FeedbackId, Vec<KnownBallot>>,
    /// Ratings that are stored, or were recorded in this group, as they are now.
    pub(super) ratings: HashMap<FeedbackId, KnownRating>,
    pub(super) answered: HashMap<EventId, usize>,
    /// Whether something was erased.
    pub(super) erases: bool,
}

impl Group {
    pub(super) fn apply(&mut self, event: &IngestEvent) -> Result<Answer, Failure> {
        if self.seen.outcomes.contains_key(&event.id) {
            return Ok(Answer::Before(Box::new(answered_before(&self.seen, event.id)?)));
        }
        if let Some(&place) = self.answered.get(&event.id) {
            return Ok(Answer::Now(place));
        }
        let known = self.known(event.feedback);
        let mut keys = known.iter().map(|known| &known.key);
        let rating = self.ratings.get(&event.feedback);
        if keys.any(|key| key.namespace != event.namespace)
            || rating.is_some_and(|rating| rating.key.namespace != event.namespace)
        {
            return Ok(Answer::Refused(Error::invalid(
                "namespace",
                "is not the namespace of this feedback",
            )));
        }
        let outcome = match &event.change {
            FeedbackChange::Recorded(recorded) if known.is_empty() && rating.is_none() => {
                self.record(event, recorded)?
            }
            FeedbackChange::Recorded(_) => {
                return Ok(Answer::Refused(Error::AlreadyExists {
                    reason: "FEEDBACK_RECORDED",
                    message: "another event recorded this feedback before".into(),
                }));
            }
            FeedbackChange::Retracted { caller, at, sender } => {
                self.retract(event, known, caller, *at, sender)?
            }
            FeedbackChange::Redacted { caller, at } => self.redact(event, known.first(), caller, *at)?,
            FeedbackChange::Mined { effects, reason } => self.mine(event, effects, reason)?,
            FeedbackChange::Unanswered { .. } => {
                return Ok(Answer::Refused(Error::internal(
                    "what a query is near to is not guessed in a group",
                )));
            }
            FeedbackChange::ReporterErased { .. } => {
                return Ok(Answer::Refused(Error::internal(
                    "an erasure is not applied in a group",
                )));
            }
        };
        let place = self.unit.answer(event.id, event.feedback, outcome);
        self.answered.insert(event.id, place);
        Ok(Answer::Now(place))
    }

    /// The current ballots of a feedback.
    fn known(&self, feedback: FeedbackId) -> Vec<KnownBallot> {
        self.ballots
            .get(&feedback)
            .or_else(|| self.seen.ballots.get(&feedback))
            .cloned()
            .unwrap_or_default()
    }

    fn record(&mut self, event: &IngestEvent, recorded: &Recorded) -> Result<pb::Outcome, Failure> {
        let choice = self.revision_for(recorded.effects.len());
        let mut outcomes = Vec::with_capacity(recorded.effects.len());
        for effect in &recorded.effects {
            outcomes.push(self.record_effect(event, recorded, effect, choice)?);
        }
        // Personal parts are stored unless their erasure was requested before they arrived, or nothing else is.
        if self.ballots.contains_key(&event.feedback) && !self.redacted.contains(&event.feedback) {
            self.unit.votes.details.push(BallotDetails {
                feedback: event.feedback,
                reporter: recorded.reporter.clone(),
                query_id: recorded.query_id.clone(),
                reason: recorded.reason.clone(),
                context: recorded.context.clone(),
            });
        }
        of_effects(outcomes, event)
    }

    /// Proposes what was mined. What finds no room is left out: it counts for nothing.
    fn mine(
        &mut self,
        event: &IngestEvent,
        effects: &[Proposal],
        reason: &str,
    ) -> Result<pb::Outcome, Failure> {
        for effect in effects {
            let contest = effect.key.contest_id();
            let candidate = effect.value.candidate_id(contest);
            if self.unit.check_size(&effect.key, &effect.value).is_err()
                || !self.unit.check_candidates(contest, candidate)
            {
                continue;
            }
            let mined = Event::Mined {
                value: effect.value.clone(),
            };
            let attribution = Attribution::by(Actor::caller(Caller::system()), reason.to_owned());
            self.unit
                .decide(contest, &mined, &attribution, RevisionChoice::Own)
                .map_err(|refusal| refused(&refusal, &event.id.to_string()))?;
        }
        Ok(self.nothing_more(None, "", "It is proposed and waits for a person."))
    }

    /// All that one event changes becomes visible together.
    pub(super) fn revision_for(&mut self, effects: usize) -> RevisionChoice {
        if effects > 1 {
            self.unit.end_shared_revision();
            RevisionChoice::Shared
        } else {
            RevisionChoice::Own
        }
    }

    fn record_effect(
        &mut self,
        event: &IngestEvent,
        recorded: &Recorded,
        effect: &Proposal,
        choice: RevisionChoice,
    ) -> Result<Outcome, Failure> {
        let Some(candidate) = effect.candidate_of(event.feedback) else {
            return self.record_rating(event, recorded, effect, choice);
        };
        let contest = effect.key.contest_id();
        let policy = self.unit.policy(&effect.key);
        let is_by_votes = matches!(effect.key.kind.rules().rule, Rule::Votes { .. });
        let without_effect = |state, reason| {
            let risk = policy.risk_for(effect.key.user.is_some());
            let threshold = if is_by_votes {
                policy.threshold_for(risk)
            } else {
                0
            };
            let mapping = (effect.key.key.as_str(), &effect.value);
            Outcome::without_effect(state, reason, candidate, mapping, risk, threshold, self.now)
        };
        if self.of_erased.contains(&event.feedback) {
            return Ok(without_effect(OutcomeState::Refused, Reason::Erased));
        }
        // What an entitled sender decides is never refused for what others asked.
        let may_wait = is_by_votes || !recorded.sender.permit(policy.ruling.entitled);
        if self.unit.check_size(&effect.key, &effect.value).is_err()
            || (may_wait && !self.unit.check_candidates(contest, candidate))
        {
            return Ok(without_effect(OutcomeState::Refused, Reason::ResourceLimit));
        }
        let voter = recorded.voter(&event.namespace);
        let ballot = Ballot {
            feedback_id: event.feedback,
            accept_order: event.accept_order,
            voter: voter.key,
            identified: voter.identified,
            caller: recorded.caller.clone(),
            candidate,
            received_at: recorded.received_at,
        };
        let retracted_by = self.retracted.get(&event.feedback).cloned();
        let retracted = retracted_by.is_some();
        // A vote that was taken back is none; whether a ruling is taken back depends on by whom.
        let outcome = if retracted && is_by_votes {
            self.unit.note_accept_order(contest, event.accept_order);
            without_effect(OutcomeState::NoEffect, Reason::Retracted)
        } else {
            let happened = Event::Recorded {
                ballot: ballot.clone(),
                value: effect.value.clone(),
                origin: Origin::Votes,
                personal_data: effect.personal_data,
                sender: recorded.sender.clone(),
                retracted_by,
            };
            let attribution = Attribution {
                task: effect.task.clone(),
                ..attribution(event, &recorded.caller, recorded.received_at)
            };
            let made = self.unit.decide(contest, &happened, &attribution, choice);
            outcome_of(made, event)?
        };
        self.keep(event, effect, ballot, retracted);
        Ok(outcome)
    }

    /// Stores the ballot of an effect.
    fn keep(&mut self, event: &IngestEvent, effect: &Proposal, ballot: Ballot, retracted: bool) {
        self.unit.votes.ballots.push(NewBallot {
            contest: effect.key.contest_id(),
            ballot: ballot.clone(),
            retracted,
            system_choice: effect.system_choice.clone().unwrap_or_default(),
            traceparent: event.traceparent.clone(),
        });
        self.ballots.entry(event.feedback).or_default().push(KnownBallot {
            key: effect.key.clone(),
            ballot,
            retracted,
        });
    }

    fn retract(
        &mut self,
        event: &IngestEvent,
        mut known: Vec<KnownBallot>,
        caller: &Caller,
        at: Timestamp,
        sender: &Roles,
    ) -> Result<pb::Outcome, Failure> {
        let before = self.retracted.get(&event.feedback);
        let has_more_right = before.is_none_or(|before| sender.strongest() > before.strongest());
        if has_more_right {
            self.retracted.insert(event.feedback, sender.clone());
            let mark = mark(event, caller, at);
            let marks = &mut self.unit.marks.retractions;
            marks.retain(|weaker| weaker.feedback != event.feedback);
            marks.push(Mark {
                sender: sender.clone(),
                ..mark
            });
        }
        if self.ratings.contains_key(&event.feedback) {
            return self.exclude_rating(event, caller, at, Exclusion::Retraction);
        }
        let decides = |known: &KnownBallot| {
            let is_by_ruling = matches!(known.key.kind.rules().rule, Rule::Ruling(_));
            !known.retracted || has_more_right && is_by_ruling
        };
        if !known.iter().any(decides) {
            return Ok(self.nothing_more(
                known.first(),
                Reason::Retracted.name(),
                "Taken back: it does not count.",
            ));
        }
        let choice = self.revision_for(known.len());
        let attribution = attribution(event, caller, at);
        let mut outcomes = Vec::with_capacity(known.len());
        for known in &mut known {
            let happened = Event::Retracted {
                ballot: known.ballot.clone(),
                sender: sender.clone(),
            };
            let made = self
                .unit
                .decide(known.key.contest_id(), &happened, &attribution, choice);
            outcomes.push(outcome_of(made, event)?);
            known.retracted = true;
        }
        self.unit.votes.retracted.push(event.feedback);
        self.ballots.insert(event.feedback, known);
        of_effects(outcomes, event)
    }

    fn redact(
        &mut self,
        event: &IngestEvent,
        known: Option<&KnownBallot>,
        caller: &Caller,
        at: Timestamp,
    ) -> Result<pb::Outcome, Failure> {
        self.erases = true;
        if self.redacted.insert(event.feedback) {
            self.unit.marks.redactions.push(mark(event, caller, at));
        }
        if self.ratings.contains_key(&event.feedback) {
            return self.exclude_rating(event, caller, at, Exclusion::Redaction);
        }
        self.unit.votes.erased.push(event.feedback);
        Ok(self.nothing_more(
            known,
            "",
            "Its reporter, free text and context are erased; what it counted for stays.",
        ))
    }

    fn nothing_more(&self, known: Option<&KnownBallot>, reason: &str, message: &str) -> pb::Outcome {
        no_effect(known, reason, message, self.now)
    }
}

pub(super) fn attribution(event: &IngestEvent, caller: &Caller, received_at: Timestamp) -> Attribution {
    Attribution {
        actor: Actor::caller(caller.clone()),
        reason: String::new(),
        operation: None,
        trigger: Some(Trigger {
            feedback: event.feedback,
            received_at,
            traceparent: event.applied_under.as_ref().unwrap_or(&event.traceparent).clone(),
        }),
        task: None,
    }
}

fn mark(event: &IngestEvent, caller: &Caller, at: Timestamp) -> Mark {
    Mark {
        feedback: event.feedback,
        event: event.id,
        caller: caller.clone(),
        sender: Roles::default(),
        at,
    }
}

/// The rules never refuse a vote or a retraction; if they did, the sender would have to know.
pub(super) fn outcome_of(
    made: Result<Decided, emend_core::Refusal>,
    event: &IngestEvent,
) -> Result<Outcome, Failure> {
    let made = made.map_err(|refusal| refused(&refusal, &event.feedback.to_string()))?;
    made.outcome
        .ok_or_else(|| Error::internal(format!("feedback {} has no outcome", event.feedback)).into())
}

/// The outcome of an event from those of its effects.
pub(super) fn of_effects(outcomes: Vec<Outcome>, event: &IngestEvent) -> Result<pb::Outcome, Failure> {
    let outcome = Outcome::of_effects(outcomes)
        .ok_or_else(|| Error::internal(format!("feedback {} has no effect", event.feedback)))?;
    Ok(render::outcome(&outcome))
}
