//! Counts of what was generated, and how long it took.

use std::time::Duration;

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind, Labels,
        prometheus::{Counter, Family, Histogram},
    },
};

const GENERATIONS: Description = Description {
    name: "emend_generations_total",
    kind: Kind::Counter,
    unit: "generations",
    labels: &["outcome=proposed|unavailable|bad_answer|unimproved|overtaken|failed"],
    help: "What this replica asked the generator for, by what became of it: proposed; the generator could not be asked, or gave what \
           can't be used; the ratings say nothing to improve, or the prompt has no room; what it was made for changed meanwhile; it could not be stored",
};
const SECONDS_OF: Description = Description {
    name: "emend_generation_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    labels: &[],
    help: "How long the generator took for an improvement of a prompt, whether or not it made one",
};
/// From what the embedded generator takes to the longest that is waited for.
const SECONDS: [f64; 9] = [0.001, 0.01, 0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0];

/// What became of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// It is proposed.
    Proposed,
    /// The generator could not be asked, or not in time.
    Unavailable,
    /// It gave what can't be used.
    BadAnswer,
    /// The ratings say nothing to improve, or the prompt has no room for it.
    Unimproved,
    /// What it was made for changed meanwhile.
    Overtaken,
    /// It could not be stored.
    Failed,
}

impl Generation {
    const ALL: [Self; 6] = [
        Self::Proposed,
        Self::Unavailable,
        Self::BadAnswer,
        Self::Unimproved,
        Self::Overtaken,
        Self::Failed,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Unavailable => "unavailable",
            Self::BadAnswer => "bad_answer",
            Self::Unimproved => "unimproved",
            Self::Overtaken => "overtaken",
            Self::Failed => "failed",
        }
    }
}

/// Counts what was generated. Clones share the counts.
#[derive(Debug, Clone)]
pub struct Generations {
    outcomes: Family<Labels<1>, Counter>,
    seconds: Histogram,
}

impl Default for Generations {
    fn default() -> Self {
        Self {
            outcomes: Family::default(),
            seconds: Histogram::new(SECONDS),
        }
    }
}

impl Generations {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        // Counters exist from the start, so that their first increment shows.
        for outcome in Generation::ALL {
            own.counter(outcome);
        }
        metrics.register(GENERATIONS, own.outcomes.clone());
        metrics.register(SECONDS_OF, own.seconds.clone());
        own
    }

    /// Counts what became of one.
    pub fn ended(&self, outcome: Generation) {
        self.counter(outcome).inc();
    }

    /// Counts how long the generator took.
    pub fn took(&self, time: Duration) {
        self.seconds.observe(time.as_secs_f64());
    }

    /// How often this became of one.
    #[cfg(test)]
    pub(crate) fn count(&self, outcome: Generation) -> u64 {
        self.counter(outcome).get()
    }

    fn counter(&self, outcome: Generation) -> Counter {
        self.outcomes.get_or_create_owned(&[("outcome", outcome.name())])
    }
}
