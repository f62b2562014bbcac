//! What a sink says of itself: in the fleet, and in metrics.

use std::time::Duration;

use emend_client::{Confirmed, Cursor, Refused};
use tokio::{sync::watch, time::Instant};

use super::{error::Problem, metrics::Gauges};

/// What a sink says of itself.
pub(super) struct Reporting {
    confirmed: watch::Sender<Confirmed>,
    pub(super) gauges: Gauges,
    /// Since when there has been a revision that is not confirmed.
    behind_since: Option<Instant>,
}

impl Reporting {
    pub(super) fn new(confirmed: watch::Sender<Confirmed>, gauges: Gauges) -> Self {
        Self {
            confirmed,
            gauges,
            behind_since: None,
        }
    }

    /// This state is in use, but for what is refused.
    pub(super) fn confirm(&self, position: Cursor, refused: Vec<Refused>) {
        self.gauges.refuses(refused.len());
        self.gauges.show(None);
        self.say(|confirmed| {
            confirmed.position = Some(position);
            confirmed.refused = refused;
            confirmed.problem = None;
        });
    }

    /// Whether this state was confirmed.
    pub(super) fn is_confirmed(&self, position: &Cursor) -> bool {
        self.confirmed.borrow().position.as_ref() == Some(position)
    }

    /// Nothing is wrong, and nothing new is confirmed.
    pub(super) fn is_fine(&self) {
        self.gauges.show(None);
        self.say(|confirmed| confirmed.problem = None);
    }

    /// It is to be written after this long. Whoever is asked and answers is not away; what else was wrong may still be.
    pub(super) fn waits(&self, wait: Duration) {
        if self.confirmed.borrow().problem == Some(Problem::Away.reported()) {
            self.is_fine();
        }
        self.gauges.waits(wait);
    }

    /// Something is wrong.
    pub(super) fn report(&self, problem: Problem, refused: Option<Refused>) {
        self.gauges.show(Some(problem));
        self.say(|confirmed| {
            confirmed.problem = Some(problem.reported());
            if let Some(refused) = refused {
                confirmed.refused = vec![refused];
            }
        });
    }

    fn say(&self, change: impl FnOnce(&mut Confirmed)) {
        self.confirmed.send_if_modified(|confirmed| {
            let before = confirmed.clone();
            change(confirmed);
            *confirmed != before
        });
    }

    /// Shows how far what is confirmed is behind this state, which is held.
    pub(super) fn show_lag(&mut self, held: &Cursor) {
        let now = Instant::now();
        let confirmed = self.confirmed.borrow().position.clone();
        let confirmed = confirmed
            .filter(|confirmed| confirmed.epoch == held.epoch)
            .map_or(0, |confirmed| confirmed.revision);
        let behind = (held.revision - confirmed).max(0);
        if behind == 0 {
            self.behind_since = None;
        } else {
            self.behind_since.get_or_insert(now);
        }
        let since = self.behind_since.map_or(Duration::ZERO, |since| now - since);
        self.gauges.lag(behind, since);
    }
}
