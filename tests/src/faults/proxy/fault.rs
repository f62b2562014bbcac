//! What a bad network does to connections.

use std::time::Duration;

use crate::harness::Dice;

/// One fault that connections suffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Silently ends connections at some byte before this many have passed one way, in the middle of anything.
    Cut {
        /// Bytes.
        within: usize,
    },
    /// Ends one direction of a connection gracefully, at some byte before this many have passed that way; the other
    /// goes on.
    HalfClose {
        /// Bytes.
        within: usize,
    },
    /// Delays each piece, by up to this long.
    Delay(Duration),
    /// Limits each direction to this many bytes a second.
    Throttle(usize),
    /// Accepts connections and what is sent, and passes nothing on, not even that a side has gone. A connection that
    /// lost anything this way stays mute.
    BlackHole,
    /// Passes on what clients send and loses every answer, so that a client can't know what became of its requests. A
    /// client that lost anything this way never hears anything again on that connection.
    LostAnswers,
}

/// The faults in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    faults: Vec<Fault>,
    seed: u64,
    /// Incremented by each change.
    pub(super) number: u64,
}

/// What one direction of one connection suffers, with the chances decided.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// The number of the conditions that it was made for.
    pub(super) number: u64,
    /// The connection is cut after this many more bytes.
    pub(super) cut: Option<usize>,
    /// This direction ends after this many more bytes.
    pub(super) half_close: Option<usize>,
    pub(super) delay: Option<Duration>,
    pub(super) bytes_per_second: Option<usize>,
}

impl Conditions {
    /// New conditions with other faults.
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

    /// The plan for the direction with the unique number `way`, and the dice for later choices.
    pub(super) fn plan(&self, way: u64) -> (Plan, Dice) {
        // An odd factor keeps the directions of neighbouring seeds apart.
        let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let dice = Dice::seeded(seed ^ way);
        // Chooses one of a connection's two directions, whose numbers differ in the lowest bit only.
        let is_chosen = Dice::seeded(!(seed ^ (way >> 1))).chance(0.5) == (way & 1 == 0);
        let mut plan = Plan {
            number: self.number,
            ..Plan::default()
        };
        for fault in &self.faults {
            match *fault {
                Fault::Cut { within } => plan.cut = Some(dice.below(within)),
                // One direction only: otherwise both would soon be closed, which is a cut.
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
