//! What the console counts and measures.

use std::time::Duration;

use emend_base::telemetry::metrics::{
    Description, Group, Kind, Labels, Metrics,
    prometheus::{Counter, Family, Gauge, Histogram},
};
use http::StatusCode;

use crate::page::Part;

const REQUESTS: Description = Description {
    name: "emend_console_requests_total",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["part", "outcome=answered|sign_in|refused|away|failed"],
    help: "Pages asked for and forms sent, by the part of the console; away: a service could not be reached",
};
const SECONDS: Description = Description {
    name: "emend_console_request_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    labels: &["part"],
    help: "How long a page or a form took, with the calls that it made",
};
const LIVE_PAGES: Description = Description {
    name: "emend_console_live_pages",
    kind: Kind::Gauge,
    unit: "pages",
    labels: &[],
    help: "Open pages that are told what changes; of the tabs of one browser one follows for all",
};
const WATCHES: Description = Description {
    name: "emend_console_watches",
    kind: Kind::Gauge,
    unit: "watches",
    labels: &[],
    help: "Watches at learning-svc: one for each account and namespace whose pages are open",
};
const LIVE_REFUSED: Description = Description {
    name: "emend_console_live_refused_total",
    kind: Kind::Counter,
    unit: "pages",
    labels: &["reason=watches|namespaces"],
    help: "Pages that are not told what changes, because as many accounts, or namespaces of one account, follow as may",
};

/// Bounds of the histogram, in seconds: a page should take less than 0.1.
const BOUNDS: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The console's metrics in a process. Clones share them.
#[derive(Debug, Clone)]
pub struct ConsoleMetrics {
    requests: Family<Labels<2>, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    /// Open pages that follow what changes.
    pub(crate) live_pages: Gauge,
    /// Watches that they share.
    pub(crate) watches: Gauge,
    live_refused: Family<Labels<1>, Counter>,
}

impl Default for ConsoleMetrics {
    fn default() -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            live_pages: Gauge::default(),
            watches: Gauge::default(),
            live_refused: Family::default(),
        };
        // Shown from the start, so that a rate has a zero to begin with.
        for part in Part::ALL {
            let answered = [("part", part.path()), ("outcome", "answered")];
            drop(metrics.requests.get_or_create(&answered));
            drop(metrics.seconds.get_or_create(&[("part", part.path())]));
        }
        for reason in ["watches", "namespaces"] {
            drop(metrics.live_refused.get_or_create(&[("reason", reason)]));
        }
        metrics
    }
}

impl Group for ConsoleMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(REQUESTS, self.requests.clone());
        metrics.register(SECONDS, self.seconds.clone());
        metrics.register(LIVE_PAGES, self.live_pages.clone());
        metrics.register(WATCHES, self.watches.clone());
        metrics.register(LIVE_REFUSED, self.live_refused.clone());
    }
}

impl ConsoleMetrics {
    /// Those of this process, registered when they are first asked for.
    pub fn of(metrics: &Metrics) -> Self {
        metrics.group()
    }

    /// A page was shown, or a form answered.
    pub(crate) fn answered(&self, part: Part, status: StatusCode, took: Duration) {
        let outcome = match status {
            StatusCode::UNAUTHORIZED => "sign_in",
            StatusCode::SERVICE_UNAVAILABLE => "away",
            status if status.is_client_error() => "refused",
            status if status.is_server_error() => "failed",
            _ => "answered",
        };
        self.requests
            .get_or_create(&[("part", part.path()), ("outcome", outcome)])
            .inc();
        self.seconds
            .get_or_create(&[("part", part.path())])
            .observe(took.as_secs_f64());
    }

    /// A page is not told what changes.
    pub(crate) fn live_refused(&self, reason: &'static str) {
        self.live_refused.get_or_create(&[("reason", reason)]).inc();
    }
}
