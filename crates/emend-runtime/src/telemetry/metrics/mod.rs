//! What is counted and measured, as Prometheus reads it.
//!
//! There is one [`Metrics`] in a process, whatever services run in it. Each of them registers its own there, with a
//! [`Description`] from which the reference in docs/metrics.md is made. What costs a look at a database is sampled by
//! workers ([`sampler`](super::sampler)), never when somebody asks; what costs a look at memory is looked at then. Labels
//! take few values, all of them known beforehand. It must know nothing of what the services do.

#[cfg(feature = "database")]
mod database;
mod process;
mod rpc;

use std::{
    fmt,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::{
    encoding::text,
    metrics::{family::Family, gauge::Gauge},
    registry::{Metric, Registry, Unit},
};

pub(crate) use self::rpc::{Call, Connections, OpenConnection};
pub use self::rpc::{Calls, RpcMetrics};

/// The type under which OpenMetrics travels.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows from the start of the process.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl Kind {
    /// As it is called in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What a metric is called and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// As Prometheus shows it: a counter's ends in `_total`, one in seconds or bytes says so at its end.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// What is counted or measured: `seconds`, `bytes`, `calls`.
    pub unit: &'static str,
    /// The names of its labels, with their values where those are few.
    pub labels: &'static [&'static str],
    /// One sentence, without a full stop.
    pub help: &'static str,
}

impl Description {
    /// The name without what the format adds to it, and the unit that the format adds.
    fn in_registry(&self) -> (&'static str, Option<Unit>) {
        let stem = match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        };
        if let Some(stem) = stem.strip_suffix("_seconds") {
            (stem, Some(Unit::Seconds))
        } else if let Some(stem) = stem.strip_suffix("_bytes") {
            (stem, Some(Unit::Bytes))
        } else {
            (stem, None)
        }
    }
}

/// The kinds of numbers that services count with.
pub mod prometheus {
    use std::sync::atomic::AtomicU64;

    pub use prometheus_client::metrics::{
        counter::Counter, exemplar::HistogramWithExemplars, family::Family, gauge::Gauge,
        histogram::Histogram,
    };

    /// A gauge of seconds and their fractions.
    pub type SecondsGauge = Gauge<f64, AtomicU64>;
}

/// Labels whose values are known when this is compiled.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What is done before the numbers are shown.
type Refresh = Box<dyn Fn() + Send + Sync>;

/// The metrics of one process. Clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    registered: Mutex<Registered>,
    rpc: RpcMetrics,
    build: Family<Labels<2>, Gauge>,
    #[cfg(feature = "database")]
    database: database::DatabaseMetrics,
}

#[derive(Default)]
struct Registered {
    registry: Registry,
    descriptions: Vec<Description>,
    refreshes: Vec<Refresh>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

const BUILD_INFO: Description = Description {
    name: "emend_build_info",
    kind: Kind::Gauge,
    unit: "",
    labels: &["version", "service"],
    help: "Always 1; the labels tell which version of which services runs here",
};

impl Metrics {
    /// Those that every process has.
    pub fn new() -> Self {
        let metrics = Self(Arc::new(Shared {
            registered: Mutex::default(),
            rpc: RpcMetrics::default(),
            build: Family::default(),
            #[cfg(feature = "database")]
            database: database::DatabaseMetrics::default(),
        }));
        metrics.register(BUILD_INFO, metrics.0.build.clone());
        metrics.0.rpc.register(&metrics);
        #[cfg(feature = "database")]
        metrics.0.database.register(&metrics);
        process::register(&metrics);
        metrics
    }

    /// Says that a service of this version runs here.
    pub fn name_service(&self, service: &'static str, version: &'static str) {
        let labels = [("version", version), ("service", service)];
        self.0.build.get_or_create(&labels).set(1);
    }

    /// Adds a metric.
    ///
    /// # Panics
    /// If there is one of that name: two of the same service can't share metrics.
    pub fn register(&self, description: Description, metric: impl Metric) {
        let mut registered = self.registered();
        let taken = registered
            .descriptions
            .iter()
            .any(|known| known.name == description.name);
        assert!(
            !taken,
            "invariant: {} is registered once in a process",
            description.name
        );
        let (name, unit) = description.in_registry();
        match unit {
            Some(unit) => registered
                .registry
                .register_with_unit(name, description.help, unit, metric),
            None => registered.registry.register(name, description.help, metric),
        }
        registered.descriptions.push(description);
    }

