//! Ingests events from feedback-svc: delivered at least once, applied exactly once.
//!
//! Events are applied in groups, one transaction for all contests of a group. A failed group is retried one event at a
//! time, so that only the culprit sees its error. The outcome of each event is stored with its id and returned again on
//! redelivery.

mod ratings;

use std::collections::{BTreeMap, HashMap, HashSet};

use emend_base::Error;
use emend_core::{
    AcceptOrder, Ballot, Caller, Event, EventId, FeedbackId, Namespace, Origin, Outcome, OutcomeState,
    Proposal, Reason, Reporter, ReporterId, ResourceKey, Roles, Rule, contest::VoterKey, decide::Exclusion,
};
use emend_proto::common::v1 as pb;
use emend_store::{CorruptRow, StoreError, retry_conflicts};
use emend_wire::render;
use jiff::Timestamp;
use prost::Message as _;

use crate::{
    actor::Actor,
    app::App,
    contests::{
        open::{Attribution, Decided, OpenContests},
        store::{BallotDetails, KnownBallot, NewBallot},
    },
    erasure::erase::ErasedReporter,
    fail_points,
    failure::{Failure, refused},
    ingest::store::{Mark, Seen},
    log::numbering::RevisionChoice,
    log::store::Trigger,
    outputs::store::KnownRating,
    store::UnitOfWork,
};

/// A valid event.
#[derive(Debug, Clone)]
pub struct IngestEvent {
    /// The unique event id.
    pub id: EventId,
    /// The feedback it is about; [none](FeedbackId::none) for the erasure of a reporter and for what was mined.
    pub feedback: FeedbackId,
    /// The feedback's search application.
    pub namespace: Namespace,
    /// The feedback's accept order.
    pub accept_order: AcceptOrder,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
    /// W3C trace context under which it is applied, if different.
    pub applied_under: Option<String>,
    /// What happened.
    pub what: FeedbackChange,
}

/// What happened to a feedback.
#[derive(Debug, Clone)]
pub enum FeedbackChange {
    /// It was stored.
    Recorded(Box<Recorded>),
    /// It was retracted.
    Retracted {
        /// The client that retracted it.
        caller: Caller,
        /// When.
        at: Timestamp,
        /// The client's roles at that time.
        sender: Roles,
    },
    /// Its personal parts are to be erased.
    Redacted {
        /// The client that asked for it.
        caller: Caller,
        /// When.
        at: Timestamp,
    },
    /// Not of one feedback: proposals that follow from what users did.
    Mined {
        /// What it proposes, each in a contest that votes decide.
        effects: Vec<Proposal>,
        /// What it follows from, for people.
        reason: String,
    },
    /// Not of one feedback: everything learned for one reporter alone is to be erased.
    ReporterErased {
        /// The client that asked for it.
        caller: Caller,
        /// The reporter.
        reporter: ReporterId,
    },
}

/// A stored feedback.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The reporter.
    pub reporter: Reporter,
    /// The client that sent it.
    pub caller: Caller,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// The reason given; may be empty.
    pub reason: String,
    /// Context for the reviewer.
    pub context: BTreeMap<String, String>,
    /// What it proposes, each in a contest of its own; at least one.
    pub effects: Vec<Proposal>,
    /// The client's roles when it sent it.
    pub sender: Roles,
    /// Under which pseudonym its vote counts, if its personal parts were erased before it came.
    pub erased: Option<ErasedVoter>,
    /// When it was received.
    pub received_at: Timestamp,
}

/// A voter whose name is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasedVoter {
    /// Its pseudonym.
    pub key: VoterKey,
    /// Whether it counts by itself.
    pub identified: bool,
    /// Whether the correction was for this voter alone.
    pub own: bool,
}

/// The outcome of an event.
pub type EventResult = Result<pb::Outcome, Error>;

