//! What the store in memory holds, and its steps: what the SQL of the databases does, in plain code.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use emend_core::{AcceptOrder, Caller, EventId, FeedbackId, Namespace, RequestId};
use emend_runtime::{
    simulation::unique_violation,
    store::{CorruptRow, StoreError},
};
use jiff::Timestamp;

use super::{
    super::{Claimed, Inserted, Retracted, Settlement},
    Defect,
};
use crate::domain::{
    Accepted, DeadLetter, DeadLetterQuery, DeliveryState, Feedback, FeedbackQuery, Lease, LeaseToken,
    NewEvent, NewFeedback, NewRetraction, Redrive, Refusal, RequestHash, Retraction,
};

/// A duration as databases count it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// All there is.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(super) clock_offset_us: i64,
    /// The store's time, in microseconds since 1970, during one step.
    pub(super) now_us: i64,
    /// The last accept order given.
    last_order: i64,
    /// By accept order.
    feedback: BTreeMap<i64, Row>,
    orders: BTreeMap<FeedbackId, i64>,
    request_ids: BTreeMap<(Namespace, Caller, RequestId), UsedId>,
    outbox: BTreeMap<EventId, Entry>,
    /// Nothing can be said of the request ids that are in use.
    pub(crate) request_ids_corrupt: bool,
    pub(crate) defect: Option<Defect>,
    /// What was done that never may be.
    pub(crate) violations: Vec<String>,
}

#[derive(Debug)]
struct Row {
    feedback: Feedback,
    /// How many events there were so far; the newest has this number.
    events: u32,
    /// The number of the event whose outcome it has.
    outcome_of: u32,
}

#[derive(Debug)]
struct UsedId {
    order: i64,
    hash: RequestHash,
    feedback: FeedbackId,
    created_at_us: i64,
}

/// An event on its way.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    accepted: Accepted,
    feedback: FeedbackId,
    namespace: Namespace,
    /// 1 for the first event of a feedback, and so on.
    number: u32,
    payload: Bytes,
    attempts: u32,
    due_at_us: i64,
    token: Option<LeaseToken>,
    refusal: Option<Refusal>,
    /// When it became a dead letter.
    dead_at_us: Option<i64>,
}

