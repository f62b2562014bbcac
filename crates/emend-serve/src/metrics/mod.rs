//! What a server counts and shows: its calls, its connections, whether its services are ready, and its files.

mod client_certificates;
mod rpc;

use std::sync::Arc;

use emend_base::{
    reload::Reload,
    telemetry::metrics::{
        Description, Group, Kind, Labels, Metrics,
        prometheus::{Family, Gauge},
    },
};

use self::client_certificates::ClientCertificates;
pub(crate) use self::rpc::{Call, Connections, OpenConnection};
pub use self::rpc::{Calls, RpcMetrics};
use crate::{auth::Authenticator, health::Readiness, tls::TlsServer};

const READY: Description = Description {
    name: "emend_ready",
    kind: Kind::Gauge,
    unit: "",
    labels: &["service"],
    help: "1 while this replica of the service is ready, 0 while a check that its readiness depends on fails",
};

/// The metrics of all servers in a process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ServerMetrics {
    rpc: RpcMetrics,
    ready: Family<Labels<1>, Gauge>,
    client_certificates: ClientCertificates,
}

impl Group for ServerMetrics {
    fn register(&self, metrics: &Metrics) {
        metrics.register(READY, self.ready.clone());
        self.rpc.register(metrics);
        self.client_certificates.register(metrics);
    }
}

impl ServerMetrics {
    /// Those of this process.
    pub fn of(metrics: &Metrics) -> Self {
        metrics.group()
    }

    /// What servers count.
    pub fn rpc(&self) -> &RpcMetrics {
        &self.rpc
    }
}

/// Shows whether a service is ready; `name` is its name in health checks.
pub fn watch_readiness(metrics: &Metrics, service: &'static str, readiness: Readiness, name: &'static str) {
    let shown = ServerMetrics::of(metrics)
        .ready
        .get_or_create_owned(&[("service", service)]);
    metrics.refresh(move || {
        shown.set(readiness.is_ready(name).into());
    });
}

/// Shows whether a service's reloaded files can be used as they are now, when the certificate in force expires, and
/// when those of its callers do; files that it does not have never fail.
pub fn watch_files(
    metrics: &Metrics,
    service: &'static str,
    authenticator: Option<&Arc<Authenticator>>,
    tls: Option<&Arc<TlsServer>>,
) {
    let authentication = authenticator.map(|files| Arc::clone(files) as Arc<dyn Reload>);
    metrics.watch_files(service, "authentication", authentication);
    if let Some((tls, authenticator)) = tls.zip(authenticator) {
        ServerMetrics::of(metrics).client_certificates.watch(
            metrics,
            service,
            Arc::clone(tls),
            Arc::clone(authenticator),
        );
    }
    if let Some(tls) = tls.map(Arc::clone) {
        metrics.watch_server_certificate(service, move || tls.validity());
    }
    metrics.watch_files(
        service,
        "tls",
        tls.map(|files| Arc::clone(files) as Arc<dyn Reload>),
    );
}

#[cfg(test)]
mod tests {
    use emend_base::reload::Reload as _;

    use super::*;
    use crate::{library::descriptors, methods::Methods};

    #[test]
    fn a_server_shows_its_calls_its_readiness_and_its_files() {
        let metrics = Metrics::new();
        ServerMetrics::of(&metrics)
            .rpc()
            .calls(&Methods::of(descriptors()), &[])
            .begin("/")
            .ended(tonic::Code::Ok);
        let readiness = Readiness::new();
        readiness.register("a.Service", &["database"]);
        watch_readiness(&metrics, "library", readiness.clone(), "a.Service");
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write(
            "[[principals]]\nname = \"x\"\ncertificates = [\"x\"]\ngrants = [{ roles = [\"admin\"], namespaces = \"*\" }]\n",
        );
        let authenticator = Arc::new(Authenticator::load(file.path()).unwrap());
        watch_files(&metrics, "library", Some(&authenticator), None);
        let expected = |ready: i32, failing: i32| {
            let rendered = metrics.render();
            for line in [
                format!("emend_ready{{service=\"library\"}} {ready}"),
                format!("emend_reload_failing{{service=\"library\",files=\"authentication\"}} {failing}"),
            ] {
                assert!(
                    rendered.lines().any(|expected| expected == line),
                    "{line} in\n{rendered}"
                );
            }
        };
        expected(0, 0);
        readiness.set("database", true);
        write("not a table");
        assert!(!authenticator.reload_if_changed());
        expected(1, 1);
        let rendered = metrics.render();
        let others = Metrics::new().descriptions().len();
        let own = metrics.descriptions().into_iter().skip(others);
        // Without TLS no client has a certificate.
        let shown = own.filter(|metric| !metric.labels.contains(&"principal"));
        for Description { name, kind, .. } in shown {
            let family = name.strip_suffix("_total").unwrap_or(name);
            let declared = format!("# TYPE {family} {}\n", kind.name());
            assert!(rendered.contains(&declared), "{declared} in\n{rendered}");
        }
    }
}
