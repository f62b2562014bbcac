//! How many streams are open and how they end, what they begin with, and the revision served.

use std::time::Duration;

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Counter, Family, Gauge, LateGauge},
    },
};
use emend_proto::learning::v1::SnapshotReason;

const HEAD_REVISION: Description = Description {
    name: "emend_head_revision",
    kind: Type::Gauge,
    unit: "revision",
    labels: &[],
    help: "The newest revision that this replica serves; the greatest of all replicas is the head of the log, and one that \
           stays below it lags. Absent until the replica has loaded the log",
};
const RESOURCES: Description = Description {
    name: "emend_resources",
    kind: Type::Gauge,
    unit: "resources",
    labels: &[],
    help: "Resources that this replica serves, of all namespaces and kinds; each replica holds all of them in memory, so take \
           the maximum and not the sum. Absent until the replica has loaded the log",
};
const RESOURCE_BYTES: Description = Description {
    name: "emend_resource_bytes",
    kind: Type::Gauge,
    unit: "bytes",
    labels: &[],
    help: "The keys and values of the resources that this replica serves, as encoded; each replica shows the same, so take the maximum \
           and not the sum. Absent until the replica has loaded the log",
};
const STATE_AGE: Description = Description {
    name: "emend_state_age_seconds",
    kind: Type::Gauge,
    unit: "seconds",
    labels: &[],
    help: "How long ago this replica last read its log to the end: how old what its streams serve may be. Grows while the database is \
           away. Absent until the replica has loaded the log",
};
const SUBSCRIBERS: Description = Description {
    name: "emend_subscribers",
    kind: Type::Gauge,
    unit: "streams",
    labels: &[],
    help: "Streams of updates that are open on this replica",
};
const STREAMS_ENDED: Description = Description {
    name: "emend_streams_ended_total",
    kind: Type::Counter,
    unit: "streams",
    labels: &["reason=client_gone|shutdown|max_stream_age|stalled|access_lost"],
    help: "Streams of updates that ended on this replica, by reason",
};
const SNAPSHOTS: Description = Description {
    name: "emend_snapshots_total",
    kind: Type::Counter,
    unit: "snapshots",
    labels: &["reason=no_cursor|foreign_epoch|cursor_ahead|cursor_expired|filter_changed|new_epoch"],
    help: "Snapshots that this replica began to send, by the reason why changes alone did not suffice",
};

/// Why a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The client closed it or was cut off.
    ClientGone,
    /// The replica is stopping.
    Shutdown,
    /// It reached its maximum age.
    MaxStreamAge,
    /// It did not read its snapshot while others waited.
    Stalled,
    /// The caller's credentials expired, or its rights changed.
    AccessLost,
}

impl StreamEnd {
    const ALL: [Self; 5] = [
        Self::ClientGone,
        Self::Shutdown,
        Self::MaxStreamAge,
        Self::Stalled,
        Self::AccessLost,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::ClientGone => "client_gone",
            Self::Shutdown => "shutdown",
            Self::MaxStreamAge => "max_stream_age",
            Self::Stalled => "stalled",
            Self::AccessLost => "access_lost",
        }
    }
}

/// The update stream's metrics. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct StreamMetrics {
    ended: Family<Labels<1>, Counter>,
    snapshots: Family<Labels<1>, Counter>,
    /// Hidden until the first state is loaded: starting at 0 would look like growth.
    head: LateGauge,
    resources: LateGauge,
    resource_bytes: LateGauge,
    age: LateGauge,
    subscribers: Gauge,
}

impl StreamMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        // Counters exist from the start, so that their first increment shows.
        for why in StreamEnd::ALL {
            drop(own.ended.get_or_create(&[("reason", why.name())]));
        }
        for number in 1.. {
            let Ok(why) = SnapshotReason::try_from(number) else {
                break;
            };
            let labels = [("reason", snapshot_name(why))];
            drop(own.snapshots.get_or_create(&labels));
        }
        metrics.register(STREAMS_ENDED, own.ended.clone());
        metrics.register(SNAPSHOTS, own.snapshots.clone());
        metrics.register(HEAD_REVISION, own.head.clone());
        metrics.register(RESOURCES, own.resources.clone());
        metrics.register(RESOURCE_BYTES, own.resource_bytes.clone());
        metrics.register(STATE_AGE, own.age.clone());
        metrics.register(SUBSCRIBERS, own.subscribers.clone());
        own
    }

    /// Counts a stream that ended.
    pub fn ended(&self, why: StreamEnd) {
        self.ended.get_or_create(&[("reason", why.name())]).inc();
    }

    /// Counts a snapshot that begins.
    pub fn snapshot(&self, why: SnapshotReason) {
        self.snapshots
            .get_or_create(&[("reason", snapshot_name(why))])
            .inc();
    }

    /// Shows how many streams are open.
    pub fn show_subscribers(&self, count: usize) {
        self.subscribers.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Shows the revision that this replica serves.
    pub fn show_head(&self, revision: i64) {
        self.head.set(revision);
    }

    /// Shows how old what it serves may be.
    pub fn show_age(&self, age: Duration) {
        self.age.set(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
    }

    /// Shows how many resources it serves, and the bytes of their keys and values.
    pub fn show_held(&self, (count, bytes): (u64, u64)) {
        self.resources.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.resource_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

const fn snapshot_name(why: SnapshotReason) -> &'static str {
    match why {
        SnapshotReason::Unspecified => "unspecified",
        SnapshotReason::NoCursor => "no_cursor",
        SnapshotReason::ForeignEpoch => "foreign_epoch",
        SnapshotReason::CursorAhead => "cursor_ahead",
        SnapshotReason::CursorExpired => "cursor_expired",
        SnapshotReason::FilterChanged => "filter_changed",
        SnapshotReason::NewEpoch => "new_epoch",
    }
}
