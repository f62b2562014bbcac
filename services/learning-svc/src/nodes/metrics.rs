//! How many nodes there are, and how long changes take to reach them.

mod delays;

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Family, Gauge, Histogram, HistogramWithExemplars},
    },
};
use emend_proto::learning::v1::ReportStatusRequest;
use learning_store::nodes::NodeCounts;

/// Upper bounds of delay buckets, in seconds: the ones `emend-client` reports with.
const SECONDS: [f64; 16] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0,
];

const NODES: Description = Description {
    name: "emend_nodes",
    kind: Type::Gauge,
    unit: "nodes",
    labels: &["state=connected|disconnected"],
    help: "Search nodes heard from within 24 hours, by whether they have a stream open on some replica; every \
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

/// A trace id, as exemplars show it.
type TraceLabel = [(&'static str, String); 1];

/// The metrics of the fleet. Clones share the counts.
#[derive(Debug, Clone)]
pub struct NodeMetrics {
    nodes: Family<Labels<1>, Gauge>,
    behind: Gauge,
    applied_lag: Histogram,
    time_to_effect: HistogramWithExemplars<TraceLabel>,
}

impl Default for NodeMetrics {
    fn default() -> Self {
        Self {
            nodes: Family::default(),
            behind: Gauge::default(),
            applied_lag: Histogram::new(SECONDS),
            time_to_effect: HistogramWithExemplars::new(SECONDS.into_iter()),
        }
    }
}

impl NodeMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(NODES, own.nodes.clone());
        metrics.register(APPLIED_LAG, own.applied_lag.clone());
        metrics.register(TIME_TO_EFFECT, own.time_to_effect.clone());
        metrics.register(BEHIND, own.behind.clone());
        own
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

    /// Shows how many revisions the node that is furthest behind has not applied.
    pub fn show_behind(&self, revisions: i64) {
        self.behind.set(revisions);
    }

    /// Shows how many nodes there are.
    pub fn show_nodes(&self, counts: NodeCounts) {
        for (state, count) in [
            ("connected", counts.connected),
            ("disconnected", counts.disconnected),
        ] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.nodes.get_or_create(&[("state", state)]).set(count);
        }
    }

    /// Shows no counts of nodes until they are counted again. Alerts take the maximum of all replicas, and an outdated
    /// count would hide that nodes were lost.
    pub fn forget_nodes(&self) {
        self.nodes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_delays_are_exported_in_seconds_with_their_traces() {
        use emend_proto::learning::v1::{DelayHistogram, EffectTrace};

        let metrics = Metrics::new();
        let own = NodeMetrics::register(&metrics);
        let delays = |counts: &[i64], sum_ms| {
            Some(DelayHistogram {
                bounds_ms: vec![1_000, 5_000],
                counts: counts.into(),
                sum_ms,
            })
        };
        own.reported(&ReportStatusRequest {
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
