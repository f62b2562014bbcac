//! When the certificates expire by which callers are known, for each principal.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use emend_base::{
    telemetry::metrics::{
        Description, Kind, Metrics,
        prometheus::{Family, Gauge},
    },
    tls::Validity,
};

use crate::{auth::Authenticator, tls::TlsServer};

const NOT_BEFORE: Description = Description {
    name: "emend_client_certificate_not_before_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "principal"],
    help: "Start of the validity of the certificate whose end emend_client_certificate_not_after_timestamp_seconds \
           shows, as Unix time",
};
const NOT_AFTER: Description = Description {
    name: "emend_client_certificate_not_after_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["service", "principal"],
    help: "Expiry of the principal's certificate that expires first, of those on open connections or shown within two \
           hours, as Unix time; only principals of the authentication file have a series",
};

type Labels = Vec<(&'static str, String)>;

/// The validity of each principal's certificate. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientCertificates {
    not_before: Family<Labels, Gauge>,
    not_after: Family<Labels, Gauge>,
}

impl ClientCertificates {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.register(NOT_BEFORE, self.not_before.clone());
        metrics.register(NOT_AFTER, self.not_after.clone());
    }

    /// Shows those that a service is shown, from each scrape to the next.
    pub(super) fn watch(
        &self,
        metrics: &Metrics,
        service: &'static str,
        tls: Arc<TlsServer>,
        authenticator: Arc<Authenticator>,
    ) {
        let (this, shown) = (self.clone(), Mutex::new(BTreeMap::new()));
        metrics.refresh(move || {
            let now = first_to_expire(&authenticator, &tls);
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            this.show(service, &shown, &now);
            *shown = now;
        });
    }

    fn show(
        &self,
        service: &'static str,
        before: &BTreeMap<String, Validity>,
        now: &BTreeMap<String, Validity>,
    ) {
        let labels =
            |principal: &String| vec![("service", service.to_owned()), ("principal", principal.clone())];
        for (principal, validity) in now {
            self.not_before
                .get_or_create_owned(&labels(principal))
                .set(validity.not_before);
            self.not_after
                .get_or_create_owned(&labels(principal))
                .set(validity.not_after);
        }
        for principal in before.keys().filter(|principal| !now.contains_key(*principal)) {
            self.not_before.remove(&labels(principal));
            self.not_after.remove(&labels(principal));
        }
    }
}

/// Of each principal's certificates the one that expires first.
fn first_to_expire(authenticator: &Authenticator, tls: &TlsServer) -> BTreeMap<String, Validity> {
    let mut first = BTreeMap::<String, Validity>::new();
    for (names, validity) in tls.clients() {
        let Some(principal) = authenticator.name_by_certificate(&names) else {
            continue;
        };
        let kept = first.entry(principal).or_insert(validity);
        if validity.not_after < kept.not_after {
            *kept = validity;
        }
    }
    first
}
