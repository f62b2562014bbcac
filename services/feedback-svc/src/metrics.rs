//! This service's metrics, besides those of its RPCs.
//!
//! Gauges of what is in the database are sampled by a worker; every replica shows the same values.

use std::sync::Arc;

use emend_base::{
    Lifecycle,
    telemetry::{
        Metrics,
        metrics::{
            Description, Kind, Labels,
            prometheus::{Counter, Family, Gauge, SecondsGauge},
        },
    },
};
use emend_core::correction::Form;
use emend_proto::feedback::v1::feedback_service_server::SERVICE_NAME;
use emend_serve::health::Readiness;

use crate::{
    Config,
    queries::{record::Dropped, store::Written},
    ratings::observe::RatingMetrics,
    store::{Store, StoreError},
};

/// The service's name in metrics.
const SERVICE: &str = "feedback-svc";

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

const QUERIES_RECORDED: Description = Description {
    name: "emend_queries_recorded_total",
    kind: Kind::Counter,
    unit: "records",
    labels: &["what=query|interaction"],
    help: "Queries and interactions with results that this replica has taken to store them soon",
};
const QUERIES_WRITTEN: Description = Description {
    name: "emend_queries_written_total",
    kind: Kind::Counter,
    unit: "records",
    labels: &["what=query|interaction"],
    help: "Queries and interactions that this replica has stored; what was stored before counts once",
};
const QUERIES_DROPPED: Description = Description {
    name: "emend_queries_dropped_total",
    kind: Kind::Counter,
    unit: "records",
    labels: &["reason=queue_full|stopping|database|refused"],
    help: "Queries and interactions that were not stored: no room in memory, the service stopped, the database was away until \
           it stopped, or refused them",
};
const QUERIES_QUEUED: Description = Description {
    name: "emend_queries_queued",
    kind: Kind::Gauge,
    unit: "records",
    labels: &[],
    help: "Queries and interactions that wait in this replica's memory to be stored",
};
const SYNONYMS_MINED: Description = Description {
    name: "emend_synonyms_mined_total",
    kind: Kind::Counter,
    unit: "synonyms",
    labels: &[],
    help: "Synonyms that this replica has proposed because the same rewording worked in three sessions; each is proposed once",
};

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    Query,
    Interaction,
}

impl Recorded {
    fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Interaction => "interaction",
        }
    }
}

/// Counts what is recorded. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryMetrics {
    recorded: Family<Labels<1>, Counter>,
    written: Family<Labels<1>, Counter>,
    dropped: Family<Labels<1>, Counter>,
    /// How many wait.
    pub(crate) queued: Gauge,
    mined: Counter,
}

impl QueryMetrics {
    fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        for what in [Recorded::Query, Recorded::Interaction] {
            Self::of(&own.recorded, what);
            Self::of(&own.written, what);
        }
        for reason in Dropped::ALL {
            own.dropped(reason, 0);
        }
        metrics.register(QUERIES_RECORDED, own.recorded.clone());
        metrics.register(QUERIES_WRITTEN, own.written.clone());
        metrics.register(QUERIES_DROPPED, own.dropped.clone());
        metrics.register(QUERIES_QUEUED, own.queued.clone());
        metrics.register(SYNONYMS_MINED, own.mined.clone());
        own
    }

    fn of(family: &Family<Labels<1>, Counter>, what: Recorded) -> Counter {
        family.get_or_create_owned(&[("what", what.name())])
    }

    /// Counts one that waits to be stored.
    pub(crate) fn recorded(&self, what: Recorded) {
        Self::of(&self.recorded, what).inc();
    }

    /// Counts what is stored.
    pub(crate) fn written(&self, written: &Written) {
        Self::of(&self.written, Recorded::Query).inc_by(written.queries);
        Self::of(&self.written, Recorded::Interaction).inc_by(written.interactions);
    }

    /// Counts synonyms that were proposed.
    pub(crate) fn mined(&self, count: u64) {
        self.mined.inc_by(count);
    }

    #[cfg(test)]
    pub(crate) fn mined_so_far(&self) -> u64 {
        self.mined.get()
    }

    #[cfg(test)]
    pub(crate) fn dropped_so_far(&self, reason: Dropped) -> u64 {
        self.dropped
            .get_or_create_owned(&[("reason", reason.name())])
            .get()
    }

    /// Counts what is not.
    pub(crate) fn dropped(&self, reason: Dropped, count: usize) {
        let dropped = self.dropped.get_or_create_owned(&[("reason", reason.name())]);
        dropped.inc_by(count as u64);
    }
}

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

    /// Also exports the state of this replica, read whenever metrics are asked for.
    pub(crate) fn watch(
        config: &Config,
        store: &Arc<dyn Store>,
        readiness: &Readiness,
        lifecycle: &Lifecycle,
    ) {
        let (metrics, store) = (&config.metrics, Arc::clone(store));
        emend_store::metrics::watch_connections(metrics, SERVICE, move || store.connections());
        emend_serve::metrics::watch_readiness(metrics, SERVICE, readiness.clone(), SERVICE_NAME);
        emend_serve::metrics::watch_files(
            metrics,
            SERVICE,
            config.authenticator.as_ref(),
            config.tls.as_ref(),
        );
        if let Some(file) = config.learning.remote().certificate() {
            metrics.watch_client_certificate(SERVICE, file, lifecycle);
        }
    }

    /// Samples the backlog of undelivered events.
    pub(crate) async fn sample(&self, store: &dyn Store) -> Result<(), StoreError> {
        let backlog = store.backlog().await?;
        self.entries.set(signed(backlog.pending));
        self.oldest_age.set(backlog.oldest_age.as_secs_f64());
        self.dead_letters.set(signed(backlog.dead_letters));
        Ok(())
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{TestStore, feedback, stored};

    #[tokio::test]
    async fn pending_outbox_entries_are_shown_with_their_age() {
        let database = TestStore::sqlite().await;
        let metrics = Metrics::new();
        let own = FeedbackMetrics::register(&metrics);
        stored(&*database.store, &feedback("a"), None).await;
        database.advance(90).await;
        own.sample(&*database.store).await.unwrap();
        let rendered = metrics.render();
        assert!(rendered.contains("\nemend_outbox_entries 1\n"), "{rendered}");
        let age = rendered
            .lines()
            .find_map(|line| line.strip_prefix("emend_outbox_oldest_age_seconds "));
        let age = Duration::from_secs_f64(age.unwrap().parse().unwrap());
        assert!((90..100).contains(&age.as_secs()), "{age:?}");
    }
}
