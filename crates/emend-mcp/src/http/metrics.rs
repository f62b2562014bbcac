//! What operators see of assistants over HTTP.

use emend_base::telemetry::metrics::{
    Description, Group, Kind, Labels, Metrics,
    prometheus::{Counter, Family, Gauge},
};

const REQUESTS: Description = Description {
    name: "emend_mcp_requests_total",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["outcome=answered|refused|turned_away|failed"],
    help: "Requests of assistants over HTTP; refused: something in the request is wrong, or its caller may not ask; turned_away: there was no room for its session",
};
const SESSIONS: Description = Description {
    name: "emend_mcp_sessions",
    kind: Kind::Gauge,
    unit: "sessions",
    labels: &[],
    help: "Sessions of assistants that are open; at most `--mcp-max-sessions`",
};
const DISPLACED: Description = Description {
    name: "emend_mcp_sessions_displaced_total",
    kind: Kind::Counter,
    unit: "sessions",
    labels: &[],
    help: "Sessions that were ended because another needed the room",
};
const TURNED_AWAY: Description = Description {
    name: "emend_mcp_turned_away_total",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["table=sessions|watches"],
    help: "Requests of assistants for which there was no room: sessions: for one session more; watches: for following what changes in one namespace more",
};

/// The tables that may be full.
const TABLES: [&str; 2] = ["sessions", "watches"];

/// The metrics of assistants in a process. Clones share them.
#[derive(Debug, Clone)]
pub struct McpMetrics {
    requests: Family<Labels<1>, Counter>,
    sessions: Gauge,
    displaced: Counter,
    turned_away: Family<Labels<1>, Counter>,
}

impl Default for McpMetrics {
    fn default() -> Self {
        let metrics = Self {
            requests: Family::default(),
            sessions: Gauge::default(),
            displaced: Counter::default(),
            turned_away: Family::default(),
        };
        // Shown from the start, so that a rate has a zero to begin with.
        drop(metrics.requests.get_or_create(&[("outcome", "answered")]));
        for table in TABLES {
            drop(metrics.turned_away.get_or_create(&[("table", table)]));
        }
        metrics
    }
}

impl Group for McpMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(REQUESTS, self.requests.clone());
        metrics.register(SESSIONS, self.sessions.clone());
        metrics.register(DISPLACED, self.displaced.clone());
        metrics.register(TURNED_AWAY, self.turned_away.clone());
    }
}

impl McpMetrics {
    /// Those of this process, registered when they are first asked for.
    pub fn of(metrics: &Metrics) -> Self {
        metrics.group()
    }

    /// A request found a table full: `sessions` or `watches`.
    pub fn turned_away(&self, table: &'static str) {
        self.turned_away.get_or_create(&[("table", table)]).inc();
    }

    /// So many sessions are open.
    pub(super) fn sessions(&self, open: usize) {
        self.sessions.set(i64::try_from(open).unwrap_or(i64::MAX));
    }

    /// A session made room for another.
    pub(super) fn displaced(&self) {
        self.displaced.inc();
    }

    /// A request was answered with this status.
    pub(super) fn answered(&self, status: http::StatusCode) {
        let outcome = match status {
            http::StatusCode::TOO_MANY_REQUESTS => "turned_away",
            status if status.is_client_error() => "refused",
            status if status.is_server_error() => "failed",
            _ => "answered",
        };
        self.requests.get_or_create(&[("outcome", outcome)]).inc();
    }
}