    /// Does something each time before the numbers are shown. It must be quick, and must not wait.
    pub fn refresh(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.registered().refreshes.push(Box::new(refresh));
    }

    /// What a server counts.
    pub fn rpc(&self) -> &RpcMetrics {
        &self.0.rpc
    }

    /// What is registered, in that order.
    pub fn descriptions(&self) -> Vec<Description> {
        self.registered().descriptions.clone()
    }

    /// All of it as it is now, in OpenMetrics' text format.
    pub fn render(&self) -> String {
        let registered = self.registered();
        for refresh in &registered.refreshes {
            refresh();
        }
        let mut rendered = String::new();
        // Writing to a string does not fail; what can't be encoded is left out.
        if let Err(error) = text::encode(&mut rendered, &registered.registry) {
            tracing::error!(%error, "can't write the metrics");
        }
        rendered
    }

    /// Descriptions as a table for people.
    pub fn table(descriptions: &[Description]) -> String {
        let mut table = String::from("| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n");
        for Description {
            name,
            kind,
            unit,
            labels,
            help,
        } in descriptions
        {
            // A bar would end the cell.
            let labels = labels
                .iter()
                .map(|label| format!("`{}`", label.replace('|', " ")));
            let labels: Vec<_> = labels.collect();
            let (kind, labels) = (kind.name(), labels.join(", "));
            // Writing to a string does not fail.
            let _ = writeln!(table, "| `{name}` | {kind} | {unit} | {labels} | {help}. |");
        }
        table
    }

    fn registered(&self) -> MutexGuard<'_, Registered> {
        self.0.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::{counter::Counter, histogram::Histogram};

    use super::*;

    fn described(name: &'static str, kind: Kind) -> Description {
        Description {
            name,
            kind,
            unit: "things",
            labels: &["reason"],
            help: "How many",
        }
    }

    #[test]
    fn metrics_are_shown_under_exactly_the_name_by_which_they_are_described() {
        let metrics = Metrics::new();
        let counter = Counter::<u64>::default();
        counter.inc_by(3);
        metrics.register(described("emend_things_total", Kind::Counter), counter);
        let seconds = Counter::<f64>::default();
        metrics.register(described("emend_work_seconds_total", Kind::Counter), seconds);
        let age = Gauge::<i64>::default();
        metrics.register(described("emend_age_seconds", Kind::Gauge), age);
        let lag = Histogram::new([1.0, 5.0]);
        lag.observe(2.0);
        metrics.register(described("emend_lag_seconds", Kind::Histogram), lag);

        let rendered = metrics.render();
        for line in [
            "emend_things_total 3",
            "emend_work_seconds_total 0.0",
            "emend_age_seconds 0",
            "emend_lag_seconds_bucket{le=\"5.0\"} 1",
            "emend_lag_seconds_count 1",
            "# UNIT emend_lag_seconds seconds",
            "# HELP emend_lag_seconds How many.",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} in\n{rendered}"
            );
        }
        assert!(rendered.ends_with("# EOF\n"));
    }

    #[test]
    fn what_costs_a_look_at_memory_is_looked_at_when_somebody_asks() {
        let metrics = Metrics::new();
        let gauge = Gauge::<i64>::default();
        metrics.register(described("emend_things", Kind::Gauge), gauge.clone());
        metrics.refresh(move || {
            gauge.inc();
        });
        assert!(metrics.render().contains("\nemend_things 1\n"));
        assert!(metrics.render().contains("\nemend_things 2\n"));
    }

    #[test]
    fn every_process_tells_its_version_its_calls_its_database_and_its_own_use() {
        let metrics = Metrics::new();
        metrics.name_service("feedback-svc", "1.2.3");
        metrics.rpc().calls(&[]).begin("/").ended(tonic::Code::Ok);
        #[cfg(feature = "database")]
        metrics.watch_connections("feedback-svc", crate::store::Connections::default);
        let rendered = metrics.render();
        assert!(
            rendered.contains("emend_build_info{version=\"1.2.3\",service=\"feedback-svc\"} 1"),
            "{rendered}"
        );
        for Description { name, kind, .. } in metrics.descriptions() {
            let family = name.strip_suffix("_total").unwrap_or(name);
            let declared = format!("# TYPE {family} {}\n", kind.name());
            assert!(rendered.contains(&declared), "{declared} in\n{rendered}");
        }
    }
}
