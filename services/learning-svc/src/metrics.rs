//! This service's metrics beyond those of its calls.
//!
//! A worker samples what is in the database; every replica reports the same. What a replica itself holds is read at
//! scrape time. It must know nothing of SQL.

mod delays;

use std::sync::Arc;

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Counter, Family, Gauge, Histogram, HistogramWithExemplars, LateGauge},
    },
};
use emend_core::{Kind, Status, decide::Cause};
use emend_proto::learning::v1::{
    ReportStatusRequest, SnapshotReason, subscription_service_server::SERVICE_NAME,
};
use emend_serve::health::Readiness;
use emend_store::StoreError;

use crate::{
    Config,
    store::{Store, log::NodeCounts},
    stream::{NODES_SEEN_WITHIN, Settings, Stream},
};

/// The service's name in metrics.
const SERVICE: &str = "learning-svc";

/// Upper bounds of delay buckets, in seconds: the ones `emend-client` reports with.
const SECONDS: [f64; 16] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0,
];

const CANDIDATES: Description = Description {
    name: "emend_candidates",
    kind: Type::Gauge,
    unit: "candidates",
    labels: &[
        "kind=entity_alias|invocation_phrase|prohibition",
        "status=pending|awaiting_review|applied|rejected|superseded|withdrawn",
    ],
    help: "Candidates by the kind of what they propose and by their status; every replica shows the same, so take the \
           maximum and not the sum",
};
const PROMOTIONS: Description = Description {
    name: "emend_promotions_total",
    kind: Type::Counter,
    unit: "promotions",
    labels: &[
        "kind=entity_alias|invocation_phrase|prohibition",
        "reason=votes|review|operator|import|revert|retraction|policy",
    ],
    help: "Values that became what nodes answer with, as this replica committed them, by why",
};
const HEAD_REVISION: Description = Description {
    name: "emend_head_revision",
    kind: Type::Gauge,
    unit: "revision",
    labels: &[],
    help: "The newest revision that this replica serves; the greatest of all replicas is the head of the log, and one that \
           stays below it lags. Not there before the replica has loaded the log",
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
    help: "Streams of updates that ended on this replica, by why",
};
const SNAPSHOTS: Description = Description {
    name: "emend_snapshots_total",
    kind: Type::Counter,
    unit: "snapshots",
    labels: &["reason=no_cursor|foreign_epoch|cursor_ahead|cursor_expired|filter_changed|new_epoch"],
    help: "Snapshots that this replica began to send, by why changes alone would not do",
};
const NODES: Description = Description {
    name: "emend_nodes",
    kind: Type::Gauge,
    unit: "nodes",
    labels: &["state=connected|disconnected"],
    help: "Search nodes of which something was heard within 24 hours, by whether they have a stream open somewhere; every \
           replica shows the same, so take the maximum and not the sum",
};
const BEHIND: Description = Description {
    name: "emend_node_revisions_behind_max",
    kind: Type::Gauge,
    unit: "revisions",
    labels: &[],
    help: "How many revisions the node that is furthest behind had not applied when it last reported, of the nodes with a \
           stream open on this replica; nodes report every 10 seconds while something changes for them, so some are always \
           missing where much is written",
};
const APPLIED_LAG: Description = Description {
    name: "emend_applied_lag_seconds",
    kind: Type::Histogram,
    unit: "seconds",
    labels: &[],
    help: "From a change's commit to the moment when a node had applied it, by the clocks of the database and of the node; \
           once for every node and change, as nodes report to this replica",
};
const TIME_TO_EFFECT: Description = Description {
    name: "emend_time_to_effect_seconds",
    kind: Type::Histogram,
    unit: "seconds",
    labels: &[],
    help: "From the receipt of the feedback that caused a change to the moment when a node had applied that, by the clocks of \
           the feedback database and of the node; once for every node and change, as nodes report to this replica, with ids \
           of sampled traces as exemplars",
};

/// Counts values that came to apply. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Promotions(Family<Labels<2>, Counter>);

impl Promotions {
    /// Counts what was committed.
    pub fn count(&self, promoted: &[(Kind, Cause)]) {
        for (kind, cause) in promoted {
            self.of(*kind, *cause).inc();
        }
    }

