//! How much is to be computed of what follows from changed evidence.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Family, Gauge},
    },
};

use crate::evidence::store::Backlog;

/// Of each more are not counted.
pub(crate) const COUNTED: u32 = 100_000;

const BACKLOG: Description = Description {
    name: "emend_evidence_backlog",
    kind: Type::Gauge,
    unit: "items",
    labels: &["of=names|claims|domains"],
    help: "What is to be computed anew after evidence or rules changed: the levels of hosts below names, statuses of claims, \
           verified rules of domains, of each 100,000 at most; every replica shows the same, so take the maximum and not the sum",
};

/// The metrics of the evidence graph. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct EvidenceMetrics {
    backlog: Family<Labels<1>, Gauge>,
}

impl EvidenceMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(BACKLOG, own.backlog.clone());
        own
    }

    /// Shows how much is to be computed.
    pub fn show_backlog(&self, backlog: Backlog) {
        for (of, count) in [
            ("names", backlog.names),
            ("claims", backlog.claims),
            ("domains", backlog.domains),
        ] {
            self.backlog
                .get_or_create(&[("of", of)])
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
