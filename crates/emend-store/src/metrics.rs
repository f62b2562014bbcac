//! A service's database connections, and the errors of its databases.

use emend_base::telemetry::metrics::{Description, Group, Kind, Labels, Metrics};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

use crate::{Connections, Reason};

const CONNECTIONS: Description = Description {
    name: "emend_db_pool_connections",
    kind: Kind::Gauge,
    unit: "connections",
    labels: &["service", "state=idle|used"],
    help: "Connections of this replica to its database",
};
const CONNECTIONS_MAX: Description = Description {
    name: "emend_db_pool_connections_max",
    kind: Kind::Gauge,
    unit: "connections",
    labels: &["service"],
    help: "Maximum number of connections of this replica to its database",
};
const ERRORS: Description = Description {
    name: "emend_db_errors_total",
    kind: Kind::Counter,
    unit: "errors",
    labels: &["reason=conflict|contention|unavailable|full|corrupt|unexpected"],
    help: "Database errors in this process. A conflict with another transaction is retried and needs no action; \
           contention is a use case that was abandoned because its conflicts did not end",
};

/// The connection metrics of all services in a process.
#[derive(Debug, Clone, Default)]
pub struct DatabaseMetrics {
    connections: Family<Labels<2>, Gauge>,
    max: Family<Labels<1>, Gauge>,
}

impl Group for DatabaseMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(CONNECTIONS, self.connections.clone());
        metrics.register(CONNECTIONS_MAX, self.max.clone());
        let errors = Family::<Labels<1>, Counter>::default();
        metrics.register(ERRORS, errors.clone());
        metrics.refresh(move || {
            for reason in Reason::ALL {
                let shown = errors.get_or_create(&[("reason", reason.name())]);
                shown.inc_by(reason.seen().saturating_sub(shown.get()));
            }
        });
    }
}

/// Shows a service's database connections; `connections` is called on each scrape.
pub fn watch_connections(
    metrics: &Metrics,
    service: &'static str,
    connections: impl Fn() -> Connections + Send + Sync + 'static,
) {
    let shown: DatabaseMetrics = metrics.group();
    let gauge = |state| {
        let labels = [("service", service), ("state", state)];
        shown.connections.get_or_create(&labels).clone()
    };
    let (used, idle) = (gauge("used"), gauge("idle"));
    let max = shown.max.get_or_create(&[("service", service)]).clone();
    let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    metrics.refresh(move || {
        let now = connections();
        used.set(signed(now.used));
        idle.set(signed(now.idle));
        max.set(signed(now.max));
    });
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_sampled_when_metrics_are_rendered() {
        let metrics = Metrics::new();
        watch_connections(&metrics, "feedback-svc", || Connections {
            used: 3,
            idle: 1,
            max: 16,
        });
        let rendered = metrics.render();
        for line in [
            "emend_db_pool_connections{service=\"feedback-svc\",state=\"used\"} 3",
            "emend_db_pool_connections{service=\"feedback-svc\",state=\"idle\"} 1",
            "emend_db_pool_connections_max{service=\"feedback-svc\"} 16",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} in\n{rendered}"
            );
        }
    }

    #[test]
    fn error_counts_start_with_the_process_and_never_decrease() {
        let metrics = Metrics::new();
        let _: DatabaseMetrics = metrics.group();
        metrics.render();
        let _ = crate::StoreError::from(sqlx::Error::PoolTimedOut);
        let rendered = metrics.render();
        let shown = rendered
            .lines()
            .find_map(|line| line.strip_prefix("emend_db_errors_total{reason=\"unavailable\"} "));
        let shown: u64 = shown.unwrap().parse().unwrap();
        assert!((1..=Reason::Unavailable.seen()).contains(&shown));
    }
}
