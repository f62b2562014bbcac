//! What is counted and measured, in Prometheus' format.
//!
//! There is one [`Metrics`] per process, whatever services run in it. Each registers its own there, with a
//! [`Description`] from which the reference in docs/metrics.md is made. Gauges that need a database query or a
//! file of the operator's are sampled by workers ([`sampler`](super::sampler)), never on a scrape; those that only read
//! memory are refreshed on the scrape. Labels take few values, all known beforehand.

mod certificates;
pub mod plain_text;
mod process;

use std::{
    any::Any,
    fmt,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::{
    encoding::text,
    metrics::{family::Family, gauge::Gauge},
    registry::{Metric, Registry, Unit},
};

use crate::{reload::Reload, tls::Validity};

/// The content type of OpenMetrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows from the start of the process.
    Counter,
    /// The current value.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl Kind {
    /// Its name in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric's name and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// The name that Prometheus shows: a counter's ends in `_total`, one in seconds or bytes in its unit.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What is counted or measured: `seconds`, `bytes`, `calls`.
    pub unit: &'static str,
    /// The names of its labels, with their values if they are few.
    pub labels: &'static [&'static str],
    /// One sentence, without a full stop.
    pub help: &'static str,
}

impl Description {
    /// The name without the suffixes that the format adds, and the unit that it adds.
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

/// The metric types that services use.
pub mod prometheus {
    use std::{
        fmt,
        sync::{Arc, OnceLock, atomic::AtomicU64},
    };

    use prometheus_client::{
        encoding::{EncodeMetric, MetricEncoder},
        metrics::MetricType,
    };

    pub use prometheus_client::metrics::{
        counter::Counter, exemplar::HistogramWithExemplars, family::Family, gauge::Gauge,
        histogram::Histogram,
    };

    /// A gauge of fractional seconds.
    pub type SecondsGauge = Gauge<f64, AtomicU64>;

    /// A gauge that is hidden until it is first set. Clones share it.
    #[derive(Debug, Clone, Default)]
    pub struct LateGauge(Arc<OnceLock<Gauge>>);

    impl LateGauge {
        /// Sets it; it is shown from now on.
        pub fn set(&self, value: i64) {
            self.0.get_or_init(Gauge::default).set(value);
        }
    }

    impl EncodeMetric for LateGauge {
        fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
            self.0.get().map_or(Ok(()), |gauge| gauge.encode(encoder))
        }

        fn metric_type(&self) -> MetricType {
            MetricType::Gauge
        }
    }
}

/// Labels whose values are known at compile time.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Runs before the metrics are rendered.
type Refresh = Box<dyn Fn() + Send + Sync>;

/// Metrics that a library adds to those of the process, once, whatever services use it there. Clones share them.
pub trait Group: Clone + Default + Send + Sync + 'static {
    /// Registers them.
    fn register(&self, metrics: &Metrics);
}

/// The metrics of one process. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    registered: Mutex<Registered>,
    groups: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
    build: Family<Labels<2>, Gauge>,
    installations: Family<Vec<(&'static str, String)>, Gauge>,
    failing: Family<Labels<2>, Gauge>,
    certificates: certificates::Certificates,
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
    help: "Always 1; the labels show which version of which services runs",
};
const INSTALLATION_INFO: Description = Description {
    name: "emend_installation_info",
    kind: Kind::Gauge,
    unit: "",
    labels: &["service", "installation"],
    help: "Always 1; the labels show to which installation the database of each service belongs",
};
const RELOAD_FAILING: Description = Description {
    name: "emend_reload_failing",
    kind: Kind::Gauge,
    unit: "",
    labels: &["service", "files=authentication|tls|trust"],
    help: "1 while the current files can't be used and the previous ones stay in use; the log says why",
};

impl Metrics {
    /// The metrics that every process has.
    pub fn new() -> Self {
        let metrics = Self(Arc::new(Shared {
            registered: Mutex::default(),
            groups: Mutex::default(),
            build: Family::default(),
            installations: Family::default(),
            failing: Family::default(),
            certificates: certificates::Certificates::default(),
        }));
        metrics.register(BUILD_INFO, metrics.0.build.clone());
        metrics.register(INSTALLATION_INFO, metrics.0.installations.clone());
        metrics.register(RELOAD_FAILING, metrics.0.failing.clone());
        metrics.0.certificates.register(&metrics);
        process::register(&metrics);
        metrics
    }

    /// Records that a service of this version runs here.
    pub fn name_service(&self, service: &'static str, version: &'static str) {
        let labels = [("version", version), ("service", service)];
        self.0.build.get_or_create(&labels).set(1);
    }

