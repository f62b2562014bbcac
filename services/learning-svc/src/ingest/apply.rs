//! Ingests events from feedback-svc: delivered at least once, applied exactly once.
//!
//! Events are applied in groups, one transaction for all contests of a group. A failed group is retried one event at a
//! time, so that only the culprit sees its error. The outcome of each event is stored with its id and returned again on
//! redelivery.

mod group;
mod ratings;
mod unanswered;

use std::collections::{HashMap, HashSet};

use emend_base::Error;
use emend_core::{EventId, FeedbackId, ResourceKey, voter::VoterKey};
use emend_store::StoreError;
use learning_store::UnitOfWork;

use self::{
    group::{Answer, Group},
    unanswered::Guessed,
};
use super::event::{EventResult, FeedbackChange, IngestEvent};
use crate::{
    decisions::answers::answered_before, erasure::erase::ErasedReporter, fail_points, failure::Failure,
    ingest::Ingest,
};

impl Ingest {
    /// Applies events in groups; returns one result per event, in order.
    pub async fn apply(&self, events: &[IngestEvent]) -> Vec<EventResult> {
        if !events.iter().any(IngestEvent::is_of_a_query) {
            return self.apply_known(events).await;
        }
        let (mut results, mut known, mut places) = (Vec::with_capacity(events.len()), Vec::new(), Vec::new());
        for event in events {
            match self.guess(event).await {
                Guessed::Event(event) => {
                    places.push(results.len());
                    known.push(*event);
                    results.push(Err(Error::internal("an event has no result")));
                }
                Guessed::Answer(answer) => results.push(*answer),
            }
        }
        for (place, result) in places.into_iter().zip(self.apply_known(&known).await) {
            results[place] = result;
        }
        results
    }

    /// Applies events of which it is known what they propose.
    async fn apply_known(&self, events: &[IngestEvent]) -> Vec<EventResult> {
        let mut results = Vec::with_capacity(events.len());
        // The erasure of a reporter takes transactions of its own.
        let together =
            |one: &IngestEvent, next: &IngestEvent| !one.erases_a_reporter() && !next.erases_a_reporter();
        for group in events
            .chunk_by(together)
            .flat_map(|group| group.chunks(self.store.group()))
        {
            if let [event] = group
                && let FeedbackChange::ReporterErased { caller, reporter } = &event.change
            {
                let erased = ErasedReporter {
                    event: event.id,
                    namespace: event.namespace.clone(),
                    reporter: reporter.clone(),
                    accept_order: event.accept_order,
                    caller: caller.clone(),
                };
                results.push(self.erasure.erase(&erased).await);
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
        let (results, wrote) = self.decisions.retry(|| self.try_group(events)).await?;
        if wrote {
            self.decisions.wake();
        }
        let is_rating = |event: &IngestEvent| match &event.change {
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
        let now = self.decisions.clock.now();
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
            let told = ids.iter().map(|id| Ok(Ok(answered_before(&seen, *id)?)));
            return Ok((told.collect::<Result<_, Failure>>()?, false));
        }
        let of_erased = of_erased_users(&mut *tx, events).await?;
        let known_ratings = ratings::known(&mut *tx, events, &seen).await?;
        let keys = events.iter().flat_map(|event| -> Vec<ResourceKey> {
            match &event.change {
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
                FeedbackChange::ReporterErased { .. } | FeedbackChange::Unanswered { .. } => Vec::new(),
            }
        });
        let leaving = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let ahead = ratings::ahead(events, &known_ratings);
        let unit = self.decisions.open_for(&mut *tx, keys, leaving, ahead).await?;
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
        let written = self.decisions.commit(tx, &mut group.unit).await?;
        fail_points::GROUP_COMMITTED.pass();
        if group.erases {
            self.erasure.clean_up();
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

/// What was said for a user alone, and before that user was erased: it is not learned.
async fn of_erased_users(
    tx: &mut dyn UnitOfWork,
    events: &[IngestEvent],
) -> Result<HashSet<FeedbackId>, StoreError> {
    let voters: Vec<VoterKey> = events.iter().filter_map(IngestEvent::own_voter).collect();
    let erased = if voters.is_empty() {
        HashMap::new()
    } else {
        tx.erasures().erased_at(&voters).await?
    };
    let is_of_erased = |event: &&IngestEvent| {
        let nameless =
            matches!(&event.change, FeedbackChange::Recorded(recorded) if recorded.erased.is_some());
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
