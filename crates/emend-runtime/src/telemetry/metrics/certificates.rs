//! From when until when the process's own certificates are valid.

use std::path::{Path, PathBuf};

use prometheus_client::metrics::{family::Family, gauge::Gauge};

use super::{Description, Kind, Labels, Metrics};
use crate::{
    Lifecycle,
    telemetry::sampler::{INTERVAL, sample_until},
    tls::Validity,
};

const NOT_BEFORE: Description = Description {
    name: "emend_certificate_not_before_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "certificate=server|learning_client"],
    help: "From when the certificate in the service's file is valid, since 1970",
};
const NOT_AFTER: Description = Description {
    name: "emend_certificate_not_after_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "certificate=server|learning_client"],
    help: "When the certificate in the service's file expires, or the first of its intermediates, since 1970; where there is \
           no TLS, there is no such series",
};

/// The validity of each certificate.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    not_before: Family<Labels<2>, Gauge>,
    not_after: Family<Labels<2>, Gauge>,
}

impl Certificates {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.register(NOT_BEFORE, self.not_before.clone());
        metrics.register(NOT_AFTER, self.not_after.clone());
    }

    /// Reads the file. What can't be read is left as it was: whatever uses the file complains.
    fn sample(&self, service: &'static str, certificate: &'static str, file: &Path) {
        if let Ok(validity) = Validity::of(file) {
            let labels = [("service", service), ("certificate", certificate)];
            self.not_before.get_or_create(&labels).set(validity.not_before);
            self.not_after.get_or_create(&labels).set(validity.not_after);
        }
    }
}

impl Metrics {
    /// Shows when a service's certificates expire, each a PEM file by the name it has in metrics: `server` for the one that
    /// it serves with, `learning_client` for the one that it presents to learning-svc. They are sampled until `lifecycle`
    /// stops.
    pub fn watch_certificates(
        &self,
        service: &'static str,
        files: Vec<(&'static str, PathBuf)>,
        lifecycle: &Lifecycle,
    ) {
        if files.is_empty() {
            return;
        }
        let (metrics, soft) = (self.clone(), lifecycle.soft().clone());
        lifecycle.spawn("read when certificates expire", async move {
            sample_until(soft, INTERVAL, || {
                let (metrics, files) = (metrics.clone(), files.clone());
                async move {
                    let read = tokio::task::spawn_blocking(move || {
                        for (certificate, file) in &files {
                            metrics.0.certificates.sample(service, certificate, file);
                        }
                    });
                    if let Err(error) = read.await {
                        tracing::error!(%error, "can't read when certificates expire");
                    }
                }
            })
            .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::{Authority, date_time_ymd};

    #[test]
    fn a_renewed_certificate_is_shown_and_an_unreadable_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("ca");
        let metrics = Metrics::new();
        let shown = |year: i32| {
            metrics
                .0
                .certificates
                .sample("feedback-svc", "server", &directory.path().join("server.pem"));
            let expected = format!(
                "emend_certificate_not_after_timestamp_seconds{{service=\"feedback-svc\",certificate=\"server\"}} {}",
                date_time_ymd(year, 1, 1).unix_timestamp()
            );
            let rendered = metrics.render();
            assert!(
                rendered.lines().any(|line| line == expected),
                "{expected} in\n{rendered}"
            );
        };
        for year in [2030, 2031] {
            let issued = authority.issue_as(1, &["a.example"], |params| {
                params.not_after = date_time_ymd(year, 1, 1);
            });
            issued.write(directory.path(), "server");
            shown(year);
        }
        std::fs::write(directory.path().join("server.pem"), "nothing").unwrap();
        shown(2031);
    }
}
