//! When a virtual machine had its processors for itself.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::time::Instant;

/// How often it is looked at; also how long what was stolen before may delay what comes after.
const EACH: Duration = Duration::from_secs(1);
/// The system counts in ticks as long, and only once a processor is back.
const TICK: Duration = Duration::from_millis(10);

/// What was stolen until when.
pub(super) struct Stolen {
    /// Ticks of all processors, ascending.
    readings: Vec<(Instant, Ticks)>,
}

/// The time of the processors since the machine was started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    /// What this machine was to have and other machines got.
    stolen: u64,
}

impl Stolen {
    /// Looks until it is told to end.
    pub(super) fn watch(end: &Receiver<()>) -> Result<Self> {
        let mut readings = Vec::new();
        loop {
            readings.push((Instant::now(), Ticks::now()?));
            if end.recv_timeout(EACH) != Err(RecvTimeoutError::Timeout) {
                readings.push((Instant::now(), Ticks::now()?));
                return Ok(Self { readings });
            }
        }
    }

    /// Whether no stolen time was counted from a second before one time to shortly after the other.
    pub(super) fn is_none(&self, from: Instant, to: Instant) -> bool {
        let (from, to) = (from.checked_sub(EACH), to + 2 * TICK);
        let before = self.readings.iter().rev().find(|(at, _)| Some(*at) <= from);
        let after = self.readings.iter().find(|(at, _)| *at >= to);
        before
            .zip(after)
            .is_some_and(|((_, before), (_, after))| before.stolen == after.stolen)
    }

    /// All there was and what was stolen of it.
    pub(super) fn ticks(&self) -> [u64; 2] {
        let first_and_last = self.readings.first().zip(self.readings.last());
        first_and_last.map_or([0; 2], |((_, first), (_, last))| {
            // One of the figures, the time that waited for a disk, may fall.
            [
                last.all.saturating_sub(first.all),
                last.stolen.saturating_sub(first.stolen),
            ]
        })
    }
}

impl Ticks {
    fn now() -> Result<Self> {
        Self::of(&std::fs::read_to_string("/proc/stat")?)
    }

    /// Of the first line, as `proc_stat(5)` has it.
    fn of(text: &str) -> Result<Self> {
        const STOLEN: usize = 7;
        let line = text.lines().next().context("a line of all processors")?;
        let ticks = line.split_whitespace().skip(1).take(STOLEN + 1).map(str::parse);
        let ticks = ticks.collect::<Result<Vec<u64>, _>>()?;
        Ok(Self {
            all: ticks.iter().sum(),
            stolen: *ticks.get(STOLEN).context("the stolen ticks")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_figure_is_what_was_stolen() {
        let ticks = Ticks::of("cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        assert_eq!(ticks, Ticks { all: 108, stolen: 80 });
        assert!(Ticks::of("cpu 1 2 3").is_err());
    }

    #[test]
    fn nothing_is_stolen_between_readings_that_are_equal_and_enclose_a_time() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let readings = [
            (0, 5),
            (1_000, 5),
            (2_000, 5),
            (3_000, 8),
            (4_000, 8),
            (5_000, 8),
            (6_000, 8),
        ];
        let readings = readings.map(|(millis, stolen)| (at(millis), Ticks { all: 0, stolen }));
        let stolen = Stolen {
            readings: readings.into(),
        };
        let is_none = |from, to| stolen.is_none(at(from), at(to));
        assert!(is_none(1_000, 1_900));
        assert!(!is_none(900, 950), "nobody looked before");
        assert!(
            !is_none(1_900, 1_990),
            "it may have been stolen before it was counted"
        );
        assert!(!is_none(1_900, 2_500));
        assert!(!is_none(3_500, 3_600), "the second before delays this one");
        assert!(is_none(4_100, 5_900));
        assert!(!is_none(5_500, 5_999), "nobody looked after");
    }
}
