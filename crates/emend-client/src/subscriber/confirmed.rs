//! What a node says of those to whom it hands on what it holds: how far they use it, as they confirmed.

use std::{collections::VecDeque, future::pending};

use emend_core::Revision;
use emend_proto::{common::v1::ResourceKey, learning::v1::Cursor};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::replica::AppliedChange;

/// The most changes whose delays are measured at a time. Of more, the newest are not measured.
const MOST_AWAITED: usize = 10_000;

/// What was confirmed, in place of what the node itself has applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confirmed {
    /// The state that is in use; `None`: none is yet.
    pub position: Option<Cursor>,
    /// The resources that are not in use, although they are of that state.
    pub refused: Vec<Refused>,
    /// What is wrong, in `UPPER_SNAKE_CASE`; `None`: nothing is.
    pub problem: Option<&'static str>,
}

/// A resource that is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its key.
    pub key: ResourceKey,
    /// Its revision.
    pub revision: i64,
    /// Why, in the words of who refuses it.
    pub error: String,
}

/// Follows what is confirmed.
#[derive(Debug)]
pub(super) struct Confirmations {
    confirmed: watch::Receiver<Confirmed>,
    reported: Confirmed,
    /// What was applied here and is not confirmed yet, the oldest first.
    awaited: VecDeque<Awaited>,
}

/// A change that was applied here.
#[derive(Debug)]
pub(super) struct Awaited {
    revision: Revision,
    pub(super) committed_at: Option<Timestamp>,
    pub(super) feedback_received_at: Option<Timestamp>,
    pub(super) traceparent: String,
}

/// What follows from what was confirmed.
#[derive(Debug)]
pub(super) struct News {
    /// The changes that are confirmed now.
    pub(super) changes: Vec<Awaited>,
    /// Whether something is wrong, or no longer: it is reported at once.
    pub(super) is_urgent: bool,
}

impl Confirmations {
    pub(super) fn new(confirmed: watch::Receiver<Confirmed>) -> Self {
        Self {
            confirmed,
            reported: Confirmed::default(),
            awaited: VecDeque::new(),
        }
    }

    /// What is confirmed now.
    pub(super) fn current(&self) -> &Confirmed {
        &self.reported
    }

    /// Notes a change that was applied here.
    pub(super) fn await_change(&mut self, change: &AppliedChange) {
        if self.awaited.len() < MOST_AWAITED {
            self.awaited.push_back(Awaited {
                revision: change.revision,
                committed_at: change.committed_at,
                feedback_received_at: change.feedback_received_at,
                traceparent: change.traceparent.clone(),
            });
        }
    }

    /// Waits until something else is confirmed. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        if self.confirmed.changed().await.is_err() {
            pending::<()>().await;
        }
    }

    /// Takes what is confirmed now.
    pub(super) fn take(&mut self) -> News {
        let confirmed = self.confirmed.borrow_and_update().clone();
        let is_urgent =
            confirmed.problem != self.reported.problem || confirmed.refused != self.reported.refused;
        let revision = Revision(confirmed.position.as_ref().map_or(0, |cursor| cursor.revision));
        let count = self
            .awaited
            .iter()
            .take_while(|awaited| awaited.revision <= revision)
            .count();
        self.reported = confirmed;
        News {
            changes: self.awaited.drain(..count).collect(),
            is_urgent,
        }
    }
}