    /// Records to which installation the database of a service belongs.
    pub fn name_installation(&self, service: &'static str, installation: &str) {
        let labels = vec![
            ("service", service.to_owned()),
            ("installation", installation.to_owned()),
        ];
        self.0.installations.get_or_create(&labels).set(1);
    }

    /// A library's metrics in this process, registered when they are first asked for.
    pub fn group<G: Group>(&self) -> G {
        let mut groups = self.0.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.iter().find_map(|group| group.downcast_ref::<G>()) {
            return group.clone();
        }
        let group = G::default();
        group.register(self);
        groups.push(Box::new(group.clone()));
        group
    }

    /// Shows whether the files of a service can be used as they are now, by their name in the metric's labels; files that it
    /// does not have never fail.
    pub fn watch_files(&self, service: &'static str, name: &'static str, files: Option<Arc<dyn Reload>>) {
        let labels = [("service", service), ("files", name)];
        let shown = self.0.failing.get_or_create_owned(&labels);
        if let Some(files) = files {
            self.refresh(move || {
                shown.set(files.is_failing().into());
            });
        }
    }

    /// Shows when the certificate with which a service serves is valid.
    pub fn watch_server_certificate(
        &self,
        service: &'static str,
        validity: impl Fn() -> Option<Validity> + Send + Sync + 'static,
    ) {
        let certificates = self.0.certificates.clone();
        self.refresh(move || certificates.show(service, "server", validity()));
    }

    /// Registers a metric.
    ///
    /// # Panics
    /// If the name is taken: two instances of one service can't share metrics.
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

    /// Runs `refresh` before each rendering. It must be quick and must not block.
    pub fn refresh(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.registered().refreshes.push(Box::new(refresh));
    }

    /// The registered metrics, in order of registration.
    pub fn descriptions(&self) -> Vec<Description> {
        self.registered().descriptions.clone()
    }

    /// All metrics as they are now, in OpenMetrics' text format.
    pub fn render(&self) -> String {
        let registered = self.registered();
        for refresh in &registered.refreshes {
            refresh();
        }
        let mut rendered = String::new();
        // Writing to a String can't fail; what can't be encoded is left out.
        if let Err(error) = text::encode(&mut rendered, &registered.registry) {
            tracing::error!(%error, "can't write the metrics");
        }
        rendered
    }

    /// Descriptions as a Markdown table.
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
            // Writing to a String can't fail.
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
    fn refreshes_run_on_each_rendering() {
        let metrics = Metrics::new();
        let gauge = Gauge::<i64>::default();
        metrics.register(described("emend_things", Kind::Gauge), gauge.clone());
        metrics.refresh(move || {
            gauge.inc();
        });
        assert!(metrics.render().contains("\nemend_things 1\n"));
        assert!(metrics.render().contains("\nemend_things 2\n"));
    }

    #[derive(Clone, Default)]
    struct Things(Gauge);

    impl Group for Things {
        fn register(&self, metrics: &Metrics) {
            metrics.register(described("emend_things", Kind::Gauge), self.0.clone());
        }
    }

    #[test]
    fn a_group_is_registered_once_and_shared() {
        let metrics = Metrics::new();
        metrics.group::<Things>().0.inc();
        metrics.clone().group::<Things>().0.inc();
        assert!(metrics.render().contains("\nemend_things 2\n"));
    }

    struct Failing;

    impl Reload for Failing {
        fn reload(&self, _: crate::reload::When) -> bool {
            false
        }

        fn is_failing(&self) -> bool {
            true
        }
    }

    #[test]
    fn every_process_shows_its_version_its_files_and_its_own_use() {
        let metrics = Metrics::new();
        metrics.name_service("feedback-svc", "1.2.3");
        metrics.name_installation("feedback-svc", "0199");
        metrics.watch_files("feedback-svc", "tls", Some(Arc::new(Failing)));
        metrics.watch_files("feedback-svc", "authentication", None);
        metrics.watch_server_certificate("feedback-svc", || {
            Some(Validity {
                not_before: 1,
                not_after: 2,
            })
        });
        let rendered = metrics.render();
        for line in [
            "emend_build_info{version=\"1.2.3\",service=\"feedback-svc\"} 1",
            "emend_installation_info{service=\"feedback-svc\",installation=\"0199\"} 1",
            "emend_reload_failing{service=\"feedback-svc\",files=\"tls\"} 1",
            "emend_reload_failing{service=\"feedback-svc\",files=\"authentication\"} 0",
        ] {
            assert!(
                rendered.lines().any(|shown| shown == line),
                "{line} in\n{rendered}"
            );
        }
        for Description { name, kind, .. } in metrics.descriptions() {
            let family = name.strip_suffix("_total").unwrap_or(name);
            let declared = format!("# TYPE {family} {}\n", kind.name());
            assert!(rendered.contains(&declared), "{declared} in\n{rendered}");
        }
    }
}
