//! The contents of the store in memory, and its steps: what the databases do in SQL, in plain code.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use bytes::Bytes;
use emend_core::{AcceptOrder, Caller, EventId, FeedbackId, Namespace, RequestId};
use emend_store::{CorruptRow, StoreError, simulation::unique_violation};
use jiff::Timestamp;

use crate::{
    memory::Defect,
    ports::{Inserted, InstallationState, Retracted},
    records::{
        event::NewEvent,
        feedback::{
            Accepted, Feedback, FeedbackQuery, NewFeedback, NewRetraction, RepeatedRequest, RequestHash,
            Retraction, is_by_ruling,
        },
        outbox::{DeliveryState, Lease, LeaseToken, Refusal},
        ratings::RatingState,
    },
};

/// A duration in microseconds, as databases store it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The contents.
#[derive(Debug, Default)]
pub struct Tables {
    pub(super) clock_offset: i64,
    /// The store's time, in microseconds since 1970, during one step.
    pub(super) now: i64,
    /// The last accept order given.
    last_order: i64,
    /// By accept order.
    pub(super) feedback: BTreeMap<i64, Row>,
    orders: BTreeMap<FeedbackId, i64>,
    request_ids: BTreeMap<(Namespace, Caller, RequestId), UsedId>,
    pub(super) outbox: BTreeMap<EventId, Entry>,
    pub(super) installation: Option<InstallationState>,
    /// Look-ups of request ids that are in use fail as corrupt.
    pub request_ids_corrupt: bool,
    pub defect: Option<Defect>,
    /// Violations of invariants.
    pub violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) feedback: Feedback,
    /// How many events it has had; the newest has this number.
    pub(super) events: u32,
    /// The number of the event whose outcome it has.
    pub(super) outcome_of: u32,
    /// The number of the strongest role of who retracted it.
    pub(super) retract_role: i64,
}

#[derive(Debug)]
struct UsedId {
    order: i64,
    hash: RequestHash,
    feedback: FeedbackId,
    created_at: i64,
}

/// An outbox entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) accepted: Accepted,
    pub(super) feedback: FeedbackId,
    pub(super) namespace: Namespace,
    /// 1 for the first event of a feedback, and so on.
    pub(super) number: u32,
    pub(super) payload: Bytes,
    pub(super) attempts: u32,
    pub(super) due_at: i64,
    pub(super) token: Option<LeaseToken>,
    pub(super) refusal: Option<Refusal>,
    /// When it became a dead letter.
    pub(super) dead_at: Option<i64>,
}

