//! What is counted of recorded queries.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind, Labels,
        prometheus::{Counter, Family, Gauge},
    },
};
use feedback_store::ports::Written;

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
    help: "Synonyms that this replica has proposed because the same rewording worked in three sessions, or because another \
           spelling of what found nothing was clicked in three; each is proposed once",
};

/// Why something was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// More waits than fits into memory, in total or of this client.
    QueueFull,
    /// The service is stopping.
    Stopping,
    /// The database was away until the service stopped.
    Database,
    /// The database refused it.
    Refused,
}

impl Dropped {
    pub(crate) const ALL: [Self; 4] = [Self::QueueFull, Self::Stopping, Self::Database, Self::Refused];

    /// The name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Stopping => "stopping",
            Self::Database => "database",
            Self::Refused => "refused",
        }
    }
}

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
    pub(super) fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        for kind in [Recorded::Query, Recorded::Interaction] {
            Self::of(&own.recorded, kind);
            Self::of(&own.written, kind);
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

    fn of(family: &Family<Labels<1>, Counter>, kind: Recorded) -> Counter {
        family.get_or_create_owned(&[("what", kind.name())])
    }

    /// Counts one that waits to be stored.
    pub(crate) fn recorded(&self, kind: Recorded) {
        Self::of(&self.recorded, kind).inc();
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
