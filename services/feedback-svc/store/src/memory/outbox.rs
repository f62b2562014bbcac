//! The steps of the outbox: claims, results of deliveries, dead letters.

use std::time::Duration;

use emend_core::{EventId, Namespace};

use crate::{
    memory::{
        Defect,
        tables::{Row, Tables, micros},
    },
    ports::{Backlog, Claimed, LONGEST_WAIT, Settlement},
    records::outbox::{DeadLetter, DeadLetterQuery, DeliveryState, Lease, LeaseToken},
};

impl Tables {
    /// Forgets everything that waits, as a standby that had not received it.
    pub fn lose_outbox(&mut self) {
        self.outbox.clear();
    }

    pub(super) fn claim(&mut self, limit: u32, lease: Lease) -> Vec<Claimed> {
        let ignores_leases = self.has(Defect::IgnoresLeases);
        let now = self.now;
        let waits = |due_at: i64| due_at > now && due_at <= now.saturating_add(micros(LONGEST_WAIT));
        let mut due: Vec<_> = self
            .outbox
            .iter_mut()
            .filter(|(_, entry)| {
                let leased = waits(entry.due_at) && !(ignores_leases && entry.token.is_some());
                entry.dead_at.is_none() && !leased
            })
            .collect();
        due.sort_by_key(|(_, entry)| (entry.accepted.order, entry.number));
        due.truncate(limit as usize);
        let mut claimed = Vec::with_capacity(due.len());
        for (event_id, entry) in due {
            if entry.token.is_some() && waits(entry.due_at) {
                let stolen = format!("event {event_id} was claimed while it was leased to somebody else");
                self.violations.push(stolen);
            }
            entry.token = Some(lease.token);
            entry.due_at = now.saturating_add(micros(lease.duration));
            claimed.push(Claimed {
                event_id: *event_id,
                accepted: entry.accepted,
                attempts: entry.attempts,
                payload: entry.payload.clone(),
            });
        }
        claimed
    }

    pub(super) fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Vec<EventId> {
        let held = leases.iter().filter(|(event_id, token)| {
            let entry = self.outbox.get(event_id);
            entry.is_some_and(|entry| entry.dead_at.is_none() && entry.token == Some(*token))
        });
        held.map(|(event_id, _)| *event_id).collect()
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
        let now = self.now;
        let (ignores_tokens, never_retries) =
            (self.has(Defect::IgnoresTokens), self.has(Defect::NeverRetries));
        let Some(entry) = self
            .outbox
            .get_mut(&event_id)
            .filter(|entry| entry.dead_at.is_none() && (entry.token == Some(token) || ignores_tokens))
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
                // The latest an event may be due; any later would look as if the clock had gone back.
                let wait = if never_retries { LONGEST_WAIT } else { *retry_in };
                entry.due_at = now.saturating_add(micros(wait));
            }
            Settlement::Released { .. } => entry.due_at = now,
            Settlement::Dead { refusal, .. } => {
                entry.attempts += 1;
                entry.refusal = Some(refusal.clone());
                entry.dead_at = Some(now);
                let (order, number) = (entry.accepted.order.0, entry.number);
                if let Some(row) = self.feedback.get_mut(&order)
                    && row.events == number
                {
                    row.feedback.delivery = DeliveryState::DeadLetter;
                }
            }
        }
    }

    pub(super) fn backlog(&self) -> Backlog {
        let (dead, pending): (Vec<_>, Vec<_>) =
            self.outbox.values().partition(|entry| entry.dead_at.is_some());
        let oldest = pending
            .iter()
            .map(|entry| entry.accepted.at.as_microsecond())
            .min();
        let age = oldest.map_or(0, |oldest| self.now.saturating_sub(oldest));
        Backlog {
            pending: pending.len() as u64,
            oldest_age: Duration::from_micros(u64::try_from(age).unwrap_or(0)),
            dead_letters: dead.len() as u64,
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
                dead_at: entry.dead_at?,
            };
            let asked = query
                .namespace
                .as_ref()
                .is_none_or(|asked| letter.namespace == *asked);
            let behind = query
                .after
                .is_none_or(|after| (letter.dead_at, letter.event_id) > (after.dead_at, after.event_id));
            (asked && behind).then_some(letter)
        });
        let mut dead: Vec<_> = dead.collect();
        dead.sort_by_key(|letter| (letter.dead_at, letter.event_id));
        dead.truncate(query.limit as usize);
        dead
    }

    pub(super) fn redrive(&mut self, events: &[EventId], namespace: Option<&Namespace>) -> u64 {
        let mut redriven = 0;
        for (event_id, entry) in &mut self.outbox {
            if entry.dead_at.is_none()
                || !events.contains(event_id)
                || namespace.is_some_and(|asked| entry.namespace != *asked)
            {
                continue;
            }
            entry.attempts = 0;
            entry.token = None;
            entry.dead_at = None;
            entry.due_at = self.now;
            redriven += 1;
            if let Some(row) = self.feedback.get_mut(&entry.accepted.order.0)
                && row.events == entry.number
            {
                row.feedback.delivery = DeliveryState::Pending;
            }
        }
        redriven
    }
}
