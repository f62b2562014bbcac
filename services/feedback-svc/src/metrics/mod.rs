//! This service's metrics, besides those of its RPCs.
//!
//! Gauges of what is in the database are sampled by a worker; every replica shows the same values.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind, Labels,
        prometheus::{Counter, Family, Gauge, SecondsGauge},
    },
};
use emend_core::correction::Form;

mod queries;
mod ratings;

use feedback_store::ports::Backlog;

pub(crate) use self::{
    queries::{Dropped, QueryMetrics, Recorded},
    ratings::RatingMetrics,
};

/// The service's name in metrics.
pub(crate) const SERVICE: &str = "feedback-svc";

const OUTBOX_ENTRIES: Description = Description {
    name: "emend_outbox_entries",
    kind: Kind::Gauge,
    unit: "events",
    labels: &[],
    help: "Stored events that are not yet delivered to learning-svc, dead letters excluded; every replica shows the \
           same, so take the maximum and not the sum",
};
const OLDEST_AGE: Description = Description {
    name: "emend_outbox_oldest_age_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &[],
    help: "How long the oldest undelivered event has waited, 0 if there is none; every replica shows the same, so take the \
           maximum and not the sum",
};
const DEAD_LETTERS: Description = Description {
    name: "emend_dead_letters",
    kind: Kind::Gauge,
    unit: "events",
    labels: &[],
    help: "Events that learning-svc refused for good, until somebody re-drives them; every replica shows the same, so take \
           the maximum and not the sum",
};
const INSTALLATION_MISMATCH: Description = Description {
    name: "emend_installation_mismatch",
    kind: Kind::Gauge,
    unit: "",
    labels: &[],
    help: "1 while another installation of learning-svc answers than the one to which events are delivered, so that \
           they wait in the outbox; otherwise 0",
};
const REDACTED: Description = Description {
    name: "emend_feedback_redacted_total",
    kind: Kind::Counter,
    unit: "corrections",
    labels: &[],
    help: "Corrections whose personal parts this replica has erased by itself: because of their age, or to finish the \
           erasure of a reporter",
};
const STORED: Description = Description {
    name: "emend_feedback_stored_total",
    kind: Kind::Counter,
    unit: "corrections",
    labels: &["correction=verb|phrase_mapping|entity|prohibition"],
    help: "Corrections that this replica has stored, by their form; a repeated request counts once",
};

/// Counts stored corrections. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored(Family<Labels<1>, Counter>);

impl Stored {
    /// Counts one more.
    pub(crate) fn count(&self, form: Form) {
        self.of(form).inc();
    }

    fn of(&self, form: Form) -> Counter {
        self.0.get_or_create_owned(&[("correction", form.name())])
    }
}

/// This service's metrics. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FeedbackMetrics {
    /// Stored corrections.
    pub(crate) stored: Stored,
    /// Ratings of search answers.
    pub(crate) ratings: RatingMetrics,
    entries: Gauge,
    oldest_age: SecondsGauge,
    dead_letters: Gauge,
    /// Whether another installation of learning-svc answers.
    pub(crate) installation_mismatch: Gauge,
    /// Recorded queries.
    pub(crate) queries: QueryMetrics,
    /// Corrections that the worker of erasures has redacted.
    pub(crate) redacted: Counter,
}

impl FeedbackMetrics {
    /// Registers them among the metrics of the process.
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let own = Self {
            queries: QueryMetrics::register(metrics),
            ..Self::default()
        };
        for form in Form::ALL {
            own.stored.of(form);
        }
        metrics.name_service(SERVICE, env!("CARGO_PKG_VERSION"));
        metrics.register(STORED, own.stored.0.clone());
        own.ratings.register(metrics);
        metrics.register(OUTBOX_ENTRIES, own.entries.clone());
        metrics.register(OLDEST_AGE, own.oldest_age.clone());
        metrics.register(DEAD_LETTERS, own.dead_letters.clone());
        metrics.register(INSTALLATION_MISMATCH, own.installation_mismatch.clone());
        metrics.register(REDACTED, own.redacted.clone());
        own
    }

    /// Shows the backlog of undelivered events.
    pub(crate) fn sample(&self, backlog: &Backlog) {
        self.entries.set(signed(backlog.pending));
        self.oldest_age.set(backlog.oldest_age.as_secs_f64());
        self.dead_letters.set(signed(backlog.dead_letters));
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use feedback_store::testing::{TestStore, feedback, stored};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn pending_outbox_entries_are_shown_with_their_age() {
        let database = TestStore::sqlite().await;
        let metrics = Metrics::new();
        let own = FeedbackMetrics::register(&metrics);
        stored(&*database.store, &feedback("a"), None).await;
        database.advance(90).await;
        own.sample(&database.store.backlog().await.unwrap());
        let rendered = metrics.render();
        assert!(rendered.contains("\nemend_outbox_entries 1\n"), "{rendered}");
        let age = rendered
            .lines()
            .find_map(|line| line.strip_prefix("emend_outbox_oldest_age_seconds "));
        let age = Duration::from_secs_f64(age.unwrap().parse().unwrap());
        assert!((90..100).contains(&age.as_secs()), "{age:?}");
    }
}