impl App {
    /// Applies events in groups; returns one result per event, in order.
    pub async fn ingest(&self, events: &[IngestEvent]) -> Vec<EventResult> {
        let mut results = Vec::with_capacity(events.len());
        // The erasure of a reporter takes transactions of its own.
        let together =
            |one: &IngestEvent, next: &IngestEvent| !one.erases_a_reporter() && !next.erases_a_reporter();
        for group in events
            .chunk_by(together)
            .flat_map(|group| group.chunks(self.store.group()))
        {
            if let [event] = group
                && let FeedbackChange::ReporterErased { caller, reporter } = &event.what
            {
                let erased = ErasedReporter {
                    event: event.id,
                    namespace: event.namespace.clone(),
                    reporter: reporter.clone(),
                    accept_order: event.accept_order,
                    caller: caller.clone(),
                };
                results.push(self.erase_reporter(&erased).await);
                continue;
            }
            match self.group(group).await {
                Ok(group) => results.extend(group),
                // The database is unavailable for all of them.
                Err(Failure::Store(StoreError::Unavailable(error))) => {
                    results.push(Err(StoreError::Unavailable(error).into()));
                    results.extend(group[1..].iter().map(|_| {
                        Err(Error::unavailable(
                            "DATABASE_UNAVAILABLE",
                            "the database is unavailable",
                        ))
                    }));
                }
                Err(failure) if group.len() == 1 => results.push(Err(failure.into())),
                Err(failure) => {
                    tracing::warn!(error = %failure, events = group.len(), "a group failed; trying one by one");
                    for event in group {
                        results.push(match self.group(std::slice::from_ref(event)).await {
                            Ok(mut alone) => alone.pop().unwrap_or_else(|| {
                                Err(Error::internal("a group of one event has no result"))
                            }),
                            Err(failure) => Err(failure.into()),
                        });
                    }
                }
            }
        }
        results
    }

    /// Applies a group in one transaction.
    async fn group(&self, events: &[IngestEvent]) -> Result<Vec<EventResult>, Failure> {
        let (results, wrote) =
            retry_conflicts::<_, Failure, _>(&self.entropy, || self.try_group(events)).await?;
        if wrote {
            self.follower.wake();
        }
        let is_rating = |event: &IngestEvent| match &event.what {
            FeedbackChange::Recorded(recorded) => {
                recorded.effects.iter().any(|effect| effect.rating.is_some())
            }
            _ => false,
        };
        if events.iter().any(is_rating) {
            self.rated.notify_one();
        }
        Ok(results)
    }

