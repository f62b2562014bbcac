//! The weather: how often things go wrong, drawn for each schedule, until it clears.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_tests::harness::Dice;

/// Where a party runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Backend(usize),
    Feedback(usize),
    Learning(usize),
    Node(usize),
}

/// Fault rates: probabilities per call or message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    /// It takes some milliseconds.
    pub(crate) slow: f64,
    /// It takes up to eight seconds.
    pub(crate) stall: f64,
    /// A database call fails.
    pub(crate) fail: f64,
    /// A database call is done, and its answer lost.
    pub(crate) unanswered: f64,
    /// A transaction is told to retry.
    pub(crate) conflict: f64,
    /// A message is lost, and the connection with it.
    pub(crate) lose: f64,
    /// A message arrives twice.
    pub(crate) duplicate: f64,
    /// A message to a node differs from what was sent.
    pub(crate) tamper: f64,
}

#[derive(Debug, Default)]
struct Faults {
    rates: Rates,
    /// The pairs of places that are cut off from each other.
    cuts: BTreeSet<(Place, Place)>,
    databases_away: (bool, bool),
}

/// The weather of a schedule.
#[derive(Debug)]
pub(crate) struct Weather(Mutex<Faults>);

impl Weather {
    /// Each kind of fault occurs in every second schedule, and then at a random rate.
    pub(crate) fn draw(dice: &Dice) -> Self {
        let draw = |most: f64| {
            let there = dice.chance(0.5);
            let part = f64::from(u8::try_from(dice.below(100)).unwrap_or(0)) / 100.0;
            if there { most * part } else { 0.0 }
        };
        let rates = Rates {
            slow: 0.2 + draw(0.6),
            stall: draw(0.01),
            fail: draw(0.03),
            unanswered: draw(0.03),
            conflict: draw(0.05),
            lose: draw(0.15),
            duplicate: draw(0.3),
            tamper: if dice.chance(0.2) { 0.05 } else { 0.0 },
        };
        Self(Mutex::new(Faults {
            rates,
            ..Faults::default()
        }))
    }

    fn sky(&self) -> MutexGuard<'_, Faults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rates(&self) -> Rates {
        self.sky().rates
    }

    /// Ends all faults.
    pub(crate) fn clear(&self) {
        *self.sky() = Faults {
            rates: Rates {
                slow: 0.2,
                ..Rates::default()
            },
            ..Faults::default()
        };
    }

    pub(crate) fn cut(&self, one: Place, other: Place) {
        self.sky().cuts.insert((one.min(other), one.max(other)));
    }

    pub(crate) fn mend(&self, one: Place, other: Place) {
        self.sky().cuts.remove(&(one.min(other), one.max(other)));
    }

    pub(crate) fn is_cut(&self, one: Place, other: Place) -> bool {
        self.sky().cuts.contains(&(one.min(other), one.max(other)))
    }

    pub(crate) fn set_feedback_database_away(&self, away: bool) {
        self.sky().databases_away.0 = away;
    }

    pub(crate) fn set_learning_database_away(&self, away: bool) {
        self.sky().databases_away.1 = away;
    }

    /// Whether the database of the service at this place is down.
    pub(crate) fn is_database_away(&self, place: Place) -> bool {
        let (feedback, learning) = self.sky().databases_away;
        match place {
            Place::Feedback(_) => feedback,
            Place::Learning(_) => learning,
            Place::Backend(_) | Place::Node(_) => false,
        }
    }

    /// How long the next call or message takes; a `critical` one is late more often.
    pub(crate) fn delay(&self, dice: &Dice, critical: bool) -> Duration {
        let rates = self.rates();
        let rough = rates.fail + rates.unanswered > 0.0;
        let stall = match critical {
            true if rough => rates.stall * 8.0 + 0.08,
            true => rates.stall * 8.0,
            false => rates.stall,
        };
        let millis = if stall > 0.0 && dice.chance(stall) {
            dice.below(8_000)
        } else if dice.chance(rates.slow) {
            1 + dice.below(if dice.chance(0.1) { 400 } else { 8 })
        } else {
            0
        };
        Duration::from_millis(millis as u64)
    }
}