impl Tables {
    fn now(&self) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.now)
            .map_err(|error| CorruptRow::new("clock", "now", self.now, error).into())
    }

    pub(super) fn has(&self, defect: Defect) -> bool {
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
        // The first is at least now, and after all orders given before, even if the clock went back.
        self.last_order = self.last_order.max(self.now - 1);
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

    /// The result if the item's request id is already in use. Otherwise takes the id, if the item has one.
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
                    created_at: self.now,
                };
                self.request_ids.insert(key, used);
                None
            }
        }
    }

    pub(super) fn stored_as(&self, caller: &Caller, request: &RepeatedRequest) -> Option<FeedbackId> {
        let key = (
            request.namespace.clone(),
            caller.clone(),
            request.request_id.clone(),
        );
        let used = self.request_ids.get(&key)?;
        (used.hash == request.hash).then_some(used.feedback)
    }

    fn store(&mut self, item: &NewFeedback, accepted: Accepted, lease: Option<Lease>) {
        let is_delivered = item.submission.is_delivered();
        let feedback = Feedback {
            id: item.id,
            submission: item.submission.clone(),
            caller: item.caller.clone(),
            accepted,
            retraction: None,
            outcome: None,
            delivery: DeliveryState::at_first(is_delivered),
            redaction: None,
            search_rating: None,
        };
        self.orders.insert(item.id, accepted.order.0);
        let row = Row {
            feedback,
            events: u32::from(is_delivered),
            outcome_of: 0,
            retract_role: 0,
        };
        self.feedback.insert(accepted.order.0, row);
        if is_delivered {
            let namespace = &item.submission.namespace;
            self.send(&item.event, item.id, namespace, 1, accepted, lease);
        }
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
            due_at: self
                .now
                .saturating_add(lease.map_or(0, |lease| micros(lease.duration))),
            token: lease.map(|lease| lease.token),
            refusal: None,
            dead_at: None,
        };
        self.outbox.insert(event.id, entry);
    }

    pub(super) fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Option<Feedback> {
        let row = self.feedback.get(self.orders.get(&id)?)?;
        (row.feedback.submission.namespace == *namespace).then(|| row.feedback.clone())
    }

    /// Of no rating more is known than that it was given.
    pub(super) fn rating_states(&self, orders: &[AcceptOrder]) -> HashMap<AcceptOrder, RatingState> {
        let rows = orders
            .iter()
            .filter_map(|order| Some((*order, self.feedback.get(&order.0)?)));
        let ratings = rows.filter(|(_, row)| row.feedback.submission.correction.search_rating().is_some());
        ratings
            .map(|(order, _)| (order, RatingState::pending()))
            .collect()
    }

    /// All feedback, oldest first.
    pub fn all_feedback(&self) -> impl Iterator<Item = &Feedback> {
        self.feedback.values().map(|row| &row.feedback)
    }

    /// The undelivered events, and whether each is a dead letter.
    pub fn undelivered(&self) -> Vec<(EventId, bool)> {
        let entries = self.outbox.iter();
        entries
            .map(|(id, entry)| (*id, entry.dead_at.is_some()))
            .collect()
    }

    pub(super) fn list(&self, query: &FeedbackQuery) -> Vec<Feedback> {
        let all = self.feedback.values().rev().map(|row| &row.feedback);
        let found = all.filter(|feedback| {
            let Feedback {
                submission, accepted, ..
            } = feedback;
            let rating = submission.correction.rating();
            submission.namespace == query.namespace
                && query
                    .reporter
                    .as_ref()
                    .is_none_or(|asked| submission.reporter.id.as_ref() == Some(asked))
                && query
                    .kind
                    .is_none_or(|asked| submission.correction.form().kind() == Some(asked))
                && query
                    .target
                    .as_ref()
                    .is_none_or(|asked| rating.is_some_and(|rating| rating.target == *asked))
                && query
                    .rating
                    .as_ref()
                    .is_none_or(|asked| rating.is_some_and(|rating| rating.value == *asked))
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
        let has_more_right = row.retract_role < retraction.role_number()
            && is_by_ruling(row.feedback.submission.correction.form().kind());
        if row.feedback.retraction.is_some() && !has_more_right {
            return Ok(Retracted::Before);
        }
        row.retract_role = retraction.role_number();
        row.feedback.retraction = Some(Retraction {
            at,
            reason: retraction.reason.clone(),
        });
        let accepted = Accepted {
            order: row.feedback.accepted.order,
            at,
        };
        let is_delivered = row.events > 0;
        if is_delivered {
            row.feedback.delivery = DeliveryState::Pending;
            row.events += 1;
            let number = row.events;
            let NewRetraction {
                id, namespace, event, ..
            } = retraction;
            self.send(event, *id, namespace, number, accepted, lease);
        }
        Ok(Retracted::Now {
            accepted,
            has_reason: true,
            is_delivered,
        })
    }

    pub(super) fn prune_request_ids(&mut self, retention: i64, limit: u32) -> u64 {
        let oldest_kept = self.now - retention;
        let mut oldest: Vec<_> = self
            .request_ids
            .iter()
            .map(|(key, used)| (used.order, used.created_at, key.clone()))
            .collect();
        oldest.sort_unstable();
        oldest.truncate(limit as usize);
        let before = self.request_ids.len();
        for (_, created_at, key) in oldest {
            if created_at < oldest_kept {
                self.request_ids.remove(&key);
            }
        }
        (before - self.request_ids.len()) as u64
    }
}
