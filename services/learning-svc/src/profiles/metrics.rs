//! Counts of activities and suggestions.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Counter, Family},
    },
};

const ACTIVITIES: Description = Description {
    name: "emend_profile_activities_total",
    kind: Type::Counter,
    unit: "activities",
    labels: &[],
    help: "Activities of users recorded by this replica; one that was known is not counted",
};
const SUGGESTIONS: Description = Description {
    name: "emend_profile_suggestions_total",
    kind: Type::Counter,
    unit: "suggestions",
    labels: &["result=proposed|unusable|failed"],
    help: "Suggested entries of profiles: proposed, or not usable as the generator gave them; \
           and calls that failed because the generator did",
};

/// Counts activities and suggestions. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct ProfileMetrics {
    activities: Counter,
    suggestions: Family<Labels<1>, Counter>,
}

impl ProfileMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(ACTIVITIES, own.activities.clone());
        metrics.register(SUGGESTIONS, own.suggestions.clone());
        for result in ["proposed", "unusable", "failed"] {
            own.counter(result);
        }
        own
    }

    fn counter(&self, result: &'static str) -> Counter {
        self.suggestions.get_or_create_owned(&[("result", result)])
    }

    /// Activities were stored.
    pub(super) fn recorded(&self, count: u64) {
        self.activities.inc_by(count);
    }

    /// Entries were suggested.
    pub(super) fn proposed(&self, count: usize) {
        self.counter("proposed").inc_by(count as u64);
    }

    /// A suggestion can't be used.
    pub(super) fn unusable(&self) {
        self.counter("unusable").inc();
    }

    /// The generator failed.
    pub(super) fn failed(&self) {
        self.counter("failed").inc();
    }
}