    async fn try_group(&self, events: &[IngestEvent]) -> Result<(Vec<EventResult>, bool), Failure> {
        let now = self.clock.now();
        let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        let feedback: Vec<FeedbackId> = events.iter().map(|event| event.feedback).collect();
        let mut tx = self.store.begin().await?;
        // What is said for a user alone also waits for an erasure of that user that is under way.
        let locked = feedback.iter().copied();
        let users = events
            .iter()
            .filter_map(IngestEvent::own_voter)
            .map(|voter| FeedbackId(voter.0));
        tx.inbox()
            .lock_feedback(&locked.chain(users).collect::<Vec<_>>())
            .await?;
        let seen = tx.inbox().seen(&ids, &feedback).await?;
        if ids.iter().all(|id| seen.outcomes.contains_key(id)) {
            let told = ids.iter().map(|id| Ok(Ok(told_before(&seen, *id)?)));
            return Ok((told.collect::<Result<_, Failure>>()?, false));
        }
        let of_erased = of_erased_users(&mut *tx, events).await?;
        let known_ratings = ratings::known(&mut *tx, events, &seen).await?;
        let keys = events.iter().flat_map(|event| -> Vec<ResourceKey> {
            match &event.what {
                FeedbackChange::Recorded(_) if of_erased.contains(&event.feedback) => Vec::new(),
                FeedbackChange::Recorded(recorded) => {
                    recorded.effects.iter().map(|effect| effect.key.clone()).collect()
                }
                FeedbackChange::Retracted { .. } => {
                    let known = seen.ballots.get(&event.feedback).into_iter().flatten();
                    let rating = known_ratings.get(&event.feedback).map(|known| known.key.clone());
                    known.map(|known| known.key.clone()).chain(rating).collect()
                }
                FeedbackChange::Redacted { .. } => {
                    let rating = known_ratings.get(&event.feedback);
                    rating.map(|known| known.key.clone()).into_iter().collect()
                }
                FeedbackChange::Mined { effects, .. } => {
                    effects.iter().map(|effect| effect.key.clone()).collect()
                }
                FeedbackChange::ReporterErased { .. } => Vec::new(),
            }
        });
        let leaving = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let mut unit = OpenContests::open(&mut *tx, &self.hot, now, keys, leaving).await?;
        ratings::read(&mut *tx, &mut unit, events, &known_ratings).await?;
        fail_points::GROUP_LOCKED.pass();
        let mut group = Group {
            now,
            unit,
            retracted: seen.retracted.clone(),
            redacted: seen.redacted.iter().copied().collect(),
            of_erased,
            ballots: HashMap::new(),
            ratings: known_ratings,
            seen,
            answered: HashMap::new(),
            erases: false,
        };
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|&index| events[index].accept_order);
        let mut answers: Vec<Option<Answer>> = events.iter().map(|_| None).collect();
        for index in order {
            answers[index] = Some(group.apply(&events[index])?);
        }
        fail_points::GROUP_DECIDED.pass();
        let written = self.commit(tx, &mut group.unit).await?;
        fail_points::GROUP_COMMITTED.pass();
        if group.erases {
            self.erased.notify_one();
        }
        let results = answers.into_iter().flatten().map(|answer| match answer {
            Answer::Now(place) => written
                .outcomes
                .get(place)
                .cloned()
                .ok_or_else(|| Error::internal("an answered event has no outcome")),
            Answer::Before(outcome) => Ok(*outcome),
            Answer::Refused(error) => Err(error),
        });
        Ok((results.collect(), written.revisions.last().0 > 0))
    }
}

/// The answer to one event of a group.
enum Answer {
    /// Decided now: its index in the written outcomes.
    Now(usize),
    /// The outcome it got before.
    Before(Box<pb::Outcome>),
    /// It can never be applied.
    Refused(Error),
}

/// A group being applied.
struct Group {
    now: Timestamp,
    unit: OpenContests,
    seen: Seen,
    /// Feedbacks that were retracted, and the roles of who did with most right.
    retracted: HashMap<FeedbackId, Roles>,
    redacted: HashSet<FeedbackId>,
    /// What was said for a user alone before that user was erased.
    of_erased: HashSet<FeedbackId>,
    /// Ballots of this group, and stored ones it changed.
    ballots: HashMap<FeedbackId, Vec<KnownBallot>>,
    /// Ratings that are stored, or were recorded in this group, as they are now.
    ratings: HashMap<FeedbackId, KnownRating>,
    answered: HashMap<EventId, usize>,
    /// Whether something was erased.
    erases: bool,
}