    fn of(&self, kind: Kind, cause: Cause) -> Counter {
        let reason = match cause {
            Cause::Votes => "votes",
            Cause::Review => "review",
            Cause::Operator => "operator",
            Cause::Import => "import",
            Cause::Revert => "revert",
            Cause::Retraction => "retraction",
            Cause::Policy => "policy",
        };
        self.0
            .get_or_create_owned(&[("kind", kind.name()), ("reason", reason)])
    }
}

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
#[derive(Debug, Clone)]
pub struct StreamMetrics {
    ended: Family<Labels<1>, Counter>,
    snapshots: Family<Labels<1>, Counter>,
    applied_lag: Histogram,
    time_to_effect: HistogramWithExemplars<TraceLabel>,
}

/// A trace id, as exemplars show it.
type TraceLabel = [(&'static str, String); 1];

impl Default for StreamMetrics {
    fn default() -> Self {
        Self {
            ended: Family::default(),
            snapshots: Family::default(),
            applied_lag: Histogram::new(SECONDS),
            time_to_effect: HistogramWithExemplars::new(SECONDS.into_iter()),
        }
    }
}

impl StreamMetrics {
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

    /// Records the delays in a node's report, which has been validated.
    pub fn reported(&self, report: &ReportStatusRequest) {
        if let Some(lags) = &report.delays {
            delays::each(lags, &[], |seconds, _| self.applied_lag.observe(seconds));
        }
        if let Some(effects) = &report.effect_delays {
            delays::each(effects, &report.effect_traces, |seconds, trace_id| {
                let exemplar = trace_id.map(|trace_id| [("trace_id", trace_id.to_owned())]);
                self.time_to_effect.observe(seconds, exemplar, None);
            });
        }
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

const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::AwaitingReview => "awaiting_review",
        Status::Applied => "applied",
        Status::Rejected => "rejected",
        Status::Superseded => "superseded",
        Status::Withdrawn => "withdrawn",
    }
}

const STATUSES: [Status; 6] = [
    Status::Pending,
    Status::AwaitingReview,
    Status::Applied,
    Status::Rejected,
    Status::Superseded,
    Status::Withdrawn,
];

/// This service's metrics. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct LearningMetrics {
    /// Counts values that came to apply.
    pub promotions: Promotions,
    /// The update stream's metrics.
    pub stream: StreamMetrics,
    candidates: Family<Labels<2>, Gauge>,
    nodes: Family<Labels<1>, Gauge>,
    /// Hidden until the first state is loaded: starting at 0 would look like growth.
    head: LateGauge,
    subscribers: Gauge,
    behind: Gauge,
}

impl LearningMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        // Counters exist from the start, so that their first increment shows.
        for kind in Kind::ALL {
            for cause in Cause::ALL {
                own.promotions.of(kind, cause);
            }
        }
        for why in StreamEnd::ALL {
            drop(own.stream.ended.get_or_create(&[("reason", why.name())]));
        }
        for number in 1.. {
            let Ok(why) = SnapshotReason::try_from(number) else {
                break;
            };
            let labels = [("reason", snapshot_name(why))];
            drop(own.stream.snapshots.get_or_create(&labels));
        }
        metrics.name_service(SERVICE, env!("CARGO_PKG_VERSION"));
        metrics.register(CANDIDATES, own.candidates.clone());
        metrics.register(PROMOTIONS, own.promotions.0.clone());
        metrics.register(STREAMS_ENDED, own.stream.ended.clone());
        metrics.register(SNAPSHOTS, own.stream.snapshots.clone());
        metrics.register(NODES, own.nodes.clone());
        metrics.register(APPLIED_LAG, own.stream.applied_lag.clone());
        metrics.register(TIME_TO_EFFECT, own.stream.time_to_effect.clone());
        metrics.register(HEAD_REVISION, own.head.clone());
        metrics.register(SUBSCRIBERS, own.subscribers.clone());
        metrics.register(BEHIND, own.behind.clone());
        own
    }

    /// Reports this replica's state at every scrape.
    pub fn watch(&self, config: &Config, readiness: &Readiness, stream: &Stream, store: &Arc<dyn Store>) {
        let (metrics, store) = (&config.metrics, Arc::clone(store));
        emend_store::metrics::watch_connections(metrics, SERVICE, move || store.connections());
        emend_serve::metrics::watch_readiness(metrics, SERVICE, readiness.clone(), SERVICE_NAME);
        emend_serve::metrics::watch_files(
            &metrics,
            SERVICE,
            config.authenticator.as_ref(),
            config.tls.as_ref(),
        );
        let (own, stream) = (self.clone(), stream.clone());
        metrics.refresh(move || {
            own.subscribers.set(signed(stream.subscribers()));
            // Nothing to report before the first state is loaded.
            if let Ok(state) = stream.state() {
                own.head.set(state.revision());
                own.behind.set(stream.nodes().furthest_behind(&state));
            }
        });
    }

    /// Shows no counts of nodes until the next sample. Alerts take the maximum of all replicas, and an outdated count would
    /// hide that nodes were lost.
    pub fn forget_nodes(&self) {
        self.nodes.clear();
    }

    /// Samples what is in the database.
    pub async fn sample(&self, store: &dyn Store, settings: &Settings) -> Result<(), StoreError> {
        let NodeCounts {
            connected,
            disconnected,
        } = store
            .count_nodes(settings.node_connected_within, NODES_SEEN_WITHIN)
            .await?;
        for (state, count) in [("connected", connected), ("disconnected", disconnected)] {
            self.nodes.get_or_create(&[("state", state)]).set(signed(count));
        }
        let counted = store.count_candidates().await?;
        for kind in Kind::ALL {
            for status in STATUSES {
                let found = counted.iter().find(|(of, is, _)| (*of, *is) == (kind, status));
                let labels = [("kind", kind.name()), ("status", status_name(status))];
                self.candidates
                    .get_or_create(&labels)
                    .set(signed(found.map_or(0, |(.., count)| *count)));
            }
        }
        Ok(())
    }
}

