//! What there is to compute of what follows from changed evidence; which trust files are in force, and whether the mounted one can
//! be used.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind, Labels,
        prometheus::{Family, Gauge},
    },
};
use emend_core::Namespace;
use learning_store::evidence::Backlog;

/// Of each more are not counted.
pub(crate) const COUNTED: u32 = 100_000;

const BACKLOG: Description = Description {
    name: "emend_evidence_backlog",
    kind: Kind::Gauge,
    unit: "items",
    labels: &["of=names|claims|domains"],
    help: "What is to be computed anew after evidence or rules changed: the levels of hosts below names, statuses of claims, \
           verified rules of domains, of each 100,000 at most; every replica shows the same, so take the maximum and not the sum",
};
const APPLIED: Description = Description {
    name: "emend_trust_file_applied_version",
    kind: Kind::Gauge,
    unit: "",
    labels: &["application"],
    help: "The version of the trust file that is in force in a namespace (application: Prometheus has a namespace of its own), of \
           the first 1,000 namespaces that have one; every replica shows the same, so take the maximum and not the sum",
};
const ERRORS: Description = Description {
    name: "emend_trust_file_errors",
    kind: Kind::Gauge,
    unit: "errors",
    labels: &[],
    help: "How many errors the trust file that is mounted on this replica has as it is now; 0 where it is in force, or there is \
           none",
};

/// Namespaces shown at most.
pub(crate) const MAX_SHOWN: u32 = 1_000;

/// The metrics of evidence. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct EvidenceMetrics {
    backlog: Family<Labels<1>, Gauge>,
    applied: Family<Vec<(&'static str, String)>, Gauge>,
    /// How many errors the mounted trust file has.
    pub trust_file_errors: Gauge,
}

impl EvidenceMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(BACKLOG, own.backlog.clone());
        metrics.register(APPLIED, own.applied.clone());
        metrics.register(ERRORS, own.trust_file_errors.clone());
        own
    }

    /// Shows which version is in force in each of these namespaces.
    pub fn show_trust_files(&self, versions: &[(Namespace, u64)]) {
        for (namespace, version) in versions {
            self.applied
                .get_or_create(&vec![("application", namespace.to_string())])
                .set(i64::try_from(*version).unwrap_or(i64::MAX));
        }
    }

    /// Shows how much is to be computed.
    pub fn show_backlog(&self, backlog: Backlog) {
        for (waiting_for, count) in [
            ("names", backlog.names),
            ("claims", backlog.claims),
            ("domains", backlog.domains),
        ] {
            self.backlog
                .get_or_create(&[("of", waiting_for)])
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