impl Group {
    fn apply(&mut self, event: &IngestEvent) -> Result<Answer, Failure> {
        if self.seen.outcomes.contains_key(&event.id) {
            return Ok(Answer::Before(Box::new(told_before(&self.seen, event.id)?)));
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
        let outcome = match &event.what {
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
            let attribution = Attribution {
                actor: Actor::caller(Caller::system()),
                reason: reason.to_owned(),
                operation: None,
                trigger: None,
                task: None,
            };
            self.unit
                .decide(contest, &mined, &attribution, RevisionChoice::Own)
                .map_err(|refusal| refused(&refusal, &event.id.to_string()))?;
        }
        Ok(self.nothing_more(None, "", "It is proposed and waits for a person."))
    }

    /// All that one event changes becomes visible together.
    fn revision_for(&mut self, effects: usize) -> RevisionChoice {
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
            Outcome::without_effect(state, reason, candidate, &effect.value, risk, threshold, self.now)
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

/// The outcome of an event that changed nothing that counts.
pub(crate) fn no_effect(
    known: Option<&KnownBallot>,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> pb::Outcome {
    pb::Outcome {
        state: pb::OutcomeState::NoEffect as i32,
        reason: reason.to_owned(),
        candidate_id: known
            .map(|known| known.ballot.candidate.to_string())
            .unwrap_or_default(),
        kind: known.map_or(0, |known| known.key.kind.number()),
        message: message.to_owned(),
        evaluated_at: Some(render::timestamp(now)),
        ..pb::Outcome::default()
    }
}

impl IngestEvent {
    fn erases_a_reporter(&self) -> bool {
        matches!(self.what, FeedbackChange::ReporterErased { .. })
    }

    /// The voter, if it proposes something for that voter alone.
    fn own_voter(&self) -> Option<VoterKey> {
        match &self.what {
            FeedbackChange::Recorded(recorded) if recorded.is_own() => {
                Some(recorded.voter(&self.namespace).key)
            }
            _ => None,
        }
    }
}

impl Recorded {
    fn is_own(&self) -> bool {
        self.is_for_a_user() || self.erased.is_some_and(|voter| voter.own)
    }

    fn is_for_a_user(&self) -> bool {
        self.effects.iter().any(|effect| effect.key.user.is_some())
    }

    /// The voter, by its pseudonym.
    fn voter(&self, namespace: &Namespace) -> ErasedVoter {
        self.erased.unwrap_or_else(|| {
            let voter = self.reporter.voter(&self.caller);
            ErasedVoter {
                key: voter.key(namespace),
                identified: voter.is_identified(),
                own: self.is_for_a_user(),
            }
        })
    }
}

/// What was said for a user alone, and before that user was erased: it is not learned.
async fn of_erased_users(
    tx: &mut dyn UnitOfWork,
    events: &[IngestEvent],
) -> Result<HashSet<FeedbackId>, StoreError> {
    let voters: Vec<VoterKey> = events.iter().filter_map(IngestEvent::own_voter).collect();
    let erased = match tx.erasures() {
        Some(erasures) if !voters.is_empty() => erasures.erased_at(&voters).await?,
        _ => HashMap::new(),
    };
    let is_of_erased = |event: &&IngestEvent| {
        let nameless = matches!(&event.what, FeedbackChange::Recorded(recorded) if recorded.erased.is_some());
        event.own_voter().is_some_and(|voter| {
            nameless
                || erased
                    .get(&voter)
                    .is_some_and(|order| *order > event.accept_order)
        })
    };
    Ok(events
        .iter()
        .filter(is_of_erased)
        .map(|event| event.feedback)
        .collect())
}

fn attribution(event: &IngestEvent, caller: &Caller, received_at: Timestamp) -> Attribution {
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
fn outcome_of(made: Result<Decided, emend_core::Refusal>, event: &IngestEvent) -> Result<Outcome, Failure> {
    let made = made.map_err(|refusal| refused(&refusal, &event.feedback.to_string()))?;
    made.outcome
        .ok_or_else(|| Error::internal(format!("feedback {} has no outcome", event.feedback)).into())
}

/// The outcome of an event from those of its effects.
fn of_effects(outcomes: Vec<Outcome>, event: &IngestEvent) -> Result<pb::Outcome, Failure> {
    let outcome = Outcome::of_effects(outcomes)
        .ok_or_else(|| Error::internal(format!("feedback {} has no effect", event.feedback)))?;
    Ok(render::outcome(&outcome))
}

pub(crate) fn told_before(seen: &Seen, event: EventId) -> Result<pb::Outcome, Failure> {
    let bytes = seen.outcomes.get(&event).map(AsRef::as_ref).unwrap_or_default();
    let outcome = pb::Outcome::decode(bytes);
    outcome.map_err(|error| CorruptRow::new("inbox", "outcome", event, error).into())
}
