//! When the certificates of a process's services are valid.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::metrics::{family::Family, gauge::Gauge};

use super::{Description, Kind, Labels, Metrics};
use crate::{
    Lifecycle,
    telemetry::sampler::{INTERVAL, sample_until},
    tls::{TlsError, Validity},
};

const NOT_BEFORE: Description = Description {
    name: "emend_certificate_not_before_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "certificate=server|client"],
    help: "Start of the validity of the certificate whose end emend_certificate_not_after_timestamp_seconds shows, \
           as Unix time",
};
const NOT_AFTER: Description = Description {
    name: "emend_certificate_not_after_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "certificate=server|client"],
    help: "Expiry of the certificate with which the service serves or calls another, or of the first of its \
           intermediates to expire, as Unix time; a certificate that is not configured has no series",
};

/// The validity of each certificate. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Certificates {
    not_before: Family<Labels<2>, Gauge>,
    not_after: Family<Labels<2>, Gauge>,
}

impl Certificates {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.register(NOT_BEFORE, self.not_before.clone());
        metrics.register(NOT_AFTER, self.not_after.clone());
    }

    /// Shows that of a service's `server` or `client` certificate; nothing where it can't be told.
    pub(super) fn show(&self, service: &'static str, certificate: &'static str, validity: Option<Validity>) {
        let labels = [("service", service), ("certificate", certificate)];
        if let Some(validity) = validity {
            self.not_before.get_or_create(&labels).set(validity.not_before);
            self.not_after.get_or_create(&labels).set(validity.not_after);
        } else {
            self.not_before.remove(&labels);
            self.not_after.remove(&labels);
        }
    }
}

/// A client's certificate, which is read again for every connection. Nothing is in force between two.
struct ClientCertificate {
    service: &'static str,
    file: PathBuf,
    /// Why the file could not be read, the last time.
    complaint: Option<TlsError>,
}

impl ClientCertificate {
    /// Shows what is in the file. What can't be read is logged, once for as long as it stays the same, and changes nothing.
    fn sample(&mut self, certificates: &Certificates) {
        match Validity::of(&self.file) {
            Ok(validity) => {
                certificates.show(self.service, "client", Some(validity));
                self.complaint = None;
            }
            Err(error) => {
                if self.complaint.as_ref() != Some(&error) {
                    tracing::warn!(%error, "can't read when the certificate expires");
                    self.complaint = Some(error);
                }
            }
        }
    }
}

impl Metrics {
    /// Shows when a client certificate of a service expires, sampled from its file until `lifecycle` stops.
    pub fn watch_client_certificate(&self, service: &'static str, file: &Path, lifecycle: &Lifecycle) {
        let certificate = ClientCertificate {
            service,
            file: file.to_owned(),
            complaint: None,
        };
        let certificate = Arc::new(Mutex::new(certificate));
        let (certificates, soft) = (self.0.certificates.clone(), lifecycle.soft().clone());
        lifecycle.spawn("read when a certificate expires", async move {
            sample_until(soft, INTERVAL, || {
                let (certificate, certificates) = (Arc::clone(&certificate), certificates.clone());
                let sampling = tokio::task::spawn_blocking(move || {
                    let mut certificate = certificate.lock().unwrap_or_else(PoisonError::into_inner);
                    certificate.sample(&certificates);
                });
                async move {
                    if let Err(error) = sampling.await {
                        tracing::error!(%error, "can't read when a certificate expires");
                    }
                }
            })
            .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::tls::testing::{Authority, date_time_ymd};

    fn write(directory: &TempDir, year: i32) {
        let issued = Authority::new("ca").issue_as(1, &["a.example"], |params| {
            params.not_after = date_time_ymd(year, 1, 1);
        });
        issued.write(directory.path(), "client");
    }

    #[test]
    fn a_renewed_certificate_is_shown_and_an_unreadable_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let metrics = Metrics::new();
        let mut certificate = ClientCertificate {
            service: "feedback-svc",
            file: directory.path().join("client.pem"),
            complaint: None,
        };
        let mut shows = |year: i32| {
            certificate.sample(&metrics.0.certificates);
            let expected = format!(
                "emend_certificate_not_after_timestamp_seconds{{service=\"feedback-svc\",certificate=\"client\"}} {}",
                date_time_ymd(year, 1, 1).unix_timestamp()
            );
            let rendered = metrics.render();
            assert!(
                rendered.lines().any(|line| line == expected),
                "{expected} in\n{rendered}"
            );
            certificate.complaint.is_some()
        };
        for year in [2030, 2031] {
            write(&directory, year);
            assert!(!shows(year));
        }
        std::fs::write(directory.path().join("client.pem"), "nothing").unwrap();
        assert!(shows(2031));
        write(&directory, 2032);
        assert!(!shows(2032));
    }

    #[test]
    fn an_unknown_validity_is_not_shown() {
        let metrics = Metrics::new();
        let validity = Validity {
            not_before: 1,
            not_after: 2,
        };
        metrics
            .0
            .certificates
            .show("learning-svc", "server", Some(validity));
        assert!(
            metrics
                .render()
                .contains("emend_certificate_not_before_timestamp_seconds{")
        );
        metrics.0.certificates.show("learning-svc", "server", None);
        assert!(
            !metrics
                .render()
                .contains("emend_certificate_not_before_timestamp_seconds{")
        );
    }
}
