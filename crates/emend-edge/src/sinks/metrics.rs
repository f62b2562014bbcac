//! What is counted and measured of sinks.

use std::time::Duration;

use emend_base::telemetry::metrics::{
    Description, Group, Kind, Metrics,
    prometheus::{Counter, Family, Gauge, SecondsGauge},
};

use super::error::Problem;

const BEHIND: Description = Description {
    name: "emend_sink_behind_revisions",
    kind: Kind::Gauge,
    unit: "revisions",
    labels: &["sink"],
    help: "How many revisions the sink has received that its engine was not confirmed to answer by",
};
const UNCONFIRMED: Description = Description {
    name: "emend_sink_unconfirmed_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["sink"],
    help: "For how long there has been such a revision; 0 while there is none",
};
const WAITS: Description = Description {
    name: "emend_sink_waits_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["sink"],
    help: "How long the sink waits until it may write, by its pace or its window; 0 while it does not wait",
};
const DRIFTS: Description = Description {
    name: "emend_sink_drifts_total",
    kind: Kind::Counter,
    unit: "checks",
    labels: &["sink"],
    help: "How often a check found that somebody else had changed what the sink keeps",
};
const REFUSED: Description = Description {
    name: "emend_sink_refused_resources",
    kind: Kind::Gauge,
    unit: "resources",
    labels: &["sink"],
    help: "Resources that the engine refuses; emend nodes shows why",
};
const WRITES: Description = Description {
    name: "emend_sink_writes_total",
    kind: Kind::Counter,
    unit: "writes",
    labels: &["sink"],
    help: "How often a set was written and loaded, or a revision delivered",
};
const PROBLEM: Description = Description {
    name: "emend_sink_problem",
    kind: Kind::Gauge,
    unit: "",
    labels: &["sink", "problem=away|refused|drift"],
    help: "1 while the engine can't be reached, refuses what it is sent, or keeps what somebody else changed; the log says more",
};

type Of<M> = Family<Vec<(&'static str, String)>, M>;

/// The metrics of all sinks of a process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SinkMetrics {
    behind: Of<Gauge>,
    unconfirmed: Of<SecondsGauge>,
    waits: Of<SecondsGauge>,
    drifts: Of<Counter>,
    refused: Of<Gauge>,
    writes: Of<Counter>,
    problem: Of<Gauge>,
}

impl SinkMetrics {
    /// Those of a process, registered once.
    pub fn of_process(metrics: &Metrics) -> Self {
        metrics.group()
    }

    /// Those of one sink.
    pub(super) fn of(&self, sink: &str) -> Gauges {
        let label = || vec![("sink", sink.to_owned())];
        let gauges = Gauges {
            behind: self.behind.get_or_create_owned(&label()),
            unconfirmed: self.unconfirmed.get_or_create_owned(&label()),
            waits: self.waits.get_or_create_owned(&label()),
            drifts: self.drifts.get_or_create_owned(&label()),
            refused: self.refused.get_or_create_owned(&label()),
            writes: self.writes.get_or_create_owned(&label()),
            problems: Problem::ALL.map(|problem| {
                let labels = vec![("sink", sink.to_owned()), ("problem", problem.label().to_owned())];
                (problem, self.problem.get_or_create_owned(&labels))
            }),
        };
        gauges.show(None);
        gauges
    }
}

impl Group for SinkMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(BEHIND, self.behind.clone());
        metrics.register(UNCONFIRMED, self.unconfirmed.clone());
        metrics.register(WAITS, self.waits.clone());
        metrics.register(DRIFTS, self.drifts.clone());
        metrics.register(REFUSED, self.refused.clone());
        metrics.register(WRITES, self.writes.clone());
        metrics.register(PROBLEM, self.problem.clone());
    }
}

/// The metrics of one sink.
#[derive(Debug)]
pub(super) struct Gauges {
    behind: Gauge,
    unconfirmed: SecondsGauge,
    waits: SecondsGauge,
    drifts: Counter,
    refused: Gauge,
    writes: Counter,
    problems: [(Problem, Gauge); 3],
}

impl Gauges {
    /// So many revisions are not confirmed, the first of them since so long.
    pub(super) fn lag(&self, revisions: i64, since: Duration) {
        self.behind.set(revisions);
        self.unconfirmed.set(since.as_secs_f64());
    }

    /// It waits this long until it may write.
    pub(super) fn waits(&self, wait: Duration) {
        self.waits.set(wait.as_secs_f64());
    }

    /// Somebody else changed the set.
    pub(super) fn drifted(&self) {
        self.drifts.inc();
    }

    /// The set was written, or a revision delivered.
    pub(super) fn wrote(&self) {
        self.writes.inc();
    }

    /// So many resources are refused.
    pub(super) fn refuses(&self, resources: usize) {
        self.refused.set(i64::try_from(resources).unwrap_or(i64::MAX));
    }

    /// What is wrong; none: nothing. It does not wait.
    pub(super) fn show(&self, problem: Option<Problem>) {
        self.waits(Duration::ZERO);
        for (known, gauge) in &self.problems {
            gauge.set(i64::from(problem == Some(*known)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_shows_all_that_is_described_from_its_start() {
        let metrics = Metrics::new();
        let gauges = SinkMetrics::of_process(&metrics).of("solr:cards");
        gauges.drifted();
        gauges.show(Some(Problem::Away));
        let shown = metrics.render();
        for line in [
            "emend_sink_behind_revisions{sink=\"solr:cards\"} 0",
            "emend_sink_unconfirmed_seconds{sink=\"solr:cards\"} 0.0",
            "emend_sink_waits_seconds{sink=\"solr:cards\"} 0.0",
            "emend_sink_drifts_total{sink=\"solr:cards\"} 1",
            "emend_sink_refused_resources{sink=\"solr:cards\"} 0",
            "emend_sink_writes_total{sink=\"solr:cards\"} 0",
            "emend_sink_problem{sink=\"solr:cards\",problem=\"away\"} 1",
            "emend_sink_problem{sink=\"solr:cards\",problem=\"drift\"} 0",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line} in\n{shown}");
        }
    }
}