impl Tables {
    fn now(&self) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.now_us)
            .map_err(|error| CorruptRow::new("clock", "now_us", self.now_us, error).into())
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(super) fn insert(
        &mut self,
        group: &[NewFeedback],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        let mut new = BTreeSet::new();
        for item in group {
            if self.orders.contains_key(&item.id) || !new.insert(item.id) {
                return Err(unique_violation("feedback"));
            }
        }
        let at = self.now()?;
        // The first is at least now, and never behind what was given, also with a clock that goes back.
        self.last_order = self.last_order.max(self.now_us - 1);
        let mut results = Vec::with_capacity(group.len());
        for item in group {
            self.last_order += 1;
            let accepted = Accepted {
                order: AcceptOrder(self.last_order),
                at,
            };
            results.push(match self.take_request_id(item, accepted) {
                Some(answer) => answer,
                None if group.len() > 1 && self.has(Defect::AcknowledgesUnstored) => {
                    Ok(Inserted::Stored(accepted))
                }
                None => {
                    self.store(item, accepted, lease);
                    Ok(Inserted::Stored(accepted))
                }
            });
        }
        Ok(results)
    }

    /// An answer if the request was stored before, or its id can't be had.
    fn take_request_id(
        &mut self,
        item: &NewFeedback,
        accepted: Accepted,
    ) -> Option<Result<Inserted, StoreError>> {
        let request_id = item.submission.request_id.clone()?;
        let key = (item.submission.namespace.clone(), item.caller.clone(), request_id);
        match self.request_ids.get(&key) {
            Some(_) if self.has(Defect::ForgetsRequestIds) => None,
            Some(used) if self.request_ids_corrupt => {
                let row = CorruptRow::new("request_ids", "feedback_id", used.order, "is no id");
                Some(Err(row.into()))
            }
            Some(used) if used.hash == item.hash => Some(Ok(Inserted::Replayed(used.feedback))),
            Some(_) => Some(Ok(Inserted::RequestIdReused)),
            None => {
                let used = UsedId {
                    order: accepted.order.0,
                    hash: item.hash,
                    feedback: item.id,
                    created_at_us: self.now_us,
                };
                self.request_ids.insert(key, used);
                None
            }
        }
    }

    fn store(&mut self, item: &NewFeedback, accepted: Accepted, lease: Option<Lease>) {
        let feedback = Feedback {
            id: item.id,
            submission: item.submission.clone(),
            caller: item.caller.clone(),
            accepted,
            retraction: None,
            outcome: None,
            delivery: DeliveryState::Pending,
        };
        self.orders.insert(item.id, accepted.order.0);
        let row = Row {
            feedback,
            events: 1,
            outcome_of: 0,
        };
        self.feedback.insert(accepted.order.0, row);
        self.send(
            &item.event,
            item.id,
            &item.submission.namespace,
            1,
            accepted,
            lease,
        );
    }

    fn send(
        &mut self,
        event: &NewEvent,
        feedback: FeedbackId,
        namespace: &Namespace,
        number: u32,
        accepted: Accepted,
        lease: Option<Lease>,
    ) {
        let entry = Entry {
            accepted,
            feedback,
            namespace: namespace.clone(),
            number,
            payload: event.payload.clone(),
            attempts: 0,
            due_at_us: self
                .now_us
                .saturating_add(lease.map_or(0, |lease| micros(lease.duration))),
            token: lease.map(|lease| lease.token),
            refusal: None,
            dead_at_us: None,
        };
        self.outbox.insert(event.id, entry);
    }

    pub(super) fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Option<Feedback> {
        let row = self.feedback.get(self.orders.get(&id)?)?;
        (row.feedback.submission.namespace == *namespace).then(|| row.feedback.clone())
    }

    /// All feedback, oldest first.
    pub(crate) fn all_feedback(&self) -> impl Iterator<Item = &Feedback> {
        self.feedback.values().map(|row| &row.feedback)
    }

    /// The events that were not delivered: which, and whether they are dead letters.
    pub(crate) fn undelivered(&self) -> Vec<(EventId, bool)> {
        let entries = self.outbox.iter();
        entries
            .map(|(id, entry)| (*id, entry.dead_at_us.is_some()))
            .collect()
    }

    pub(super) fn list(&self, query: &FeedbackQuery) -> Vec<Feedback> {
        let all = self.feedback.values().rev().map(|row| &row.feedback);
        let found = all.filter(|feedback| {
            let Feedback {
                submission, accepted, ..
            } = feedback;
            submission.namespace == query.namespace
                && query
                    .reporter
                    .as_ref()
                    .is_none_or(|asked| submission.reporter.id.as_ref() == Some(asked))
                && query
                    .kind
                    .is_none_or(|asked| submission.correction.form.kind() == asked)
                && query.delivery.is_none_or(|asked| feedback.delivery == asked)
                && query.from.is_none_or(|from| accepted.at >= from)
                && query.before.is_none_or(|before| accepted.at < before)
                && query.after.is_none_or(|after| accepted.order < after)
        });
        found.take(query.limit as usize).cloned().collect()
    }

    pub(super) fn retract(
        &mut self,
        retraction: &NewRetraction,
        lease: Option<Lease>,
    ) -> Result<Retracted, StoreError> {
        let at = self.now()?;
        let row = self
            .orders
            .get(&retraction.id)
            .and_then(|order| self.feedback.get_mut(order))
            .filter(|row| row.feedback.submission.namespace == retraction.namespace);
        let Some(row) = row else {
            return Ok(Retracted::NotFound);
        };
        if row.feedback.retraction.is_some() {
            return Ok(Retracted::Before);
        }
        row.feedback.retraction = Some(Retraction {
            at,
            reason: retraction.reason.clone(),
        });
        row.feedback.delivery = DeliveryState::Pending;
        row.events += 1;
        let number = row.events;
        let accepted = Accepted {
            order: row.feedback.accepted.order,
            at,
        };
        let NewRetraction {
            id, namespace, event, ..
        } = retraction;
        self.send(event, *id, namespace, number, accepted, lease);
        Ok(Retracted::Now(accepted))
    }

    pub(super) fn claim(&mut self, limit: u32, lease: Lease) -> Vec<Claimed> {
        let ignores_leases = self.has(Defect::IgnoresLeases);
        let now_us = self.now_us;
        let mut due: Vec<_> = self
            .outbox
            .iter_mut()
            .filter(|(_, entry)| {
                let leased = entry.due_at_us > now_us && !(ignores_leases && entry.token.is_some());
                entry.dead_at_us.is_none() && !leased
            })
            .collect();
        due.sort_by_key(|(_, entry)| (entry.accepted.order, entry.number));
        due.truncate(limit as usize);
        let mut claimed = Vec::with_capacity(due.len());
        for (event_id, entry) in due {
            if entry.token.is_some() && entry.due_at_us > now_us {
                let stolen = format!("event {event_id} was claimed while it was leased to somebody else");
                self.violations.push(stolen);
            }
            entry.token = Some(lease.token);
            entry.due_at_us = now_us.saturating_add(micros(lease.duration));
            claimed.push(Claimed {
                event_id: *event_id,
                accepted: entry.accepted,
                attempts: entry.attempts,
                payload: entry.payload.clone(),
            });
        }
        claimed
    }

    pub(super) fn settle(&mut self, settlements: &[Settlement]) {
        for settlement in settlements {
            let (event_id, token) = match settlement {
                Settlement::Delivered { event_id, outcome } => {
                    self.delivered(*event_id, |row| row.feedback.outcome = Some(outcome.clone()));
                    continue;
                }
                Settlement::Failed { event_id, token, .. }
                | Settlement::Released { event_id, token }
                | Settlement::Dead { event_id, token, .. } => (*event_id, *token),
            };
            let before = self.outbox.get(&event_id).cloned();
            self.not_delivered(event_id, token, settlement);
            let held = before.as_ref().and_then(|entry| entry.token);
            if held != Some(token) && self.outbox.get(&event_id) != before.as_ref() {
                let stale = format!("event {event_id} was changed by one whose lease it was no more");
                self.violations.push(stale);
            }
        }
    }

    fn delivered(&mut self, event_id: EventId, note: impl FnOnce(&mut Row)) {
        let Some(entry) = self.outbox.remove(&event_id) else {
            return;
        };
        if let Some(row) = self.feedback.get_mut(&entry.accepted.order.0) {
            if entry.number >= row.outcome_of {
                note(row);
                row.outcome_of = entry.number;
            }
            if entry.number == row.events {
                row.feedback.delivery = DeliveryState::Delivered;
            }
        }
    }

    fn not_delivered(&mut self, event_id: EventId, token: LeaseToken, settlement: &Settlement) {
        let now_us = self.now_us;
        let (ignores_tokens, never_retries) =
            (self.has(Defect::IgnoresTokens), self.has(Defect::NeverRetries));
        let Some(entry) = self
            .outbox
            .get_mut(&event_id)
            .filter(|entry| entry.dead_at_us.is_none() && (entry.token == Some(token) || ignores_tokens))
        else {
            return;
        };
        entry.token = None;
        match settlement {
            Settlement::Delivered { .. } => {}
            Settlement::Failed {
                retry_in, refusal, ..
            } => {
                entry.attempts += 1;
                entry.refusal = Some(refusal.clone());
                entry.due_at_us = now_us.saturating_add(if never_retries {
                    i64::MAX
                } else {
                    micros(*retry_in)
                });
            }
            Settlement::Released { .. } => entry.due_at_us = now_us,
            Settlement::Dead { refusal, .. } => {
                entry.attempts += 1;
                entry.refusal = Some(refusal.clone());
                entry.dead_at_us = Some(now_us);
                let (order, number) = (entry.accepted.order.0, entry.number);
                if let Some(row) = self.feedback.get_mut(&order)
                    && row.events == number
                {
                    row.feedback.delivery = DeliveryState::DeadLetter;
                }
            }
        }
    }

    pub(super) fn dead_letters(&self, query: &DeadLetterQuery) -> Vec<DeadLetter> {
        let dead = self.outbox.iter().filter_map(|(event_id, entry)| {
            let letter = DeadLetter {
                event_id: *event_id,
                feedback_id: entry.feedback,
                namespace: entry.namespace.clone(),
                attempts: entry.attempts,
                refusal: entry.refusal.clone()?,
                dead_at_us: entry.dead_at_us?,
            };
            let asked = query
                .namespace
                .as_ref()
                .is_none_or(|asked| letter.namespace == *asked);
            let behind = query.after.is_none_or(|after| {
                (letter.dead_at_us, letter.event_id) > (after.dead_at_us, after.event_id)
            });
            (asked && behind).then_some(letter)
        });
        let mut dead: Vec<_> = dead.collect();
        dead.sort_by_key(|letter| (letter.dead_at_us, letter.event_id));
        dead.truncate(query.limit as usize);
        dead
    }

    pub(super) fn redrive(&mut self, which: &Redrive) -> u64 {
        let (events, namespace) = match which {
            Redrive::Namespace(namespace) => (None, Some(namespace)),
            Redrive::Events(events, namespace) => (Some(events), namespace.as_ref()),
        };
        let mut redriven = 0;
        for (event_id, entry) in &mut self.outbox {
            if entry.dead_at_us.is_none()
                || events.is_some_and(|events| !events.contains(event_id))
                || namespace.is_some_and(|asked| entry.namespace != *asked)
            {
                continue;
            }
            entry.attempts = 0;
            entry.token = None;
            entry.dead_at_us = None;
            entry.due_at_us = self.now_us;
            redriven += 1;
            if let Some(row) = self.feedback.get_mut(&entry.accepted.order.0)
                && row.events == entry.number
            {
                row.feedback.delivery = DeliveryState::Pending;
            }
        }
        redriven
    }

    pub(super) fn prune_request_ids(&mut self, retention_us: i64, limit: u32) -> u64 {
        let oldest_kept = self.now_us - retention_us;
        let mut oldest: Vec<_> = self
            .request_ids
            .iter()
            .map(|(key, used)| (used.order, used.created_at_us, key.clone()))
            .collect();
        oldest.sort_unstable();
        oldest.truncate(limit as usize);
        let before = self.request_ids.len();
        for (_, created_at_us, key) in oldest {
            if created_at_us < oldest_kept {
                self.request_ids.remove(&key);
            }
        }
        (before - self.request_ids.len()) as u64
    }
}
