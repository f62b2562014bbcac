//! What a bad network does to connections.

use std::time::Duration;

use crate::harness::Dice;

/// One thing that is done to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Ends connections without a word, at some byte before so many have passed one way, in the middle of whatever it is.
    Cut {
        /// Bytes.
        within: usize,
    },
    /// Ends one way of a connection in good order, at some byte before so many have passed that way; the other goes on.
    HalfClose {
        /// Bytes.
        within: usize,
    },
    /// Holds each piece back, for up to so long.
    Delay(Duration),
    /// Lets at most so many bytes pass each way in a second.
    Throttle(usize),
    /// Accepts connections, takes what is said and passes nothing on, not even that a side has gone. A connection that lost
    /// something so never goes on again.
    BlackHole,
    /// Passes on what is said by who connected, and loses every answer: who connected can't know what became of it. A
    /// connection that lost something so never hears anything again.
    LostAnswers,
}

/// What is done now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    faults: Vec<Fault>,
    seed: u64,
    /// Grows with each change.
    pub(super) number: u64,
}

/// What is done to one way of one connection, decided.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// Of which conditions.
    pub(super) number: u64,
    /// After so many more bytes the connection is cut.
    pub(super) cut: Option<usize>,
    /// After so many more bytes this way ends.
    pub(super) half_close: Option<usize>,
    pub(super) delay: Option<Duration>,
    pub(super) bytes_per_second: Option<usize>,
}

impl Conditions {
    /// Other faults in their place.
    pub(super) fn change(&self, faults: impl IntoIterator<Item = Fault>, seed: u64) -> Self {
        Self {
            faults: faults.into_iter().collect(),
            seed,
            number: self.number + 1,
        }
    }

    pub(super) fn is_black_hole(&self) -> bool {
        self.faults.contains(&Fault::BlackHole)
    }

    pub(super) fn loses_answers(&self) -> bool {
        self.faults.contains(&Fault::LostAnswers)
    }

    /// What is done to one way, told apart from all others by `way`, and what decides from then on.
    pub(super) fn plan(&self, way: u64) -> (Plan, Dice) {
        // An odd factor keeps ways of neighbouring seeds apart.
        let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let dice = Dice::seeded(seed ^ way);
        // The same for both ways of a connection, which differ in the lowest bit.
        let is_chosen = Dice::seeded(!(seed ^ (way >> 1))).chance(0.5) == (way & 1 == 0);
        let mut plan = Plan {
            number: self.number,
            ..Plan::default()
        };
        for fault in &self.faults {
            match *fault {
                Fault::Cut { within } => plan.cut = Some(dice.below(within)),
                // Of one way, else both would soon be closed and that is a cut.
                Fault::HalfClose { within } if is_chosen => {
                    plan.half_close = Some(dice.below(within));
                }
                Fault::Delay(most) => plan.delay = Some(most),
                Fault::Throttle(bytes) => plan.bytes_per_second = Some(bytes.max(1)),
                Fault::HalfClose { .. } | Fault::BlackHole | Fault::LostAnswers => {}
            }
        }
        (plan, dice)
    }
}
