//! What an edge counts and measures.

use std::{sync::Arc, time::Duration};

use emend_base::telemetry::metrics::{
    Description, Group, Kind, Labels, Metrics,
    prometheus::{Counter, Family, Gauge, Histogram, SecondsGauge},
};
use emend_binding::Node;
use http::StatusCode;

use crate::lookups::{self, Lookup, Visitor};

const REQUESTS: Description = Description {
    name: "emend_edge_requests_total",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["lookup", "outcome=answered|refused|away|failed"],
    help: "Requests for look-ups, however many are in one; away: the edge has no state yet, or not the revision that was waited for",
};
const SECONDS: Description = Description {
    name: "emend_edge_request_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    labels: &["lookup"],
    help: "How long a request took, with the wait for a revision, if it asked for one",
};
const CONNECTED: Description = Description {
    name: "emend_edge_connected",
    kind: Kind::Gauge,
    unit: "",
    labels: &[],
    help: "1 while the edge's stream is open",
};
const REVISION: Description = Description {
    name: "emend_edge_revision",
    kind: Kind::Gauge,
    unit: "revision",
    labels: &[],
    help: "The revision at or below which everything is applied",
};
const AGE: Description = Description {
    name: "emend_edge_age_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &[],
    help: "How long ago the edge was known to hold everything there was; -1 if it never was",
};

/// Bounds of the histogram, in seconds: a look-up should take less than 0.001.
const BOUNDS: [f64; 9] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1.0, 10.0];

/// An edge's metrics in a process. Clones share them.
#[derive(Debug, Clone)]
pub struct EdgeMetrics {
    requests: Family<Labels<2>, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    connected: Gauge,
    revision: Gauge,
    age: SecondsGauge,
}

impl Default for EdgeMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            connected: Gauge::default(),
            revision: Gauge::default(),
            age: SecondsGauge::default(),
        };
        lookups::each(&mut metrics);
        metrics
    }
}

impl Visitor for EdgeMetrics {
    /// Shown from the start, so that a rate has a zero to begin with.
    fn visit<L: Lookup + 'static>(&mut self) {
        let answered = [("lookup", L::NAME), ("outcome", "answered")];
        drop(self.requests.get_or_create(&answered));
        drop(self.seconds.get_or_create(&[("lookup", L::NAME)]));
    }
}

impl Group for EdgeMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(REQUESTS, self.requests.clone());
        metrics.register(SECONDS, self.seconds.clone());
        metrics.register(CONNECTED, self.connected.clone());
        metrics.register(REVISION, self.revision.clone());
        metrics.register(AGE, self.age.clone());
    }
}

impl EdgeMetrics {
    /// Those of this process, registered when they are first asked for.
    pub fn of(metrics: &Metrics) -> Self {
        metrics.group()
    }

    /// The same; they show this node.
    pub(crate) fn showing(metrics: &Metrics, node: &Arc<Node>) -> Self {
        let own = Self::of(metrics);
        let (shown, node) = (own.clone(), Arc::downgrade(node));
        metrics.refresh(move || {
            let Some(Ok(status)) = node.upgrade().map(|node| node.status()) else {
                shown.connected.set(0);
                return;
            };
            shown.connected.set(status.connected.into());
            shown.revision.set(status.revision);
            shown.age.set(status.age_seconds.unwrap_or(-1.0));
        });
        own
    }

    /// A request was answered.
    pub(crate) fn answered(&self, lookup: &'static str, status: StatusCode, took: Duration) {
        let outcome = match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => "away",
            status if status.is_client_error() => "refused",
            status if status.is_server_error() => "failed",
            _ => "answered",
        };
        self.requests
            .get_or_create(&[("lookup", lookup), ("outcome", outcome)])
            .inc();
        self.seconds
            .get_or_create(&[("lookup", lookup)])
            .observe(took.as_secs_f64());
    }
}