fn signed(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_which_something_ends_or_begins_is_shown_before_it_has_happened() {
        let metrics = Metrics::new();
        let own = LearningMetrics::register(&metrics);
        own.promotions.count(&[(Kind::EntityAlias, Cause::Votes)]);
        own.stream.ended(StreamEnd::Stalled);
        own.stream.snapshot(SnapshotReason::NewEpoch);
        let rendered = metrics.render();
        for line in [
            "emend_promotions_total{kind=\"entity_alias\",reason=\"votes\"} 1",
            "emend_promotions_total{kind=\"prohibition\",reason=\"policy\"} 0",
            "emend_streams_ended_total{reason=\"stalled\"} 1",
            "emend_streams_ended_total{reason=\"client_gone\"} 0",
            "emend_snapshots_total{reason=\"new_epoch\"} 1",
            "emend_snapshots_total{reason=\"no_cursor\"} 0",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} in\n{rendered}"
            );
        }
        assert!(!rendered.contains("unspecified"));
        assert!(!rendered.contains("\nemend_head_revision "), "no log is loaded");
        own.head.set(0);
        assert!(metrics.render().contains("\nemend_head_revision 0\n"));
    }

    #[test]
    fn what_nodes_report_is_shown_in_seconds_and_with_the_traces_that_they_name() {
        use emend_proto::learning::v1::{DelayHistogram, EffectTrace};

        let metrics = Metrics::new();
        let own = LearningMetrics::register(&metrics);
        let delays = |counts: &[i64], sum_ms| {
            Some(DelayHistogram {
                bounds_ms: vec![1_000, 5_000],
                counts: counts.into(),
                sum_ms,
            })
        };
        own.stream.reported(&ReportStatusRequest {
            delays: delays(&[3, 0, 0], 600),
            effect_delays: delays(&[2, 1, 0], 4_400),
            effect_traces: vec![EffectTrace {
                delay_ms: 3_000,
                trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
            }],
            ..ReportStatusRequest::default()
        });
        let rendered = metrics.render();
        for line in [
            "emend_applied_lag_seconds_count 3",
            "emend_time_to_effect_seconds_count 3",
            "emend_time_to_effect_seconds_bucket{le=\"1.0\"} 2",
            "emend_time_to_effect_seconds_bucket{le=\"5.0\"} 3 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 3.0",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} in\n{rendered}"
            );
        }
    }
}
